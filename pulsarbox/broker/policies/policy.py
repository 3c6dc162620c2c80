"""One policy of the table, and what its values mean to the broker."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pulsarbox.broker.policies.as_json import broker_value
from pulsarbox.config import Settings
from pulsarbox.protocol.policies.table import row_of

T = TypeVar("T")


class Policy(Generic[T]):
    """A policy that applies to topics. Its values are JSON as in the Admin API, checked when they are set."""

    __slots__ = ("name", "read", "row")

    def __init__(self, name: str, read: Callable[[Any], T]) -> None:
        """``name``: that of the row. ``read``: what a value means to the broker, at whatever level it is set."""
        self.name = name
        self.row = row_of(name)
        self.read = read

    @property
    def namespace_key(self) -> str:
        """The member of Pulsar's Policies; empty where namespaces do not have the policy."""
        return self.row.namespace.key if self.row.namespace is not None else ""

    @property
    def topic_key(self) -> str:
        """The member of Pulsar's TopicPolicies; empty where topics do not have the policy."""
        return self.row.topic.key if self.row.topic is not None else ""

    def broker(self, settings: Settings) -> T:
        """Return the broker's own value, which applies where neither topic nor namespace sets one."""
        return self.read(broker_value(self.name, settings))
