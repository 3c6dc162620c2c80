"""Subscriptions of non-persistent topics: messages go to a consumer with permits, or are dropped."""

from typing import Protocol

from pulsarbox.broker.dispatch.compatibility import check_compatible
from pulsarbox.broker.dispatch.non_persistent import (
    DirectDispatcher,
    DirectKeyShared,
    DirectRoundRobin,
    DirectSingleActive,
    has_room,
)
from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.broker.plugins import Plugins
from pulsarbox.broker.services import HasSettings
from pulsarbox.broker.stats.rate_window import RateWindow
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.errors import MetadataError, PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageMetadata
from pulsarbox.storage.record import Entry


class DirectServices(HasSettings, Protocol):
    """The services of the broker that dispatch without storage."""

    @property
    def plugins(self) -> Plugins:
        """The plugins, among them selectors and hashes."""


class DirectTopic(Protocol):
    """The topic of a subscription without a cursor."""

    name: TopicName

    def forget(self, subscription: "NonPersistentSubscription", now: Now) -> None:
        """Remove a subscription that has no consumers."""


class NonPersistentSubscription:
    """A subscription without a cursor. It exists as long as it has consumers, and has the type of the first one."""

    durable = False
    replicated = False

    def __init__(self, services: DirectServices, topic: DirectTopic, name: str) -> None:
        self._services = services
        self._topic = topic
        self.topic_name = topic.name
        self.name = name
        self.consumers: list[Consumer] = []
        self.type = CommandSubscribe.Exclusive
        self.dropped = 0
        """Messages dropped because no consumer had room."""
        self._drops: RateWindow | None = None
        """Meter of ``dropped``, created with the first one."""
        self.removed = (0, 0)
        """Messages and bytes sent to consumers that have since been removed."""
        self._dispatcher: DirectDispatcher = DirectRoundRobin()
        """Replaced according to the type of the first consumer."""

    def __str__(self) -> str:
        """Return Pulsar's description of a subscription in errors."""
        return f"NonPersistentSubscription{{topic={self.topic_name}, name={self.name}}}"

    def add_consumer(self, consumer: Consumer, sub_type: CommandSubscribe.SubType, now: Now) -> None:
        """Add a consumer. Raise ConsumerBusy, ConsumerAssignError if it is incompatible with the existing ones."""
        if self.consumers:
            check_compatible(self.consumers[0], self.type, consumer, sub_type)
        else:
            self._dispatcher = self._make_dispatcher(sub_type, consumer)
            self.type = sub_type
        try:
            self._dispatcher.add(consumer, now)
        except PulsarBoxError:
            self.forget_if_empty(now)
            raise
        self.consumers.append(consumer)

    def _make_dispatcher(self, sub_type: CommandSubscribe.SubType, consumer: Consumer) -> DirectDispatcher:
        settings = self._services.settings
        if sub_type == CommandSubscribe.Shared:
            return DirectRoundRobin()
        if sub_type == CommandSubscribe.Key_Shared:
            plugins = self._services.plugins
            selector = plugins.selector_of(consumer.key_shared.mode, settings, {})
            return DirectKeyShared(selector, plugins.key_hash(settings.keySharedHashing) or key_hash)
        return DirectSingleActive(
            self.topic_name,
            failover=sub_type == CommandSubscribe.Failover,
            consistent_hashing=settings.activeConsumerFailoverConsistentHashing,
        )

    def remove_consumer(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """Remove a consumer; ``lost`` makes no difference."""
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            self.removed = consumer.added_to(self.removed)
            self._dispatcher.remove(consumer)
            self.forget_if_empty(now)

    def forget_if_empty(self, now: Now) -> None:
        """Delete the subscription if it has no consumers."""
        if not self.consumers:
            self._topic.forget(self, now)

    def flow(self, consumer: Consumer, permits: int, now: Now) -> None:
        """Add permits of a consumer."""
        consumer.add_permits(permits, now)

    def dispatch(self, now: Now) -> None:
        """Do nothing; there is no backlog."""

    @property
    def active_consumer(self) -> Consumer | None:
        """The active consumer of an Exclusive or Failover subscription."""
        dispatcher = self._dispatcher
        return dispatcher.active if isinstance(dispatcher, DirectSingleActive) else None

    @property
    def key_ranges(self) -> dict[Consumer, list[tuple[int, int]]]:
        """The hash slots of each consumer of a Key_Shared subscription."""
        dispatcher = self._dispatcher
        return dispatcher.selector.ranges() if isinstance(dispatcher, DirectKeyShared) else {}

    def send(self, entry: Entry, metadata: MessageMetadata, now: Now) -> bool:
        """Send a message to the consumer that the dispatcher chooses. Return False if the message is dropped."""
        consumer = self._dispatcher.choose(metadata)
        if consumer is None or not has_room(consumer):
            if self._drops is None:
                self._drops = RateWindow(now.monotonic, 1)
            self.dropped += entry.num_messages
            return False
        consumer.deliver([entry], {}, {}, consumer.cnx.body_of)
        consumer.sent(now)
        # Messages are never redelivered, so they are not tracked as unacknowledged.
        consumer.held.clear()
        consumer.unacked = 0
        consumer.forgotten = consumer.messages_out
        return True

    def sample(self, now: Now) -> None:
        """See RateWindow.sample."""
        if self._drops is not None:
            self._drops.sample((self.dropped,), now)

    def drop_rate(self, now: Now) -> float:
        """Return the rate of dropped messages per second."""
        return 0.0 if self._drops is None else self._drops.rates((self.dropped,), now)[0]

    def close(self, now: Now, asked_by: Consumer | None = None) -> None:
        """Disconnect all consumers; notify all clients but that of ``asked_by``."""
        for consumer in list(self.consumers):
            self.remove_consumer(consumer, now)
            consumer.disconnect(now, tell=consumer is not asked_by)

    def unsubscribe(self, consumer: Consumer, force: bool, now: Now) -> None:
        """Disconnect the consumers. Raise MetadataError if the consumer is not the only one, unless forced."""
        if not force and self.consumers != [consumer]:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
        self.close(now, asked_by=consumer)
