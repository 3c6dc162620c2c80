"""Admission policies of a topic: limits on producers, consumers, subscriptions and message size; required encryption.

Error texts are those of Pulsar 4.2. System topics have no limits.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from pulsarbox.broker.policies.kinds.counts import (
    MAX_CONSUMERS,
    MAX_CONSUMERS_PER_SUBSCRIPTION,
    MAX_PRODUCERS,
    MAX_SUBSCRIPTIONS,
)
from pulsarbox.broker.policies.kinds.encryption import ENCRYPTION_REQUIRED
from pulsarbox.broker.policies.kinds.message_size import MAX_MESSAGE_SIZE
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.subscription.consumer import AnySubscription
from pulsarbox.broker.topic.producer_access import Producers
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.errors import ConsumerBusy, NotAllowed, ProducerBusy
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageMetadata

TOO_MANY_TOPICS: Final = "Exceed maximum number of topics in namespace."


class AdmittingTopic(Protocol):
    """The clients of a topic that its limits count."""

    @property
    def producers(self) -> Producers:
        """Its producers."""

    def all_subscriptions(self) -> Iterable[AnySubscription]:
        """Return its subscriptions."""


class Admission:
    """Admission checks of one topic."""

    __slots__ = ("_encrypted", "_message_size", "_most", "_policies", "_system", "_topic", "measures")

    def __init__(self, topic: AdmittingTopic, policies: TopicPolicies, most: int) -> None:
        """``most``: the broker's maximum size of a message in bytes."""
        self._topic = topic
        self._policies = policies
        self._most = most
        self._system = is_system(str(policies.name))
        self._message_size = 0
        self._encrypted = False
        self.measures = False
        """Whether each message needs ``check_message``."""
        self._refresh()

    def _refresh(self) -> None:
        """Cache the policies that each message is checked against."""
        size = self._policies.get(MAX_MESSAGE_SIZE)
        # A limit that is not below the broker's is redundant: that one applies to every frame, excluding headers.
        self._message_size = 0 if size >= self._most else size
        self._encrypted = self._policies.get(ENCRYPTION_REQUIRED)
        self.measures = not self._system and (self._message_size > 0 or self._encrypted)

    def changed(self, now: Now) -> None:
        """Apply policies that may have changed: disconnect unencrypted producers if encryption is required now."""
        self._refresh()
        if self._encrypted and not self._system:
            for producer in self._topic.producers:
                if not producer.encrypted:
                    producer.disconnect(now)

    # Producers

    def check_producer(self, *, encrypted: bool) -> None:
        """Raise ProducerBusy if the topic is at its producer limit, NotAllowed if it requires encryption.

        Pulsar raises MetadataError for missing encryption, after which clients retry.
        """
        if self._system:
            return
        limit = self._policies.get(MAX_PRODUCERS)
        if 0 < limit <= len(self._topic.producers):
            raise ProducerBusy(f"Topic '{self._policies.name}' reached max producers limit")
        if self._encrypted and not encrypted:
            raise NotAllowed(f"Encryption is required in {self._policies.name}")

    def check_message(self, size: int, metadata: MessageMetadata) -> None:
        """Raise NotAllowed for a message that is too large, or unencrypted where encryption is required."""
        if self._encrypted and not metadata.encryption_keys:
            raise NotAllowed("Messages must be encrypted")
        chunk = metadata.num_chunks_from_msg > 1
        if 0 < self._message_size < size and not chunk:
            raise NotAllowed("Exceed maximum message size")

    # Subscriptions and consumers

    def check_consumer(self) -> None:
        """Raise ConsumerBusy if the topic is at its consumer limit."""
        limit = 0 if self._system else self._policies.get(MAX_CONSUMERS)
        if limit > 0 and limit <= sum(len(each.consumers) for each in self._topic.all_subscriptions()):
            raise ConsumerBusy("Topic reached max consumers limit")

    def check_consumer_of(self, subscription: AnySubscription, sub_type: CommandSubscribe.SubType) -> None:
        """Raise ConsumerBusy if the subscription is at its consumer limit."""
        if self._system or sub_type == CommandSubscribe.Exclusive:
            return
        if 0 < self._policies.get(MAX_CONSUMERS_PER_SUBSCRIPTION) <= len(subscription.consumers):
            raise ConsumerBusy("Subscription reached max consumers limit")

    def check_subscription(self, present: int) -> None:
        """Raise NotAllowed if the topic, with ``present`` subscriptions, is at its subscription limit."""
        if not self._system and 0 < self._policies.get(MAX_SUBSCRIPTIONS) <= present:
            raise NotAllowed(f"Exceed the maximum number of subscriptions of the topic: {self._policies.name}")
