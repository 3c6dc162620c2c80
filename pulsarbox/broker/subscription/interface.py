"""What connections and the Admin API ask of a subscription, stored or not."""

from typing import Protocol

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe


class AnySubscription(Protocol):
    """What connections and the Admin API ask of a subscription, stored or not."""

    name: str
    consumers: list[Consumer]
    type: CommandSubscribe.SubType
    gone: tuple[int, int]
    """Messages and bytes that were sent to consumers that have gone."""

    @property
    def topic_name(self) -> TopicName:
        """Of its topic."""

    @property
    def durable(self) -> bool:
        """Whether the subscription outlives its consumers."""

    @property
    def active_consumer(self) -> Consumer | None:
        """The consumer that gets everything, of an Exclusive or Failover subscription."""

    @property
    def key_ranges(self) -> dict[Consumer, list[tuple[int, int]]]:
        """The slots of each consumer, of a Key_Shared subscription."""

    def flow(self, consumer: Consumer, permits: int, now: Now) -> None:
        """The consumer can take more messages."""

    def dispatch(self, now: Now) -> None:
        """Send what can be sent."""

    def remove_consumer(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """The consumer has gone. ``lost``: its connection broke, it did not close."""

    def unsubscribe(self, consumer: Consumer, force: bool, now: Now) -> None:
        """Delete the subscription, asked for by one of its consumers."""

    def close(self, now: Now, asked_by: Consumer | None = None) -> None:
        """Let all consumers go."""
