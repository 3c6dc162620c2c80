"""Non-persistent topics: nothing is stored; who is connected and has room gets the message, the others never do."""

from collections.abc import Iterator

from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.core import Core
from pulsarbox.broker.producer import Producer
from pulsarbox.broker.subscription import TYPE_NAMES
from pulsarbox.broker.topic import Topic
from pulsarbox.clock import Now
from pulsarbox.errors import ConsumerBusy, MetadataError, NotSupported
from pulsarbox.names import TopicName
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandSend, CommandSubscribe
from pulsarbox.storage.record import Entry


class NonPersistentSubscription:
    """A subscription that forgets: messages go to a consumer with permits, or are dropped."""

    durable = False

    def __init__(self, topic: "NonPersistentTopic", name: str) -> None:
        self.topic = topic
        self.name = name
        self.consumers: list[Consumer] = []
        self.type = CommandSubscribe.Exclusive
        self.dropped = 0
        """Messages that found no consumer with room."""
        self._next = 0

    def add_consumer(self, consumer: Consumer, sub_type: CommandSubscribe.SubType, now: Now) -> None:
        """Take a consumer. Raises ConsumerBusy where it does not fit to those that are here."""
        if sub_type == CommandSubscribe.Key_Shared:
            raise NotSupported("Key_Shared subscriptions are not supported by this version: use Shared or Failover")
        if self.consumers and sub_type != self.type:
            raise ConsumerBusy(
                f"Subscription is of different type: it is {TYPE_NAMES[self.type]} while it has consumers"
            )
        if self.consumers and sub_type == CommandSubscribe.Exclusive:
            raise ConsumerBusy("Exclusive consumer is already connected")
        self.type = sub_type
        self.consumers.append(consumer)
        self.consumers.sort(key=lambda each: (each.priority_level, each.name))

    def remove_consumer(self, consumer: Consumer, now: Now) -> None:
        """The consumer has gone."""
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            if not self.consumers:
                self.topic.subscriptions.pop(self.name, None)

    def flow(self, consumer: Consumer, permits: int, now: Now) -> None:
        """The consumer can take ``permits`` more messages."""
        consumer.permits += permits

    def dispatch(self, now: Now) -> None:
        """Nothing waits here."""

    def send(self, entry: Entry) -> None:
        """Give a message to the consumer whose turn it is, or drop it."""
        count = len(self.consumers)
        if self.type != CommandSubscribe.Shared:
            count = min(count, 1)
        for i in range(count):
            consumer = self.consumers[(self._next + i) % count]
            if consumer.permits > 0 and not consumer.outbox.full:
                self._next += 1
                consumer.deliver([entry], {}, {}, consumer.cnx.body_of)
                consumer.held.clear()
                consumer.unacked = 0
                return
        self.dropped += entry.num_messages

    def close(self, now: Now, asked_by: Consumer | None = None) -> None:
        """Let all consumers go; they are told, but for the one that asked for it."""
        for consumer in list(self.consumers):
            self.remove_consumer(consumer, now)
            consumer.disconnect(now, tell=consumer is not asked_by)

    def unsubscribe(self, consumer: Consumer, force: bool, now: Now) -> None:
        """Let the consumers go. Raises MetadataError where the consumer is not the only one, unless forced."""
        if not force and self.consumers != [consumer]:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
        self.close(now, asked_by=consumer)


class NonPersistentTopic(Topic):
    """A topic that stores nothing."""

    def __init__(self, core: Core, name: TopicName) -> None:
        super().__init__(core, name)
        self.subscriptions: dict[str, NonPersistentSubscription] = {}

    def all_subscriptions(self) -> Iterator[NonPersistentSubscription]:
        """See Topic."""
        return iter(self.subscriptions.values())

    def publish(self, producer: Producer, send: CommandSend, payload: bytes, now: Now) -> None:
        """See Topic.publish; the receipt leaves at once."""
        metadata = parse_entry(payload).metadata
        messages = metadata.num_messages_in_batch
        entry = Entry(0, 0, 0, messages, 0, 0, 0, metadata.publish_time, now.wall, 0, 0, payload)
        for subscription in list(self.subscriptions.values()):
            subscription.send(entry)
        producer.published(messages, len(payload))
        producer.receipt(send.sequence_id, send.highest_sequence_id, 0, 0)

    def subscribe(self, name: str) -> NonPersistentSubscription:
        """The subscription of that name; it lives as long as its consumers."""
        subscription = self.subscriptions.get(name)
        if subscription is None:
            subscription = self.subscriptions[name] = NonPersistentSubscription(self, name)
        return subscription
