"""Non-persistent topics: messages are dispatched at once or dropped, and never stored."""

from collections.abc import Iterator

from pulsarbox.broker.core import Core
from pulsarbox.broker.policies.kinds.inactive_topic import INACTIVE_TOPIC
from pulsarbox.broker.subscription.non_persistent import NonPersistentSubscription
from pulsarbox.broker.topic.internal_publisher import Posted
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.broker.topic.topic import Topic
from pulsarbox.clock import Now
from pulsarbox.errors import MetadataError
from pulsarbox.names import TopicName
from pulsarbox.protocol.metadata import batch_fits, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandSend
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry


class NonPersistentTopic(Topic):
    """A topic that stores nothing."""

    def __init__(self, core: Core, name: TopicName) -> None:
        super().__init__(core, name)
        self.subscriptions: dict[str, NonPersistentSubscription] = {}
        self._unused_since = 0
        """Start of the topic's inactivity (ms since 1970); valid only while it is unused."""

    # Inactivity

    def remove_producer(self, producer: AttachedProducer, now: Now) -> None:
        """See Topic.remove_producer."""
        super().remove_producer(producer, now)
        self.maybe_unused(now)

    def maybe_unused(self, now: Now) -> None:
        """Start the topic's inactivity period if it has neither producers nor subscriptions."""
        if self.producers.unused and not self.subscriptions:
            self._unused_since = now.wall
            self._check_unused(now)

    def _check_unused(self, now: Now) -> None:
        policy = self.policies.get(INACTIVE_TOPIC)
        if not policy.delete or not self.producers.unused or self.subscriptions:
            return
        at = self._unused_since + policy.after
        if now.wall >= at:
            self.core.inactive(self, now)
        else:
            self.core.timers.at_wall(at, self._check_unused)

    def _policies_changed(self, now: Now) -> None:
        """See Topic."""
        super()._policies_changed(now)
        self._check_unused(now)

    def all_subscriptions(self) -> Iterator[NonPersistentSubscription]:
        """See Topic."""
        return iter(self.subscriptions.values())

    def publish(self, producer: AttachedProducer | Posted, send: CommandSend, payload: bytes, now: Now) -> None:
        """See Topic.publish; the receipt is sent at once."""
        metadata = parse_entry(payload).metadata
        if self.admission.measures:
            self.admission.check_message(len(payload), metadata)
        messages = metadata.num_messages_in_batch
        if messages != 1 and not batch_fits(metadata, len(payload)):
            raise MetadataError(f"Invalid batch: {messages} messages do not fit into {len(payload)} bytes")
        published = now.of_client(metadata.publish_time)
        is_chunk = metadata.num_chunks_from_msg > 1
        entry = Entry(0, 0, EntryFlag.CHUNK if is_chunk else 0, messages, 0, 0, 0, published, now.wall, 0, 0, payload)
        taken = [subscription.send(entry, metadata, now) for subscription in list(self.subscriptions.values())]
        producer.published(messages, len(payload), is_chunk=is_chunk)
        if not all(taken) and isinstance(producer, AttachedProducer):
            producer.dropped += messages
        producer.receipt(send.sequence_id, send.highest_sequence_id, 0, 0, now)

    def forget(self, subscription: NonPersistentSubscription, now: Now) -> None:
        """Remove a subscription that has no consumers, unless that is done."""
        if self.subscriptions.get(subscription.name) is subscription:
            del self.subscriptions[subscription.name]
            self.subscription_removed(subscription)
            self.maybe_unused(now)

    def sample(self, now: Now) -> None:
        """See Topic.sample."""
        super().sample(now)
        for subscription in self.subscriptions.values():
            subscription.sample(now)

    def subscribe(self, name: str) -> NonPersistentSubscription:
        """Return the subscription with this name, creating it if missing; it exists as long as it has consumers."""
        subscription = self.subscriptions.get(name)
        if subscription is None:
            subscription = self.subscriptions[name] = NonPersistentSubscription(self.core, self, name)
        return subscription
