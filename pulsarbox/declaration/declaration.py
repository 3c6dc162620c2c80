"""The contents of declarations: objects by name, each value with its place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pulsarbox.declaration.places import Place
from pulsarbox.names import TopicName

T = TypeVar("T")

POSITIONS: Final = ("earliest", "latest")
"""Initial positions of a subscription; ``latest`` is the default, as in the Admin API."""


@dataclass(frozen=True, slots=True)
class Declared(Generic[T]):
    """A declared value."""

    value: T
    place: Place


Policies = Mapping[str, Declared[Any]]
"""Values by the name of the policy, ``backlog-quota:message_age`` for a quota; None removes the policy."""
Grants = Mapping[str, Declared[list[str]]]
"""Actions by role, or roles by subscription."""
Properties = Mapping[str, Declared[str]]


@dataclass(frozen=True, slots=True)
class TenantDeclaration:
    """A tenant; None leaves its admins or clusters as they are."""

    place: Place
    admin_roles: Declared[list[str]] | None = None
    clusters: Declared[list[str]] | None = None


@dataclass(frozen=True, slots=True)
class NamespaceDeclaration:
    """A namespace."""

    place: Place
    policies: Policies = field(default_factory=dict)
    properties: Properties = field(default_factory=dict)
    permissions: Grants = field(default_factory=dict)
    subscription_permissions: Grants = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubscriptionDeclaration:
    """A durable subscription, on all partitions."""

    place: Place
    position: str = POSITIONS[1]
    """Where it begins if it is created."""
    properties: Declared[dict[str, str]] | None = None
    """All of its properties."""
    dead_letter: Declared[dict[str, Any] | None] | None = None
    """Its dead letter policy in JSON; with a value of None, it has none."""
    dispatch_rate: Declared[dict[str, Any] | None] | None = None


@dataclass(frozen=True, slots=True)
class TopicDeclaration:
    """A topic."""

    place: Place
    partitions: int = 0
    """0 if it is not partitioned."""
    properties: Properties = field(default_factory=dict)
    policies: Policies = field(default_factory=dict)
    permissions: Grants = field(default_factory=dict)
    schema: Declared[dict[str, Any]] | None = None
    """``type``, ``schema`` and ``properties``, as the Admin API takes it."""
    subscriptions: Mapping[str, SubscriptionDeclaration] = field(default_factory=dict)


class TokenDeclaration(NamedTuple):
    """A token to be kept in a file."""

    place: Place
    role: str
    file: str
    """Path, absolute or relative to the declaring file."""
    lifetime: int | None = None
    """Milliseconds; None: it does not expire."""
    private_key: str = ""
    """Path of the key that signs it, as ``file``; empty: tokenSecretKey of the configuration."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """All that one or several files declare."""

    clusters: Mapping[str, Declared[dict[str, Any]]] = field(default_factory=dict)
    """The declared members of clusters other than the broker's own; None unsets one."""
    tenants: Mapping[str, TenantDeclaration] = field(default_factory=dict)
    resource_groups: Mapping[str, Declared[dict[str, int]]] = field(default_factory=dict)
    namespaces: Mapping[str, NamespaceDeclaration] = field(default_factory=dict)
    topics: Mapping[TopicName, TopicDeclaration] = field(default_factory=dict)
    tokens: tuple[TokenDeclaration, ...] = ()
