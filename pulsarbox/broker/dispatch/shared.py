"""Shared: every entry goes to one consumer, round robin, a limited number at a turn.

What a consumer gives back (it closed, or asked for redelivery) waits in ``replay``, oldest first, and goes out before
anything new. Redelivery counts rise when a consumer asks, not when it goes away; the cursor keeps them.
"""

import logging
from bisect import insort
from collections.abc import Iterable

from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.core import Core
from pulsarbox.broker.dispatch.source import RETRY_SECONDS, EntrySource
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry

log = logging.getLogger(__name__)


class SharedDispatcher:
    """Dispatcher of a Shared subscription."""

    def __init__(self, cursor: ManagedCursor, source: EntrySource, core: Core) -> None:
        settings = core.settings
        self._cursor = cursor
        self._source = source
        self._reads = core.reads
        self._timers = core.timers
        self._quarantine = core.quarantine
        self._turn = settings.dispatcherMaxRoundRobinBatchSize
        self._max_bytes = settings.dispatcherMaxReadSizeBytes
        self._max_read = settings.dispatcherMaxReadBatchSize
        self._max_unacked_consumer = settings.maxUnackedMessagesPerConsumer
        self._max_unacked = settings.maxUnackedMessagesPerSubscription
        self._consumers: list[Consumer] = []
        self._next = 0
        self._replay: list[tuple[int, int]] = []
        self._replay_read: dict[tuple[int, int], Entry] = {}
        """Entries of ``replay`` that were read from the disk."""
        self._reading = False
        self._generation = 0
        self._blocked = False

    def add(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.add."""
        if not self._consumers:
            self._restart()
        self._consumers.append(consumer)

    def remove(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.remove."""
        self._consumers.remove(consumer)
        for position in consumer.held:
            insort(self._replay, position)
        consumer.held.clear()
        consumer.unacked = 0
        if not self._consumers:
            self._restart()
        self.acknowledged(consumer)
        self.dispatch(now)

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """Entries that the consumer holds go out again, their redelivery count one higher."""
        for position in list(consumer.held) if positions is None else positions:
            if consumer.release(position) is not None:
                self._cursor.redelivered(position)
                insort(self._replay, position)
        self.acknowledged(consumer)
        self.dispatch(now)

    def rewind(self) -> None:
        """See Dispatcher.rewind."""
        self._restart()

    def _restart(self) -> None:
        for consumer in self._consumers:
            consumer.held.clear()
            consumer.unacked = 0
            consumer.blocked = False
        self._replay.clear()
        self._replay_read.clear()
        self._generation += 1
        self._reading = False
        self._blocked = False
        self._source.rewind()

    def acknowledged(self, consumer: Consumer) -> bool:
        """The consumer holds less than before; whether something is unblocked by it, at half a limit."""
        freed = False
        if consumer.blocked and consumer.unacked <= self._max_unacked_consumer // 2:
            consumer.blocked = False
            freed = True
        if self._blocked and sum(each.unacked for each in self._consumers) <= self._max_unacked // 2:
            self._blocked = False
            freed = True
        return freed

    def dispatch(self, now: Now) -> None:
        """See Dispatcher.dispatch."""
        while not self._blocked:
            consumer = self._next_consumer()
            if consumer is None:
                return
            room = consumer.permits
            if self._max_unacked_consumer:
                room = min(room, self._max_unacked_consumer - consumer.unacked)
            entries = self._take_replay(room) if self._replay else []
            if not entries and not self._replay:
                entries = self._source.take(self._turn, room, now)
            if not entries:
                return
            self._next += 1
            consumer.deliver(entries, self._cursor.batch_acks, self._cursor.redeliveries, consumer.cnx.body_of)
            if self._max_unacked_consumer and consumer.unacked >= self._max_unacked_consumer:
                consumer.blocked = True
            if self._max_unacked and sum(each.unacked for each in self._consumers) >= self._max_unacked:
                self._blocked = True

    def _next_consumer(self) -> Consumer | None:
        """The next one, round robin, that can be sent to; lower priority levels only when no higher one can."""
        best: Consumer | None = None
        count = len(self._consumers)
        for i in range(count):
            consumer = self._consumers[(self._next + i) % count]
            if consumer.permits > 0 and not consumer.blocked and not consumer.outbox.full:
                if best is None or consumer.priority_level < best.priority_level:
                    best = consumer
        return best

    def _take_replay(self, room: int) -> list[Entry]:
        """The oldest entries that wait to be sent again, as far as they are in memory; asks for the others.

        No more of them once ``room`` messages or the bytes of one read are reached.
        """
        entries: list[Entry] = []
        size = 0
        tail = self._cursor.ledger.tail
        used = 0
        for position in self._replay:
            if len(entries) == self._turn or room <= 0 or size >= self._max_bytes:
                break
            if self._cursor.is_acked(*position):
                self._replay_read.pop(position, None)
                used += 1
                continue
            entry = tail.get(position[0], {}).get(position[1]) or self._replay_read.pop(position, None)
            if entry is None:
                break
            entries.append(entry)
            room -= entry[3]
            size += len(entry[11])
            used += 1
        missing = self._replay[used] if used < len(self._replay) and not entries else None
        del self._replay[:used]
        if missing is not None and not self._reading:
            self._read(missing)
        return entries

    def _read(self, first: tuple[int, int]) -> None:
        """Read an entry that waits to be sent again, and those right behind it that wait as well."""
        waiting = set(self._replay[: self._max_read])
        ledger_id, last = first
        while (ledger_id, last + 1) in waiting:
            last += 1
        self._reading = True
        generation = self._generation

        def answer(entries: list[Entry], error: Exception | None, now: Now) -> None:
            if generation != self._generation:
                return
            self._reading = False
            if isinstance(error, EntryDamaged):
                self._quarantine.take(error, self._cursor, now)
                damaged = (error.ledger_id, error.first), (error.ledger_id, error.last)
                self._replay = [each for each in self._replay if not damaged[0] <= each <= damaged[1]]
            elif error is not None and ledger_id in self._cursor.ledger.ledgers:  # else trimmed, so acknowledged
                log.error("subscription %s cannot read entry %s: %s", self._cursor.name, first, error)
                self._timers.at(now.monotonic + RETRY_SECONDS, self.dispatch)
                return
            self._replay_read.update({(entry[0], entry[1]): entry for entry in entries})
            self.dispatch(now)

        self._reads.ask(ledger_id, first[1], last, self._max_bytes, answer)
