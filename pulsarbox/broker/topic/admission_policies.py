"""Who, and what, may come to a topic: the policies that limit numbers and sizes, and ask for encryption.

Texts are those of Pulsar 4.2. Topics that Pulsar keeps for itself have no limits.
"""

from typing import TYPE_CHECKING, Final

from pulsarbox.broker.policies.kinds.counts import (
    MAX_CONSUMERS,
    MAX_CONSUMERS_PER_SUBSCRIPTION,
    MAX_PRODUCERS,
    MAX_SUBSCRIPTIONS,
)
from pulsarbox.broker.policies.kinds.encryption import ENCRYPTION_REQUIRED
from pulsarbox.broker.policies.kinds.message_size import MAX_MESSAGE_SIZE
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.errors import ConsumerBusy, NotAllowed, ProducerBusy
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageMetadata

if TYPE_CHECKING:
    from pulsarbox.broker.subscription.interface import AnySubscription
    from pulsarbox.broker.topic.topic import Topic

TOO_MANY_TOPICS: Final = "Exceed maximum number of topics in namespace."


class Admission:
    """What one topic lets in."""

    __slots__ = ("_encrypted", "_message_size", "_policies", "_system", "_topic", "measures")

    def __init__(self, topic: "Topic") -> None:
        self._topic = topic
        self._policies = topic.policies
        self._system = is_system(str(topic.name))
        self._message_size = 0
        self._encrypted = False
        self.measures = False
        """Whether messages are to be looked at one by one: ``check_message``."""
        self._look()

    def _look(self) -> None:
        """See what holds of that which is asked with each message."""
        size = self._policies.get(MAX_MESSAGE_SIZE)
        # The broker's own limit does not count headers, and holds for every frame anyway.
        self._message_size = 0 if size >= self._topic.core.settings.maxMessageSize else size
        self._encrypted = self._policies.get(ENCRYPTION_REQUIRED)
        self.measures = not self._system and (self._message_size > 0 or self._encrypted)

    def changed(self, now: Now) -> None:
        """Policies may be other ones: producers that do not encrypt must go where that is asked for now."""
        self._look()
        if self._encrypted and not self._system:
            for producer in self._topic.producers:
                if not producer.encrypted:
                    producer.disconnect(now)

    # Producers

    def check_producer(self, *, encrypted: bool) -> None:
        """Raises ProducerBusy where the topic has all the producers it may have, NotAllowed for one that does not
        encrypt where it must (MetadataError in Pulsar, after which clients try again)."""
        if self._system:
            return
        limit = self._policies.get(MAX_PRODUCERS)
        if 0 < limit <= len(self._topic.producers):
            raise ProducerBusy(f"Topic '{self._topic.name}' reached max producers limit")
        if self._encrypted and not encrypted:
            raise NotAllowed(f"Encryption is required in {self._topic.name}")

    def check_message(self, size: int, metadata: MessageMetadata) -> None:
        """Raises NotAllowed for a message that is too large, and for one that had to be encrypted."""
        if self._encrypted and not metadata.encryption_keys:
            raise NotAllowed("Messages must be encrypted")
        chunk = metadata.num_chunks_from_msg > 1
        if 0 < self._message_size < size and not chunk:
            raise NotAllowed("Exceed maximum message size")

    # Subscriptions and consumers

    def check_consumer(self) -> None:
        """Raises ConsumerBusy where the topic has all the consumers it may have."""
        limit = 0 if self._system else self._policies.get(MAX_CONSUMERS)
        if limit > 0 and limit <= sum(len(each.consumers) for each in self._topic.all_subscriptions()):
            raise ConsumerBusy("Topic reached max consumers limit")

    def check_consumer_of(self, subscription: "AnySubscription", sub_type: CommandSubscribe.SubType) -> None:
        """Raises ConsumerBusy where the subscription has all the consumers it may have."""
        if self._system or sub_type == CommandSubscribe.Exclusive:
            return
        if 0 < self._policies.get(MAX_CONSUMERS_PER_SUBSCRIPTION) <= len(subscription.consumers):
            raise ConsumerBusy("Subscription reached max consumers limit")

    def check_subscription(self, present: int) -> None:
        """Raises NotAllowed where the topic, which has so many subscriptions, may have no other one."""
        if not self._system and 0 < self._policies.get(MAX_SUBSCRIPTIONS) <= present:
            raise NotAllowed(f"Exceed the maximum number of subscriptions of the topic: {self._topic.name}")
