"""One row of the table of policies: where its value stands, and how its endpoints behave."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pulsarbox.protocol.policies.shapes import Shape


class Blank(StrEnum):
    """What an endpoint does with a body that is empty, or null."""

    REMOVES = "takes the value away"
    KEEPS = "changes nothing"
    REFUSED = "is refused"
    ZERO = "refused where empty; null is 0 or false"


class Silent(StrEnum):
    """How a GET says that nothing is set, where it does not say so with a value."""

    EMPTY = "200 without a body"
    NO_CONTENT = "204"


EMPTY: Final = Silent.EMPTY
NO_CONTENT: Final = Silent.NO_CONTENT


@dataclass(frozen=True, slots=True)
class Place:
    """A policy at one level: of namespaces, or of topics."""

    key: str
    """Its member in Pulsar's Policies, or TopicPolicies."""
    path: str
    """Its word in the Admin API, behind the name."""
    verb: str = "POST"
    """What sets it."""
    blank: Blank = Blank.REMOVES
    nothing: Any = None
    """A value that stands for none."""
    unset: Any = EMPTY
    """What GET answers where nothing is set: a value, or Silent."""
    removed: bool = True
    """Whether there is a DELETE."""
    applied: bool = False
    """Whether GET takes ``?applied=true``."""
    always: Any = None
    """What it is set to whatever the body says."""
    query: str = ""
    """The parameter of the query that brings the value; empty where the body does."""
    by_cluster: bool = False
    """Kept as a map from the name of the cluster."""
    superuser: bool = False
    """Whether only superusers may set it."""
    minimum: int | None = None
    too_small: str = ""
    """Pulsar's text for a smaller number."""
    without: str = ""
    """Pulsar's text for a body that is null, where it is refused."""

    def value_in(self, policies: dict[str, Any], cluster: str) -> Any:
        """The value that the policies of a namespace or topic have; None where they have none."""
        value = policies.get(self.key)
        return value.get(cluster) if self.by_cluster and value is not None else value


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy."""

    name: str
    """As `ns policy` and `topic policy` call it, and the documents."""
    meaning: str
    shape: Shape
    namespace: Place | None = None
    topic: Place | None = None
    settings: tuple[str, ...] = ()
    """The broker's own values; none where Pulsar's default is all there is."""
    own: bool = False
    """Pulsar does not know it: its endpoints are below ``/pulsarbox/v1/policies``."""
    stored_only: str = ""
    """Why nothing follows from it yet, or ever; empty where it is applied."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The levels at which it may be set."""
        return tuple(place for place in (self.topic, self.namespace) if place is not None)
