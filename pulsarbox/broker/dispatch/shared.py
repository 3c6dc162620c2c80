"""Shared: every entry goes to one consumer, a limited number at a turn.

Whose turn it is, ``consumer_choice`` says; consumers of a lower priority level (a higher number) only have one while
nobody above can take anything.
"""

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice, repeat
from typing import Final

from pulsarbox.broker.core import Core
from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.chunks import ChunkOwners
from pulsarbox.broker.dispatch.consumer_choice import Choose
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.multiple_consumers import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.replay import At, Positions
from pulsarbox.broker.limits.dispatch_throttle import ALL, Grant, Throttle
from pulsarbox.broker.subscription.consumer import NO_SLOT, Consumer, Held
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

CHUNK = EntryFlag.CHUNK
NO_TURN: Final = -(1 << 62)
"""Consumers that have had no turn count up from here."""


class SharedDispatcher(MultipleConsumersDispatcher):
    """Dispatcher of a Shared subscription."""

    def __init__(
        self, cursor: ManagedCursor, source: EntrySource, core: Core, throttle: Throttle, choose: Choose
    ) -> None:
        super().__init__(cursor, source, core, throttle)
        self._choose = choose
        self._levels: dict[int, OrderedDict[Consumer, None]] = {}
        """Consumers that can be sent to, as far as is known, by priority level; in each in the order of their turns."""
        self._last_turn: dict[Consumer, int] = {}
        """The number of each one's last turn. Who has had none has a negative one, in the order of coming."""
        self._turns = 0
        self._arrivals = NO_TURN
        self._waiting = Positions()
        self._chunks = ChunkOwners()
        self._pinned: dict[Consumer, Positions] = {}
        """Chunks that wait for the consumer that has the chunks before them."""

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

    def _came(self, consumer: Consumer, now: Now) -> None:
        """Anybody may come, and is next."""
        self._arrivals += 1
        self._last_turn[consumer] = self._arrivals

    def _went(self, consumer: Consumer, held: Mapping[At, Held]) -> None:
        self._levels[consumer.priority_level].pop(consumer, None)
        del self._last_turn[consumer]
        self._waiting.add_all(held)
        self._waiting.add_all(self._pinned.pop(consumer, ()))
        self._chunks.forget(consumer)

    def _wait_again(self, given_back: Mapping[At, Held]) -> None:
        if len(given_back) == 1:
            self._waiting.add(*given_back)
        else:
            self._waiting.add_all(given_back)

    @property
    def waiting_again(self) -> int:
        """See MultipleConsumersDispatcher."""
        return len(self._waiting) + sum(map(len, self._pinned.values()))

    def _forget(self) -> None:
        self._waiting.clear()
        self._pinned.clear()
        self._chunks.clear()

    def _stopped_for(self) -> str:
        """See MultipleConsumersDispatcher. Chunks that waited may have been acknowledged meanwhile."""
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
                continue  # it got nothing, so it is still its turn
            self._deliver(consumer, entries, repeat(NO_SLOT))
            self._levels[consumer.priority_level].move_to_end(consumer)
            self._turns += 1
            self._last_turn[consumer] = self._turns
        return Reason.UNACKED_LIMIT

    def _held_back(self, now: Now) -> str:
        """Why nothing more is sent: there is nothing, or a dispatch rate is used up."""
        if not self._waiting and not self._pinned and self._source.exhausted:
            return Reason.END_OF_LOG
        self._source.prepare()
        self._throttle.wait(now)
        return Reason.THROTTLED

    def _send_pinned(self, grant: Grant) -> bool:
        """Send chunks to a consumer that has the chunks before them; whether that changed anything."""
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
                del level[consumer]  # it comes back with its permits, acknowledgements, or its connection
        return None

    def _take(self, consumer: Consumer, grant: Grant, now: Now) -> list[Entry] | None:
        """What the consumer gets at this turn; none where all that was found belongs to others. None where there is
        nothing to take."""
        room = self._unacked.room(consumer)
        if self._waiting:
            entries = self._again(self._waiting, room, grant)
            if not entries and self._waiting:
                return None  # it is being read
            if entries:
                return self._own(consumer, entries)
        if grant is ALL:
            entries = self._source.take(self._bounds.turn_entries, room, now)
        else:
            entries = self._source.take(grant.entries, min(room, grant.messages), now, grant.bytes)
        return self._own(consumer, entries) if entries else None

    def _again(self, waiting: Positions, room: int, grant: Grant) -> list[Entry]:
        """The oldest entries that wait to be sent again, as far as they are at hand; asks for the others.

        No more of them once ``room`` messages, the bytes of one read or what is granted are reached.
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
                room -= entry[3]
                size += len(entry[11])
            waiting.pop()
        return entries

    def _own(self, consumer: Consumer, entries: list[Entry]) -> list[Entry]:
        """Without dead letters, and without the chunks that belong to others; those wait for them."""
        entries = self._living(entries)
        if not any(entry[2] & CHUNK for entry in entries):
            return entries
        own = []
        for entry in entries:
            owner = self._chunks.owner(entry, consumer) if entry[2] & CHUNK else consumer
            if owner is consumer:
                own.append(entry)
            else:
                self._replay.keep(entry)
                self._pinned.setdefault(owner, Positions()).add((entry[0], entry[1]))
        return own
