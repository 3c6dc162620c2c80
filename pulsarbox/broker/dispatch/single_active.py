"""Exclusive and Failover: one consumer gets everything, in order.

With Failover the active consumer is the one of the lowest priority level, among equals the first by name; on partition
i of a partitioned topic the i-th of them, counted round. The others are told that they wait.
"""

from collections.abc import Iterable

from pulsarbox.broker.consumer import BodyOf, Consumer
from pulsarbox.broker.dispatch.source import EntrySource
from pulsarbox.broker.dispatch.standstill import Reason, Standstill
from pulsarbox.clock import Now
from pulsarbox.errors import ConsumerBusy
from pulsarbox.protocol import replies
from pulsarbox.storage.cursor import ManagedCursor

MAX_HELD = 50_000
"""Entries of one consumer that acknowledgements find without a read. A reader that never acknowledges costs no more."""

FAILOVER_NOTICE_VERSION = 12
"""Protocol version from which a client understands ACTIVE_CONSUMER_CHANGE."""


class SingleActiveDispatcher:
    """Dispatcher of an Exclusive or a Failover subscription."""

    def __init__(
        self, cursor: ManagedCursor, source: EntrySource, batch: int, *, failover: bool, partition: int
    ) -> None:
        self._cursor = cursor
        self._source = source
        self._batch = batch
        self._failover = failover
        self._partition = max(partition, 0)
        self._consumers: list[Consumer] = []
        self.active: Consumer | None = None
        self.standstill = Standstill()

    def add(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.add."""
        if self._consumers and not self._failover:
            self._consumers[0].cnx.check_alive(now)
            raise ConsumerBusy("Exclusive consumer is already connected")
        self._consumers.append(consumer)
        self._consumers.sort(key=lambda each: (each.priority_level, each.name))
        if not self._choose(now) and self._failover:
            self._notify(consumer)

    def remove(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """See Dispatcher.remove."""
        self._consumers.remove(consumer)
        consumer.held.clear()
        self._choose(now)

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """Everything unacknowledged is sent again, in order, whichever entries are asked for."""
        if consumer is self.active:
            self.rewind()
            self.dispatch(now)

    def rewind(self) -> None:
        """See Dispatcher.rewind."""
        for consumer in self._consumers:
            consumer.held.clear()
            consumer.unacked = 0
        self._source.rewind()

    def dispatch(self, now: Now) -> None:
        """See Dispatcher.dispatch."""
        consumer = self.active
        if consumer is None:
            self.standstill.stopped(Reason.NO_CONSUMER, now)
            return
        outbox = consumer.outbox
        body_of: BodyOf | None = consumer.cnx.body_of
        reason, sent = Reason.NO_PERMITS, False
        while consumer.permits > 0 and not outbox.full:
            entries = self._source.take(self._batch, consumer.permits, now)
            if not entries:
                reason = Reason.END_OF_LOG
                break
            consumer.deliver(entries, self._cursor.batch_acks, {}, body_of)
            sent = True
            held = consumer.held
            while len(held) > MAX_HELD:
                consumer.release(next(iter(held)))
        self.standstill.stopped(reason, now, sent=sent)

    def flow(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.flow."""
        if consumer is self.active:
            self.dispatch(now)

    def acknowledged(self, consumer: Consumer, now: Now) -> None:
        """Nothing depends on what is unacknowledged here."""

    def acknowledged_unheld(self, at: tuple[int, int]) -> None:
        """Nothing depends on it here."""

    def why(self) -> str:
        """See Dispatcher.why."""
        reason = self.standstill.reason
        if self.active is None:
            return Reason.NO_CONSUMER
        if reason == Reason.NO_PERMITS and self.active.permits > 0:
            return Reason.SLOW_CONNECTION
        if reason == Reason.END_OF_LOG and self._source.reading:
            return Reason.READING
        return reason

    def _choose(self, now: Now) -> bool:
        """Let the right consumer be the active one; whether that is a change."""
        chosen = None
        if self._consumers:
            first = [each for each in self._consumers if each.priority_level == self._consumers[0].priority_level]
            chosen = first[self._partition % len(first)]
        if chosen is self.active:
            return False
        self.active = chosen
        self.rewind()
        if self._failover:
            for consumer in self._consumers:
                self._notify(consumer)
        self.dispatch(now)
        return True

    def _notify(self, consumer: Consumer) -> None:
        if consumer.cnx.protocol_version >= FAILOVER_NOTICE_VERSION:
            consumer.outbox.send(
                replies.active_consumer_change(consumer.consumer_id, is_active=consumer is self.active)
            )
