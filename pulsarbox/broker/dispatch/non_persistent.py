"""Dispatching on non-persistent topics, for each subscription type. Nothing is queued or redelivered.

As the dispatchers of Pulsar 4.2 in service.nonpersistent.
"""

from bisect import insort
from collections.abc import Callable
from typing import Protocol

from pulsarbox.broker.dispatch.compatibility import assign_slots, refuse_second
from pulsarbox.broker.dispatch.failover import choose_active, rank
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector, key_hash
from pulsarbox.broker.dispatch.single_active import notify
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.names import TopicName
from pulsarbox.protocol.metadata import dispatch_key
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata


class DirectDispatcher(Protocol):
    """Selects a consumer for each message."""

    def add(self, consumer: Consumer, now: Now) -> None:
        """Add a consumer. Raises ConsumerBusy or ConsumerAssignError if it cannot be accepted."""

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer."""

    def choose(self, metadata: MessageMetadata) -> Consumer | None:
        """Return the message's consumer, None if there is none. The message is lost if that consumer has no room."""


def has_room(consumer: Consumer) -> bool:
    """Return whether a message can be sent to a consumer now."""
    return consumer.permits > 0 and not consumer.outbox.full


class DirectSingleActive:
    """Exclusive and Failover. A newly chosen active consumer starts at once and is not notified.

    Only a new consumer that is not chosen is notified. An unpartitioned topic chooses like partition 0: Pulsar uses the
    hash ring for persistent topics only.
    """

    def __init__(self, topic: TopicName, *, failover: bool, consistent_hashing: bool) -> None:
        self._topic = topic
        self._failover = failover
        self._consistent_hashing = consistent_hashing
        self._consumers: list[Consumer] = []
        self.active: Consumer | None = None

    def add(self, consumer: Consumer, now: Now) -> None:
        """See DirectDispatcher.add."""
        if self._consumers and not self._failover:
            refuse_second(self._consumers[0], now)
        before = self.active
        insort(self._consumers, consumer, key=rank)
        self._choose()
        if self.active is before:
            notify(consumer, before)

    def remove(self, consumer: Consumer) -> None:
        """See DirectDispatcher.remove."""
        self._consumers.remove(consumer)
        self._choose()

    def choose(self, metadata: MessageMetadata) -> Consumer | None:
        """See DirectDispatcher.choose."""
        return self.active

    def _choose(self) -> None:
        self.active = choose_active(
            self._consumers,
            topic=str(self._topic),
            partition=max(self._topic.partition_index, 0),
            consistent_hashing=self._consistent_hashing,
        )


class DirectRoundRobin:
    """Shared: round-robin among the consumers of the first priority level with room."""

    def __init__(self) -> None:
        self._consumers: list[Consumer] = []
        """Ordered by priority level, then by arrival."""
        self._next = 0

    def add(self, consumer: Consumer, now: Now) -> None:
        """See DirectDispatcher.add."""
        insort(self._consumers, consumer, key=lambda each: each.priority_level)

    def remove(self, consumer: Consumer) -> None:
        """See DirectDispatcher.remove."""
        self._consumers.remove(consumer)

    def choose(self, metadata: MessageMetadata) -> Consumer | None:
        """See DirectDispatcher.choose."""
        consumers = self._consumers
        count = len(consumers)
        best = -1
        for i in range(count):
            index = (self._next + i) % count
            consumer = consumers[index]
            if has_room(consumer) and (best < 0 or consumer.priority_level < consumers[best].priority_level):
                best = index
                if consumer.priority_level == consumers[0].priority_level:
                    break  # no consumer has a higher priority
        if best < 0:
            return None
        self._next = best + 1
        return consumers[best]


class DirectKeyShared:
    """Key_Shared: the owner of the key's slot, whether it has room or not."""

    def __init__(self, selector: StickyKeySelector[Consumer], hash32: Callable[[bytes], int] = key_hash) -> None:
        self.selector = selector
        self._hash = hash32

    def add(self, consumer: Consumer, now: Now) -> None:
        """See DirectDispatcher.add."""
        assign_slots(self.selector, consumer, now)

    def remove(self, consumer: Consumer) -> None:
        """See DirectDispatcher.remove."""
        self.selector.remove(consumer)

    def choose(self, metadata: MessageMetadata) -> Consumer | None:
        """See DirectDispatcher.choose."""
        return self.selector.select(self.selector.slot(self._hash(dispatch_key(metadata))))
