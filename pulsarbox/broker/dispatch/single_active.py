"""Exclusive and Failover: one consumer gets everything, in order.

On Failover the other consumers wait. A new active consumer is chosen at once but takes over after a delay. Until then
nothing is sent, and acknowledgements of the previous one still count. Then every consumer is notified which of them is
active. A new consumer that is not chosen is notified at once. Sources: PersistentDispatcherSingleActiveConsumer of
Pulsar 4.2, failover.py.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from pulsarbox.broker.dispatch.blocked_reason import BlockedSince, Reason
from pulsarbox.broker.dispatch.compatibility import refuse_second
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.failover import choose_active, rank
from pulsarbox.broker.limits.dispatch_throttle import ANY, Grant, Throttle
from pulsarbox.broker.services import HasReadLimits, HasSettings, HasTimers
from pulsarbox.broker.subscription.consumer import BodyOf, Consumer
from pulsarbox.broker.timers import Timer
from pulsarbox.clock import Now
from pulsarbox.names import TopicName
from pulsarbox.protocol import replies
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry

MAX_HELD = 50_000
"""Approximate number of held entries per consumer, which acknowledgements find without a read.

Bounds the memory of a reader that never acknowledges.
"""

FAILOVER_NOTICE_VERSION = 12
"""Minimum protocol version of clients that understand ACTIVE_CONSUMER_CHANGE."""


class SingleActiveServices(HasSettings, HasTimers, HasReadLimits, Protocol):
    """The services of the broker that dispatch to one active consumer."""


class SingleActiveDispatcher:
    """Dispatcher of an Exclusive or Failover subscription."""

    def __init__(
        self,
        cursor: ManagedCursor,
        source: EntrySource,
        services: SingleActiveServices,
        throttle: Throttle,
        *,
        failover: bool,
        topic: TopicName,
    ) -> None:
        settings = services.settings
        self._cursor = cursor
        self._source = source
        self._timers = services.timers
        self._bounds = services.bounds
        self._throttle = throttle
        self._failover = failover
        self._delay = settings.activeConsumerFailoverDelayTimeMillis / 1000 if failover else 0.0
        self._consistent_hashing = settings.activeConsumerFailoverConsistentHashing
        self._topic = topic
        self._consumers: list[Consumer] = []
        self._activate_at: Timer | None = None
        """Timer of a pending takeover; None if none is pending."""
        self.active: Consumer | None = None
        self.standstill = BlockedSince()

    @property
    def awaits_failover(self) -> bool:
        """Whether the active consumer is waiting for the failover delay and gets nothing yet."""
        return self._activate_at is not None

    def add(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.add."""
        if self._consumers and not self._failover:
            refuse_second(self._consumers[0], now)
        self._consumers.append(consumer)
        self._consumers.sort(key=rank)
        if not self._choose(now) and self._failover:
            notify(consumer, self.active)

    def remove(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """See Dispatcher.remove."""
        self._consumers.remove(consumer)
        consumer.held.clear()
        self._choose(now)

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """Send all unacknowledged entries again, in order, whichever positions were requested."""
        if consumer is self.active and not self.awaits_failover:
            self.rewind()
            self.dispatch(now)

    def rewind(self) -> None:
        """See Dispatcher.rewind."""
        for consumer in self._consumers:
            consumer.release_all()
        self._source.choose(compacted=self.active is not None and self.active.read_compacted)
        self._source.rewind()

    def dispatch(self, now: Now) -> None:
        """See Dispatcher.dispatch."""
        consumer = self.active
        if consumer is None or self._activate_at is not None:
            return  # ``_choose`` has recorded the reason
        outbox = consumer.outbox
        body_of: BodyOf | None = consumer.cnx.body_of
        reason, sent, limited = Reason.NO_PERMITS, False, bool(self._throttle.limiters)
        while consumer.permits > 0 and not outbox.full:
            if limited:
                if not self._send_limited(consumer, now):
                    reason = self._held_back(now)
                    break
            else:
                entries = self._source.next_entries(self._bounds.read_entries, consumer.permits, now)
                if not entries:
                    reason = Reason.END_OF_LOG
                    break
                self._deliver(consumer, entries, body_of)
            consumer.sent(now)
            sent = True
            excess = len(consumer.held) - MAX_HELD
            if excess > MAX_HELD // 10:  # in bulk: finding the first keys of a dict scans the slots of deleted ones
                for position in list(islice(consumer.held, excess)):
                    dropped = consumer.release(position)
                    consumer.forgotten += dropped.messages if dropped is not None else 0
        self.standstill.stopped(reason, now, sent=sent)

    def _deliver(self, consumer: Consumer, entries: list[Entry], body_of: BodyOf | None) -> None:
        compacted = self._source.compacted
        if compacted is None:
            consumer.deliver(entries, self._cursor.ack_sets, {}, body_of)
        else:
            consumer.deliver(entries, compacted.ack_sets(entries), {}, body_of)
            compacted.corrected(consumer.held)

    def _send_limited(self, consumer: Consumer, now: Now) -> bool:
        """Send what the dispatch rates allow now; return whether anything was sent."""
        grant = self._throttle.allowed(Grant(self._bounds.read_entries, consumer.permits, ANY), now)
        if grant is None:
            return False
        entries = self._source.next_entries(grant.entries, grant.messages, now, grant.bytes)
        if not entries:
            return False
        messages, size = consumer.messages_out, consumer.bytes_out
        self._deliver(consumer, entries, consumer.cnx.body_of)
        self._throttle.sent(len(entries), consumer.messages_out - messages, consumer.bytes_out - size)
        return True

    def _held_back(self, now: Now) -> str:
        """Return why dispatching stopped: no entries, or a used-up dispatch rate."""
        if self._throttle.refusing is None or self._source.exhausted:
            return Reason.END_OF_LOG
        self._source.prepare()
        self._throttle.wait(now)
        return Reason.THROTTLED

    def flow(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.flow."""
        if consumer is self.active:
            self.dispatch(now)

    def acknowledged(self, consumer: Consumer, now: Now) -> None:
        """Do nothing: dispatching does not depend on unacknowledged entries here."""

    def acknowledged_unheld(self, at: tuple[int, int]) -> None:
        """Do nothing: dispatching does not depend on unacknowledged entries here."""

    def blocked_reason(self) -> str:
        """See Dispatcher.blocked_reason."""
        reason = self.standstill.reason
        if reason == Reason.NO_PERMITS and self.active is not None and self.active.permits > 0:
            return Reason.SLOW_CONNECTION
        compacted = self._source.compacted
        if reason == Reason.END_OF_LOG and (self._source.reading or (compacted is not None and compacted.reading)):
            return Reason.READING
        return reason

    def _choose(self, now: Now) -> bool:
        """Choose the active consumer; return whether it changed."""
        chosen = choose_active(
            self._consumers,
            topic=str(self._topic),
            partition=self._topic.partition_index,
            consistent_hashing=self._consistent_hashing,
        )
        if chosen is self.active:
            return False
        self.active = chosen
        if chosen is None:
            self.rewind()
            self.standstill.stopped(Reason.NO_CONSUMER, now)
        elif not self._delay:
            self._activate(now)
        else:
            if self._activate_at is None:
                self._activate_at = self._timers.at(now.monotonic + self._delay, self._activate)
            self.standstill.stopped(Reason.TAKING_OVER, now)
        return True

    def _activate(self, now: Now) -> None:
        """Start dispatching to the consumer that is active by now."""
        self._activate_at = None
        if self.active is None:
            return  # the subscription may have another type by now, and the source another dispatcher
        self.rewind()
        if self._failover:
            for consumer in self._consumers:
                notify(consumer, self.active)
        self.dispatch(now)


def notify(consumer: Consumer, active: Consumer | None) -> None:
    """Notify a consumer whether it is active, if its client supports that."""
    if consumer.cnx.protocol_version >= FAILOVER_NOTICE_VERSION:
        consumer.outbox.send(replies.active_consumer_change(consumer.consumer_id, is_active=consumer is active))
