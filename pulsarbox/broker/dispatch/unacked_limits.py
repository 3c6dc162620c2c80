"""Limits on unacknowledged messages per consumer, subscription and broker.

A consumer or subscription at its limit gets nothing more until it has acknowledged half of it
(``maxUnackedMessagesPerConsumer``, ``maxUnackedMessagesPerSubscription``). The broker's limit,
``maxUnackedMessagesPerBroker``, blocks only subscriptions that hold more than their share.
"""

from collections.abc import Callable, Iterable

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.config import Settings


class BrokerUnacked:
    """Unacknowledged messages of all Shared and Key_Shared subscriptions."""

    __slots__ = ("_limit", "_waiting", "blocked", "messages", "share")

    def __init__(self, settings: Settings) -> None:
        self._limit = settings.maxUnackedMessagesPerBroker
        percent = settings.maxUnackedMessagesPerSubscriptionOnBrokerBlocked
        self.share = int(self._limit * percent)
        """Messages that a subscription may hold while the broker is at its limit."""
        self.messages = 0
        self.blocked = False
        self._waiting: dict[Callable[[Now], None], None] = {}

    def sent(self) -> None:
        """Check the limit after messages were sent."""
        if self._limit and self.messages >= self._limit:
            self.blocked = True

    def released(self, now: Now) -> None:
        """Resume waiting subscriptions if acknowledgements have brought the count to half the limit."""
        if self.blocked and self.messages <= self._limit // 2:
            self.blocked = False
            waiting, self._waiting = self._waiting, {}
            for go_on in waiting:
                go_on(now)

    def wait(self, go_on: Callable[[Now], None]) -> None:
        """Call back when the limit no longer applies."""
        self._waiting[go_on] = None


class Unacked:
    """Unacknowledged messages and limits of one subscription."""

    __slots__ = ("_broker", "_broker_holds", "_go_on", "_max", "_max_consumer", "blocked", "messages")

    def __init__(self, settings: Settings, broker: BrokerUnacked, go_on: Callable[[Now], None]) -> None:
        self._max = settings.maxUnackedMessagesPerSubscription
        self._max_consumer = settings.maxUnackedMessagesPerConsumer
        """0 means no limit."""
        self._broker = broker
        self._go_on = go_on
        self.blocked = False
        """Whether the subscription's limit is reached."""
        self._broker_holds = False
        """Whether the broker's limit blocked this subscription at the last check."""
        self.messages = 0

    def limit(self, per_consumer: int, per_subscription: int, consumers: Iterable[Consumer]) -> bool:
        """Apply new limits; return whether any changed.

        Consumers and the subscription are blocked or unblocked at once by a limit that changed.
        """
        if (self._max_consumer, self._max) == (per_consumer, per_subscription):
            return False
        if per_consumer != self._max_consumer:  # a consumer blocked by an unchanged limit still resumes at half of it
            self._max_consumer = per_consumer
            for consumer in consumers:
                consumer.blocked = 0 < per_consumer <= consumer.unacked
        if per_subscription != self._max:
            self._max = per_subscription
            self.blocked = 0 < per_subscription <= self.messages
        return True

    def _count(self, consumer: Consumer) -> None:
        """Update the totals after the consumer's count changed. Called per command, not per message."""
        change = consumer.unacked - consumer.counted
        consumer.counted = consumer.unacked
        self.messages += change
        self._broker.messages += change

    def room(self, consumer: Consumer) -> int:
        """Return how many messages the consumer may be sent; the last entry may exceed it."""
        if self._max_consumer:
            return min(consumer.permits, self._max_consumer - consumer.unacked)
        return consumer.permits

    def at_limit(self) -> bool:
        """Return whether the subscription is blocked; if by the broker's limit, register to be resumed."""
        self._broker_holds = self._broker.blocked and self.messages > self._broker.share
        if self._broker_holds:
            self._broker.wait(self._go_on)
            return True
        return self.blocked

    def sent(self, consumer: Consumer) -> None:
        """Update counts and limits after messages were sent to the consumer."""
        self._count(consumer)
        if self._max_consumer and consumer.unacked >= self._max_consumer:
            consumer.blocked = True
        if self._max and self.messages >= self._max:
            self.blocked = True
        self._broker.sent()

    def released(self, consumer: Consumer) -> bool:
        """Update counts after an acknowledgement; return whether the consumer or subscription can resume."""
        self._count(consumer)
        freed = False
        if consumer.blocked and consumer.unacked <= self._max_consumer // 2:
            consumer.blocked = False
            freed = True
        if self.blocked and self.messages <= self._max // 2:
            self.blocked = False
            freed = True
        if self._broker_holds and self.messages <= self._broker.share:
            self._broker_holds = False
            freed = True
        return freed

    def resume_others(self, now: Now) -> None:
        """Check the broker's limit after ``released``, once it is known which consumers are ready."""
        self._broker.released(now)

    def reset(self, consumers: Iterable[Consumer]) -> None:
        """Reset after all consumers have released their entries."""
        for consumer in consumers:
            consumer.blocked = False
            self._count(consumer)
        self.blocked = False
