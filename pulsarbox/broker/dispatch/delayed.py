"""Delayed delivery: messages that a Shared or Key_Shared subscription does not dispatch yet.

The dispatcher's source reads the log in order and skips entries that are not due. A *mark* (time, ledger, entry)
separates delayed entries that were taken from those to skip. As time advances, entries between the old and the new mark
are taken from the table (``storage.delayed_index``) if the source has skipped them; the source reaches the others
itself. So each is taken once. Memory holds one number per skipped chunk of the table, and the few entries that are due.

Unless delivery is strict, the mark is one tick ahead of the clock, as in Pulsar: messages may be up to a tick early.
The timer fires when the first skipped entry falls due, so none is late.

Source: https://pulsar.apache.org/docs/4.2.x/concepts-messaging/#delayed-message-delivery.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, Protocol

from pulsarbox.broker.dispatch.replay import Positions, ReadServices, Replay
from pulsarbox.broker.policies.kinds.delayed_delivery import DELAYED_DELIVERY
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.services import HasCommits, HasSettings
from pulsarbox.broker.timers import Timer
from pulsarbox.broker.topic.quarantine import SetAside
from pulsarbox.clock import Now
from pulsarbox.storage.acknowledged_ranges import ChunkKey
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.delayed_index import DELAY_CHUNK, Delays, TimeKey
from pulsarbox.storage.record import Entry, Position

STEPS: Final = 2000
"""Table rows that one turn examines; takes a few milliseconds."""
NEVER: Final = 1 << 63
"""Later than any time that a client can specify."""
APART_MS: Final = 10
"""Minimum interval of the timer with strict delivery, or one tick if that is shorter."""
_NOTHING: Final[TimeKey] = (0, 0, 0)


def cutoff_of(policies: TopicPolicies, services: HasSettings, now: Now) -> int:
    """Return the time (ms since 1970) up to which delayed messages may be dispatched now."""
    policy = policies.get(DELAYED_DELIVERY)
    if not policy.active:
        return NEVER
    return now.wall if services.settings.isDelayedDeliveryDeliverAtTimeStrict else now.wall + policy.tick_ms


def count_early(cursor: ManagedCursor, delays: Delays, cutoff: int) -> int:
    """Return how many unacknowledged entries fall due later than ``cutoff``.

    Entries acknowledged individually before they were due (possible only on Exclusive and Failover) still count.
    """
    return min(delays.not_due(cursor.mark_delete, cutoff).entries, cursor.backlog_entries) if delays else 0


class DelayServices(HasSettings, HasCommits, ReadServices, Protocol):
    """The services of the broker that delay messages."""


class Delayed:
    """The delayed messages of one subscription. ``ready`` is called when some fall due."""

    def __init__(
        self,
        cursor: ManagedCursor,
        delays: Delays,
        policies: TopicPolicies,
        services: DelayServices,
        ready: Callable[[Now], None],
        set_aside: SetAside,
    ) -> None:
        self._cursor = cursor
        self._ledger = cursor.ledger
        self._delays = delays
        self._policies = policies
        self._services = services
        self._commits = services.commits
        self._timers = services.timers
        self._bounds = services.bounds
        self._ready = ready
        self._replay = Replay(cursor, services, ready, set_aside)
        self._mark = _NOTHING
        self._floor = (-1, -1)
        """Skipped positions start here; earlier ones were taken under an earlier mark."""
        self._heap: list[tuple[int, int, int]] = []
        """Due time of the next entry of each skipped chunk, with the chunk's ledger and number."""
        self._next: dict[ChunkKey, int] = {}
        """The current due time by chunk; heap items that differ are stale."""
        self._due = Positions()
        """Due positions not dispatched yet."""
        self._all_due = False
        """Whether delayed delivery was turned off and the entries held back are still being dispatched."""
        self._timer: Timer | None = None
        self._rings_at = 0
        self._rang_at = 0
        self.holds = False
        """Whether any entry was skipped, or is due and not dispatched."""
        self.tired = False
        """Whether the last ``pass_by`` used up its steps; the walk continues in another turn."""

    @property
    def reading(self) -> bool:
        """Whether due messages are being read."""
        return self._replay.reading

    @property
    def next_at(self) -> int:
        """When the next message falls due (ms since 1970); 0 if none was skipped."""
        return self._heap[0][0] if self._heap else 0

    def clear(self) -> None:
        """Reset, because the source starts over."""
        self._heap.clear()
        self._next.clear()
        self._due.clear()
        self._replay.clear()
        self.holds = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Called by the source

    def is_early(self, entry: Entry, now: Now) -> bool:
        """Return whether an entry that the source has reached is not due; if so, it is skipped."""
        at, ledger_id, entry_id = entry.deliver_at, entry.ledger_id, entry.entry_id
        if not self._heap:
            self._begin((ledger_id, entry_id), now)
        if (at, ledger_id, entry_id) <= self._mark:
            return False
        if not self._delays.has(ledger_id, entry_id, at):  # its row was damaged
            self._delays.record(ledger_id, entry_id, at, len(entry.body))
            self._commits.delays_changed(self._delays)
        self._expect((ledger_id, entry_id // DELAY_CHUNK), at)
        return True

    def pass_by(self, position: Position, now: Now) -> Position:
        """Return the first unacknowledged entry from ``position`` on that the table does not show as not due.

        Chunks in which every entry is delayed are skipped as a whole. If ``tired`` is set, the returned entry was not
        checked.
        """
        self.tired = False
        if not self._delays:
            return position
        for _ in range(STEPS):
            if not self._ledger.is_readable(position):
                return position
            ledger_id, entry_id = position
            number, place = divmod(entry_id, DELAY_CHUNK)
            extent = self._delays.extent(ledger_id, number)
            if extent is None:
                return position
            if not self._heap:
                self._begin(position, now)
            if extent.last <= self._mark[0]:
                return position
            if extent.first > self._mark[0] and extent.count == self._entries(ledger_id, number):
                self._expect((ledger_id, number), extent.first)
                end = number * DELAY_CHUNK + extent.count - 1
                limit = self._ledger.read_limit
                if limit[0] == ledger_id:
                    end = min(end, limit[1] - 1)
            else:
                at = self._delays.chunk(ledger_id, number).due(place)
                if at is None or (at, ledger_id, entry_id) <= self._mark:
                    return position
                self._expect((ledger_id, number), at)
                end = entry_id
            position = self._cursor.next_unacked(self._ledger.next(ledger_id, end))
        self.tired = True
        return position

    def holds_back(self, position: Position) -> bool:
        """Return whether the table shows an entry as not due, without skipping it."""
        if not self._heap:
            return False
        ledger_id, (number, place) = position.ledger_id, divmod(position.entry_id, DELAY_CHUNK)
        if self._delays.extent(ledger_id, number) is None:
            return False
        at = self._delays.chunk(ledger_id, number).due(place)
        return at is not None and (at, *position) > self._mark

    def next_entries(
        self, max_entries: int, max_messages: int, max_bytes: int | None, passed: Position, now: Now
    ) -> list[Entry]:
        """Return skipped entries that are now due, within the limits of ``EntrySource.next_entries``.

        ``passed`` is the source's position: it reaches later entries itself.
        """
        cutoff = self._cutoff_of_held(now)
        if len(self._due) < max_entries:
            self._pull(cutoff, passed)
        entries: list[Entry] = []
        due, left = self._due, self._bounds.read_bytes
        if max_bytes is not None:
            left = min(left, max_bytes)
        while due and len(entries) < max_entries and max_messages > 0 and left > 0:
            at = due.first
            if not self._replay.is_gone(at):
                entry = self._replay.take(at)
                if entry is None:
                    if not entries:
                        self._replay.read(at, set(islice(due, self._bounds.read_entries)))
                    break
                entries.append(entry)
                max_messages -= entry.num_messages
                left -= len(entry.body)
            due.pop()
        if not due and self._heap and self.next_at <= cutoff:
            self._timers.at(now.monotonic, self._ready)
        self.holds = bool(self._heap or due)
        return entries

    def wait(self, now: Now) -> None:
        """Schedule the timer for the next message that falls due."""
        if not self._heap:
            return
        at = self.next_at
        if at <= self._mark[0]:
            return  # due already, waiting for consumers
        policy = self._policies.get(DELAYED_DELIVERY)
        at = max(at, self._rang_at + min(APART_MS, policy.tick_ms))
        if self._timer is None or at < self._rings_at:
            if self._timer is not None:
                self._timer.cancel()
            self._rings_at = at
            self._timer = self._timers.at_wall(at, self._ring)

    # Internals

    def _ring(self, now: Now) -> None:
        self._timer = None
        self._rang_at = now.wall
        self._ready(now)

    def _begin(self, position: tuple[int, int], now: Now) -> None:
        """Set the mark by the clock, wherever that is now; nothing before ``position`` is skipped."""
        self._all_due = False
        self._mark = (cutoff_of(self._policies, self._services, now), NEVER, NEVER)
        self._floor = position

    def _cutoff_of_held(self, now: Now) -> int:
        """Return the cutoff for skipped entries.

        Once delayed delivery is turned off, all of them are dispatched. If turning it on again stopped that midway, the
        mark would stay ahead of the clock forever.
        """
        cutoff = cutoff_of(self._policies, self._services, now)
        if cutoff == NEVER and self._heap:
            self._all_due = True
        return NEVER if self._all_due else cutoff

    def _entries(self, ledger_id: int, number: int) -> int:
        """Return the number of entries in a chunk; -1 if more may be added."""
        info = self._ledger.ledgers.get(ledger_id)
        if info is None:
            return -1
        left = info.confirmed - number * DELAY_CHUNK
        if left >= DELAY_CHUNK:
            return DELAY_CHUNK
        return left if info.confirmed == info.entries else -1

    def _expect(self, key: ChunkKey, at: int) -> None:
        """Note a skipped entry of a chunk."""
        known = self._next.get(key)
        if known is None or at < known:
            self._next[key] = at
            heappush(self._heap, (at, *key))
            self.holds = True
            if len(self._heap) > 2 * len(self._next) + 64:
                self._heap = [(time, *each) for each, time in self._next.items()]
                heapify(self._heap)

    def _pull(self, cutoff: int, passed: Position) -> None:
        """Move entries up to ``cutoff``, at most one read's worth, to ``_due`` and set the mark after them."""
        found: list[tuple[int, int]] = []
        looked = 0
        while self.next_at and self.next_at <= cutoff and len(found) < self._bounds.read_entries and looked < STEPS:
            at, ledger_id, number = heappop(self._heap)
            key = (ledger_id, number)
            if self._next.get(key) != at:
                continue
            del self._next[key]
            if ledger_id not in self._ledger.ledgers:
                continue
            base = number * DELAY_CHUNK
            if (ledger_id, base + DELAY_CHUNK - 1) <= self._cursor.mark_delete:
                continue
            looked += self._pull_chunk(key, cutoff, passed, found)
        if not self._heap or self.next_at > cutoff:
            self._mark = max(self._mark, (cutoff, NEVER, NEVER))
        if found:
            self._due.add_all(found)

    def _pull_chunk(self, key: ChunkKey, cutoff: int, passed: Position, found: list[tuple[int, int]]) -> int:
        """Do the same for one chunk, until another has an earlier entry; return the number of rows examined."""
        ledger_id, number = key
        base = number * DELAY_CHUNK
        chunk = self._delays.chunk(*key)
        first = at = chunk.behind(self._mark, ledger_id, base)
        end = min(len(chunk), first + STEPS)
        times, places = chunk.times, chunk.places
        limit = self._bounds.read_entries
        while at < end and len(found) < limit:
            time = times[at]
            if time > cutoff or (self._heap and (time, ledger_id, number) > self._heap[0]):
                break
            position = (ledger_id, base + places[at])
            self._mark = (time, *position)
            if self._floor <= position < passed and not self._cursor.is_acked(*position):
                found.append(position)
            at += 1
        if at < len(chunk):
            self._expect(key, times[at])
        return at - first + 1
