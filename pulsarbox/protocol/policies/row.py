"""The definition of one policy: its levels, and the behaviour of its endpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from pulsarbox.protocol.policies.shapes import ValueShape


class Blank(StrEnum):
    """An endpoint's handling of an empty or null body."""

    REMOVES = "removes the value"
    KEEPS = "changes nothing"
    REFUSED = "is rejected"
    UNMET = "is rejected as an unmet precondition (412)"
    ZERO = "an empty body is rejected; null is 0 or false"


class Silent(StrEnum):
    """The response of a GET for an unset policy, if it is not a value."""

    EMPTY = "200 without a body"
    NO_CONTENT = "204"


EMPTY: Final = Silent.EMPTY
NO_CONTENT: Final = Silent.NO_CONTENT


DEFAULT: Final = "default"
"""Text of commands and declarations that removes a policy, except for policies that are text."""


def always(value: Any) -> bool:
    """Accept every value: each one sets the policy."""
    return True


@dataclass(frozen=True, slots=True)
class Legacy:
    """An older member of Pulsar's Policies that sets the same policy with different values."""

    key: str
    words: Mapping[str, Any]
    """Maps each legacy value to the current one."""


@dataclass(frozen=True, slots=True)
class LegacyMembers:
    """Older members of Pulsar's Policies whose values fill unset members of an object."""

    members: Mapping[str, str]
    """Maps each legacy key to the member."""
    unset: Mapping[str, Any]
    """The value of each legacy key if it is not set."""
    empty: Mapping[str, Any]
    """The object without any member set."""

    def kept(self, policies: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members that legacy keys of a row of policies set."""
        return {
            member: policies[key]
            for key, member in self.members.items()
            if policies.get(key, self.unset[key]) != self.unset[key]
        }

    def filled(self, policies: Mapping[str, Any], value: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the object with its unset members filled from legacy keys; None if neither sets any."""
        kept = self.kept(policies)
        if value is None and not kept:
            return None
        return {**self.empty, **kept, **(value or {})}


@dataclass(frozen=True, slots=True)
class PolicyEndpoint:
    """A policy at one level: namespaces or topics."""

    key: str
    """Member of Pulsar's Policies or TopicPolicies."""
    path: str
    """Path segment in the Admin API, after the namespace or topic."""
    verb: str = "POST"
    """HTTP method that sets the policy."""
    blank: Blank = Blank.REMOVES
    nothing: Any = None
    """A value that means unset."""
    unset: Any = EMPTY
    """GET's response if the policy is unset: a value, or Silent."""
    removed: bool = True
    """Whether DELETE is supported."""
    applied: bool = False
    """Whether GET supports ``?applied=true``."""
    always: Any = None
    """The value that is set whatever the body contains."""
    query: str = ""
    """Query parameter with the value; empty if the body carries it."""
    by_cluster: bool = False
    """Whether the value is stored in a map by cluster name."""
    members: tuple[str, ...] = ()
    """Path below ``key`` to the value, if the member holds several values."""
    legacy: Legacy | LegacyMembers | None = None
    """Sets the policy, or members of it, if ``key`` does not."""
    removal: str = ""
    """Path segment of DELETE, if it is not ``path``."""
    local: bool = False
    """Whether Pulsar stores the policy apart from Policies, as raw text: neither shown nor created with them."""
    superuser: bool = False
    """Whether only superusers may set it."""
    minimum: int | None = None
    too_small: str = ""
    """Pulsar's message for a value below ``minimum``."""
    without: str = ""
    """Pulsar's message for a rejected null body."""
    missing: str = "Namespace does not exist"
    """Pulsar's message of GET for a missing namespace."""

    def value_in(self, policies: Mapping[str, Any], cluster: str) -> Any:
        """Return the value in the policies of a namespace or topic, or None if it is absent."""
        value = policies.get(self.key)
        for member in (cluster,) if self.by_cluster else self.members:
            value = value.get(member) if value is not None else None
        return value

    def set_in(self, policies: Mapping[str, Any], cluster: str, sets: Callable[[Any], bool]) -> Any:
        """Return the value that sets the policy at this level, or None if the next level applies."""
        value = self.value_in(policies, cluster)
        if isinstance(self.legacy, LegacyMembers):
            return self.legacy.filled(policies, value)
        if value is not None and sets(value):
            return value
        return self.legacy.words.get(policies.get(self.legacy.key, "")) if self.legacy is not None else None


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy."""

    name: str
    """Name in `ns policy`, `topic policy` and the documentation."""
    meaning: str
    shape: ValueShape
    namespace: PolicyEndpoint | None = None
    topic: PolicyEndpoint | None = None
    settings: tuple[str, ...] = ()
    """The broker settings with its default; empty if Pulsar's default always applies."""
    typed: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of omitted members on the command line, where a broker would assume 0. None: the member is required."""
    sets: Callable[[Any], bool] = always
    """Whether a stored value sets the policy; if not (a rate of -1, for example), the next level applies."""
    own: bool = False
    """Whether Pulsar lacks the policy; its endpoints are then below ``/pulsarbox/v1/policies``."""
    stored_only: str = ""
    """Why the policy has no effect; empty if it is applied. ASCII."""
    merged: bool = False
    """Whether each level sets single members of an object, and the next level sets the others."""

    @property
    def places(self) -> tuple[PolicyEndpoint, ...]:
        """The levels at which the policy may be set."""
        return tuple(place for place in (self.topic, self.namespace) if place is not None)
