"""One policy of the table, with the conversion of its JSON values for the broker."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pulsarbox.broker.policies.as_json import broker_value
from pulsarbox.config import Settings
from pulsarbox.protocol.policies.table import row_of

T = TypeVar("T")


class Policy(Generic[T]):
    """A policy that applies to topics. Its values are JSON as in the Admin API, validated when they are set."""

    __slots__ = ("name", "read", "row")

    def __init__(self, name: str, read: Callable[[Any], T]) -> None:
        """``name``: that of the row. ``read`` converts a JSON value of any level."""
        self.name = name
        self.row = row_of(name)
        self.read = read

    @property
    def namespace_key(self) -> str:
        """The member of Pulsar's Policies; empty if namespaces do not have the policy."""
        return self.row.namespace.key if self.row.namespace is not None else ""

    @property
    def topic_key(self) -> str:
        """The member of Pulsar's TopicPolicies; empty if topics do not have the policy."""
        return self.row.topic.key if self.row.topic is not None else ""

    def broker(self, settings: Settings) -> T:
        """Return the broker-level value, which applies if neither topic nor namespace sets one."""
        return self.read(broker_value(self.name, settings))
