"""Limits on messages that are sent and not acknowledged: of a consumer, of a subscription, of the broker.

Whoever reaches one gets nothing more until it has acknowledged half of it (``maxUnackedMessagesPerConsumer``,
``maxUnackedMessagesPerSubscription``). Of the broker's, ``maxUnackedMessagesPerBroker``, only those subscriptions feel
something that hold more than their share of it.
"""

from collections.abc import Callable, Iterable

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.config import Settings


class BrokerUnacked:
    """The unacknowledged messages of all Shared and Key_Shared subscriptions."""

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
        """Messages were sent."""
        if self._limit and self.messages >= self._limit:
            self.blocked = True

    def released(self, now: Now) -> None:
        """Messages were acknowledged or given back: those that the limit held back may go on."""
        if self.blocked and self.messages <= self._limit // 2:
            self.blocked = False
            waiting, self._waiting = self._waiting, {}
            for go_on in waiting:
                go_on(now)

    def wait(self, go_on: Callable[[Now], None]) -> None:
        """Call back when the limit holds no longer."""
        self._waiting[go_on] = None


class Unacked:
    """The unacknowledged messages of one subscription, and what its limits say."""

    __slots__ = ("_broker", "_broker_holds", "_go_on", "_max", "_max_consumer", "blocked", "messages")

    def __init__(self, settings: Settings, broker: BrokerUnacked, go_on: Callable[[Now], None]) -> None:
        self._max = settings.maxUnackedMessagesPerSubscription
        self._max_consumer = settings.maxUnackedMessagesPerConsumer
        """0: no limit."""
        self._broker = broker
        self._go_on = go_on
        self.blocked = False
        """The limit of the subscription is reached."""
        self._broker_holds = False
        """The broker's limit has held this subscription back, and it may do so still."""
        self.messages = 0

    def limit(self, per_consumer: int, per_subscription: int, consumers: Iterable[Consumer]) -> bool:
        """The limits are these from now on; whoever is held back by one that was another is so at once, and others no
        longer.

        Whether one was another before.
        """
        if (self._max_consumer, self._max) == (per_consumer, per_subscription):
            return False
        if per_consumer != self._max_consumer:  # who has reached one that stays goes on at half of it, as ever
            self._max_consumer = per_consumer
            for consumer in consumers:
                consumer.blocked = 0 < per_consumer <= consumer.unacked
        if per_subscription != self._max:
            self._max = per_subscription
            self.blocked = 0 < per_subscription <= self.messages
        return True

    def _count(self, consumer: Consumer) -> None:
        """The consumer holds more or less than it did. Once a command, not once a message."""
        change = consumer.unacked - consumer.counted
        consumer.counted = consumer.unacked
        self.messages += change
        self._broker.messages += change

    def room(self, consumer: Consumer) -> int:
        """Messages that the consumer may be sent; the last entry may go beyond."""
        if self._max_consumer:
            return min(consumer.permits, self._max_consumer - consumer.unacked)
        return consumer.permits

    def at_limit(self) -> bool:
        """Whether the subscription gets nothing."""
        self._broker_holds = self._broker.blocked and self.messages > self._broker.share
        if self._broker_holds:
            self._broker.wait(self._go_on)
            return True
        return self.blocked

    def sent(self, consumer: Consumer) -> None:
        """Messages were sent to the consumer."""
        self._count(consumer)
        if self._max_consumer and consumer.unacked >= self._max_consumer:
            consumer.blocked = True
        if self._max and self.messages >= self._max:
            self.blocked = True
        self._broker.sent()

    def released(self, consumer: Consumer) -> bool:
        """The consumer holds less than before; whether it, or the subscription, goes on now."""
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

    def others_go_on(self, now: Now) -> None:
        """After ``released``, when it is known who can be sent to: the broker's limit may hold no longer."""
        self._broker.released(now)

    def reset(self, consumers: Iterable[Consumer]) -> None:
        """Nobody holds anything."""
        for consumer in consumers:
            consumer.blocked = False
            self._count(consumer)
        self.blocked = False
