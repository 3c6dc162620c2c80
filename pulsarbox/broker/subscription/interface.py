"""Interface of persistent and non-persistent subscriptions, for connections and the Admin API."""

from typing import Protocol

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe


class AnySubscription(Protocol):
    """A persistent or non-persistent subscription, as used by connections and the Admin API."""

    name: str
    consumers: list[Consumer]
    type: CommandSubscribe.SubType
    gone: tuple[int, int]
    """Messages and bytes sent to consumers that have since been removed."""

    @property
    def topic_name(self) -> TopicName:
        """The name of its topic."""

    @property
    def durable(self) -> bool:
        """Whether the subscription outlives its consumers."""

    @property
    def active_consumer(self) -> Consumer | None:
        """The active consumer of an Exclusive or Failover subscription."""

    @property
    def key_ranges(self) -> dict[Consumer, list[tuple[int, int]]]:
        """The hash slots of each consumer of a Key_Shared subscription."""

    def flow(self, consumer: Consumer, permits: int, now: Now) -> None:
        """Add permits of a consumer."""

    def dispatch(self, now: Now) -> None:
        """Dispatch the available messages."""

    def remove_consumer(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """Remove a consumer. ``lost``: its connection broke instead of it being closed."""

    def unsubscribe(self, consumer: Consumer, force: bool, now: Now) -> None:
        """Delete the subscription on request of one of its consumers."""

    def close(self, now: Now, asked_by: Consumer | None = None) -> None:
        """Disconnect all consumers."""
