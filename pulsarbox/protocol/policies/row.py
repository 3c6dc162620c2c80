"""One row of the table of policies: where its value stands, and how its endpoints behave."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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


def always(value: Any) -> bool:
    """Every value sets the policy."""
    return True


@dataclass(frozen=True, slots=True)
class Legacy:
    """An older member of Pulsar's Policies that sets the same policy, with words of its own."""

    key: str
    words: Mapping[str, Any]
    """The value that each of its words stands for."""


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
    members: tuple[str, ...] = ()
    """The path below ``key`` to the value, where the member holds several values."""
    legacy: Legacy | None = None
    """Sets the policy where ``key`` does not."""
    superuser: bool = False
    """Whether only superusers may set it."""
    minimum: int | None = None
    too_small: str = ""
    """Pulsar's text for a smaller number."""
    without: str = ""
    """Pulsar's text for a body that is null, where it is refused."""

    def value_in(self, policies: Mapping[str, Any], cluster: str) -> Any:
        """Return the value in the policies of a namespace or topic; None where it is absent."""
        value = policies.get(self.key)
        for member in (cluster,) if self.by_cluster else self.members:
            value = value.get(member) if value is not None else None
        return value

    def set_in(self, policies: Mapping[str, Any], cluster: str, sets: Callable[[Any], bool]) -> Any:
        """Return the value that sets the policy in effect at this level; None where the next level applies."""
        value = self.value_in(policies, cluster)
        if value is not None and sets(value):
            return value
        return self.legacy.words.get(policies.get(self.legacy.key, "")) if self.legacy is not None else None


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
    typed: Mapping[str, Any] = field(default_factory=dict)
    """Members that a value has which is typed without them; a broker would take 0. None: they must be typed."""
    sets: Callable[[Any], bool] = always
    """Whether a stored value sets the policy. Where it does not, as a rate of -1, the next level applies."""
    own: bool = False
    """Pulsar does not know it: its endpoints are below ``/pulsarbox/v1/policies``."""
    stored_only: str = ""
    """Why nothing follows from it yet, or ever; empty where it is applied."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The levels at which it may be set."""
        return tuple(place for place in (self.topic, self.namespace) if place is not None)
