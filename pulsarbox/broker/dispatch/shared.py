"""Shared: every entry goes to one consumer, a limited number per turn.

``consumer_choice`` selects whose turn it is. Consumers of a lower priority (a higher level number) get a turn only
while no consumer of a higher priority is ready.
"""

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice, repeat
from typing import Final

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.chunks import ChunkOwners
from pulsarbox.broker.dispatch.consumer_choice import Choose
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.multiple_consumers import DispatchServices, MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.replay import At, Positions
from pulsarbox.broker.limits.dispatch_throttle import ALL, Grant, Throttle
from pulsarbox.broker.subscription.consumer import NO_SLOT, Consumer, HeldEntry
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

CHUNK = EntryFlag.CHUNK
NO_TURN: Final = -(1 << 62)
"""Turn numbers of consumers that have had no turn count up from here."""


class SharedDispatcher(MultipleConsumersDispatcher):
    """Dispatcher of a Shared subscription."""

    def __init__(
        self, cursor: ManagedCursor, source: EntrySource, services: DispatchServices, throttle: Throttle, choose: Choose
    ) -> None:
        super().__init__(cursor, source, services, throttle)
        self._choose = choose
        self._levels: dict[int, OrderedDict[Consumer, None]] = {}
        """Consumers believed ready, by priority level; within a level in the order of their last turns."""
        self._last_turn: dict[Consumer, int] = {}
        """Number of each consumer's last turn; before the first turn, a negative number in order of arrival."""
        self._turns = 0
        self._arrivals = NO_TURN
        self._waiting = Positions()
        self._chunks = ChunkOwners()
        self._pinned: dict[Consumer, Positions] = {}
        """Chunks that wait for the consumer that has the earlier chunks."""

    def _may_be_ready(self, consumer: Consumer) -> None:
        level = self._levels.get(consumer.priority_level)
        if level is None:
            level = self._levels[consumer.priority_level] = OrderedDict()
            self._levels = dict(sorted(self._levels.items()))
        if consumer in level:
            return
        last_turn = self._last_turn
        mine = last_turn[consumer]
        if not level or mine >= last_turn[next(reversed(level))]:
            level[consumer] = None
            return
        level[consumer] = None
        if mine < last_turn[next(iter(level))]:
            level.move_to_end(consumer, last=False)
        else:
            self._levels[consumer.priority_level] = OrderedDict.fromkeys(sorted(level, key=last_turn.__getitem__))

    def _consumer_added(self, consumer: Consumer, now: Now) -> None:
        """Accept any consumer, and make it next in turn."""
        self._arrivals += 1
        self._last_turn[consumer] = self._arrivals

    def _consumer_removed(self, consumer: Consumer, held: Mapping[At, HeldEntry]) -> None:
        self._levels[consumer.priority_level].pop(consumer, None)
        del self._last_turn[consumer]
        self._waiting.add_all(held)
        self._waiting.add_all(self._pinned.pop(consumer, ()))
        self._chunks.forget(consumer)

    def _wait_again(self, given_back: Mapping[At, HeldEntry]) -> None:
        if len(given_back) == 1:
            self._waiting.add(*given_back)
        else:
            self._waiting.add_all(given_back)

    @property
    def waiting_again(self) -> int:
        """See MultipleConsumersDispatcher.waiting_again."""
        return len(self._waiting) + sum(map(len, self._pinned.values()))

    def _forget(self) -> None:
        self._waiting.clear()
        self._pinned.clear()
        self._chunks.clear()

    def _stopped_for(self) -> str:
        """See MultipleConsumersDispatcher._stopped_for. Waiting chunks may have been acknowledged meanwhile."""
        reason = super()._stopped_for()
        if reason == Reason.CHUNKS and all(
            self._replay.is_gone(at) for pinned in self._pinned.values() for at in pinned
        ):
            return Reason.END_OF_LOG
        return reason

    def _send_all(self, now: Now) -> str:
        grant = ALL
        while not self._unacked.at_limit():
            if self._letters_wait:
                return Reason.DEAD_LETTERS
            if self._throttle.limiters:
                if self._next() is None:
                    return Reason.NO_PERMITS
                granted = self._granted(self._bounds.turn_entries, now)
                if granted is None:
                    return self._held_back(now)
                grant = granted
            if self._pinned and self._send_pinned(grant):
                continue
            consumer = self._next()
            if consumer is None:
                return Reason.NO_PERMITS
            entries = self._take(consumer, grant, now)
            if entries is None:
                return Reason.CHUNKS if self._pinned else Reason.END_OF_LOG
            if not entries:
                continue  # the consumer got nothing, so it keeps its turn
            self._deliver(consumer, entries, repeat(NO_SLOT))
            self._levels[consumer.priority_level].move_to_end(consumer)
            self._turns += 1
            self._last_turn[consumer] = self._turns
        return Reason.UNACKED_LIMIT

    def _held_back(self, now: Now) -> str:
        """Return why dispatching stops: no entries, or a used-up dispatch rate."""
        if not self._waiting and not self._pinned and self._source.exhausted:
            return Reason.END_OF_LOG
        self._source.prepare()
        self._throttle.wait(now)
        return Reason.THROTTLED

    def _send_pinned(self, grant: Grant) -> bool:
        """Send chunks to a consumer that has the earlier ones; return whether anything changed."""
        for consumer, pinned in self._pinned.items():
            if consumer.ready:
                found = self._again(pinned, self._unacked.room(consumer), grant)
                if not pinned:
                    del self._pinned[consumer]
                entries = self._living(found)
                if entries:
                    self._deliver(consumer, entries, repeat(NO_SLOT))
                if found or not pinned:
                    return True
        return False

    def _next(self) -> Consumer | None:
        for level in self._levels.values():
            while level:
                consumer = self._choose(level)
                if consumer.ready:
                    return consumer
                del level[consumer]  # added again by permits, acknowledgements or a writable connection
        return None

    def _take(self, consumer: Consumer, grant: Grant, now: Now) -> list[Entry] | None:
        """Return the consumer's entries for this turn; None if there is nothing to take.

        The list is empty if every entry found belongs to other consumers or became a dead letter.
        """
        room = self._unacked.room(consumer)
        if self._waiting:
            entries = self._again(self._waiting, room, grant)
            if not entries and self._waiting:
                return None  # being read
            if entries:
                return self._own(consumer, entries)
        if grant is ALL:
            entries = self._source.next_entries(self._bounds.turn_entries, room, now)
        else:
            entries = self._source.next_entries(grant.entries, min(room, grant.messages), now, grant.bytes)
        return self._own(consumer, entries) if entries else None

    def _again(self, waiting: Positions, room: int, grant: Grant) -> list[Entry]:
        """Return the oldest waiting entries that are in memory, and read the others.

        Stops once ``room`` messages, the bytes of one read or the grant are reached.
        """
        entries: list[Entry] = []
        size = 0
        most, enough = self._bounds.turn_entries, self._bounds.read_bytes
        if grant is not ALL:
            most, room, enough = min(most, grant.entries), min(room, grant.messages), min(enough, grant.bytes)
        while waiting and len(entries) < most and room > 0 and size < enough:
            at = waiting.first
            if not self._replay.is_gone(at):
                entry = self._replay.take(at)
                if entry is None:
                    if not entries:
                        self._replay.read(at, set(islice(waiting, self._bounds.read_entries)))
                    break
                entries.append(entry)
                room -= entry.num_messages
                size += len(entry.body)
            waiting.pop()
        return entries

    def _own(self, consumer: Consumer, entries: list[Entry]) -> list[Entry]:
        """Remove dead letters, and queue chunks that belong to other consumers."""
        entries = self._living(entries)
        if not any(entry.flags & CHUNK for entry in entries):
            return entries
        own = []
        for entry in entries:
            owner = self._chunks.owner(entry, consumer) if entry.flags & CHUNK else consumer
            if owner is consumer:
                own.append(entry)
            else:
                self._replay.cache(entry)
                self._pinned.setdefault(owner, Positions()).add((entry.ledger_id, entry.entry_id))
        return own
