"""Entries for a dispatcher: from the tail in memory, or from reads ahead in the backlog."""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from pulsarbox.broker.compaction.compacted_reader import CompactedReading
from pulsarbox.broker.dispatch.delayed import Delayed
from pulsarbox.broker.dispatch.read_limits import RETRY_SECONDS
from pulsarbox.broker.dispatch.replay import ReadServices
from pulsarbox.broker.topic.quarantine import SetAside
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, Position

log = logging.getLogger(__name__)

HOLES_READ = 64
"""Maximum span of a read that leaves out acknowledged ranges, as a multiple of a plain read's."""

NO_RUN: Final = ((1 << 64, 0), (1 << 64, 0))
"""Sentinel after the last run of acknowledged entries."""
NO_TAIL: Final[dict[int, Entry]] = {}


class AckedAhead:
    """Tests entries in ascending order for acknowledgement, including in open transactions.

    Valid until another entry is acknowledged.
    """

    __slots__ = ("_claims", "_cursor", "_run", "_runs", "last")

    def __init__(self, cursor: ManagedCursor) -> None:
        self._cursor = cursor
        self._claims = cursor.claims
        self.last = NO_RUN[0] if self._claims is not None else cursor.last_acked
        """Entries after this one need not be tested."""
        self._runs: Iterator[tuple[tuple[int, int], tuple[int, int]]] | None = None
        self._run = NO_RUN

    def has(self, at: tuple[int, int]) -> bool:
        """Return whether the entry is acknowledged, by advancing through the runs instead of searching."""
        if at <= self._cursor.mark_delete or (self._claims is not None and self._claims.has(at)):
            return True
        if self._runs is None:
            self._runs = self._cursor.ranges.runs_from(*at)
            self._run = next(self._runs, NO_RUN)
        while self._run[1] < at:
            self._run = next(self._runs, NO_RUN)
        return self._run[0] <= at


class EntrySource:
    """Reads the unacknowledged, confirmed entries of one cursor in order, starting at ``position``.

    ``ready`` is called when a read has brought entries that an earlier ``take`` lacked.
    """

    def __init__(
        self, cursor: ManagedCursor, services: ReadServices, ready: Callable[[Now], None], set_aside: SetAside
    ) -> None:
        self._cursor = cursor
        self._ledger: ManagedLedger = cursor.ledger
        self._reads = services.reads
        self._timers = services.timers
        self.set_aside = set_aside
        self._bounds = services.bounds
        self._damaged: dict[Position, Position] = {}
        """First position of each damaged range, and the position after the range."""
        self._ready = ready
        self._ahead: deque[Entry] = deque()
        self.reading = False
        self._generation = 0
        """Incremented by a rewind, so that responses to earlier reads are recognised and dropped."""
        self._starved = False
        self.delayed: Delayed | None = None
        """Delayed messages; None if the subscription ignores delays."""
        self.compactable: CompactedReading | None = None
        """Reader of the compacted view, once a consumer has requested it."""
        self.compacted: CompactedReading | None = None
        """``compactable`` while the active consumer reads the compacted view, else None."""
        self.position = Position(-1, -1)
        self.rewind()

    def choose(self, *, compacted: bool) -> None:
        """Select the compacted view or the plain log, from the next ``rewind`` on."""
        if self.compacted is not None:
            self.compacted.leave()
        self.compacted = self.compactable if compacted else None

    def rewind(self) -> None:
        """Start over at the first unacknowledged entry."""
        compacted = self.compacted
        self.position = self._ledger.next(*self._cursor.mark_delete) if compacted is None else compacted.rewind()
        self._ahead.clear()
        self._generation += 1
        self.reading = self._starved = False
        if self.delayed is not None:
            self.delayed.clear()
        if self._cursor.claims is not None:
            self._cursor.claims.rewound()

    def next_entries(self, max_entries: int, max_messages: int, now: Now, max_bytes: int | None = None) -> list[Entry]:
        """Return the next entries; an empty list if there are none, or none yet.

        Returns up to ``max_entries``, and stops once ``max_messages``, ``max_bytes`` or the bytes of one read are
        reached.
        """
        delayed = self.delayed
        if self.compacted is not None:
            return self._next_compacted(self.compacted, max_entries, max_messages, now, max_bytes)
        if delayed is None:
            return self._next_in_order(max_entries, max_messages, now, max_bytes)
        if delayed.holds:
            due = delayed.next_entries(max_entries, max_messages, max_bytes, self.position, now)
            if due:
                return due
        taken = self._next_in_order(max_entries, max_messages, now, max_bytes)
        if delayed.holds:
            delayed.wait(now)
        return taken

    def _next_compacted(
        self, compacted: "CompactedReading", max_entries: int, max_messages: int, now: Now, max_bytes: int | None
    ) -> list[Entry]:
        """Do the same from the compacted view, up to its horizon."""
        inside = compacted.inside
        while compacted.has(self.position):
            if not inside:  # entries read from the log come after the view, or are obsolete
                self._ahead.clear()
                self._generation += 1
                self.reading = self._starved = False
            taken, position = compacted.next_entries(max_entries, max_messages, max_bytes, self.position, now)
            if not compacted.inside and position >= self._ledger.first_position():
                position = self._ledger.next(position.ledger_id, position.entry_id - 1)
            self.position = position  # if that is trimmed, keep the position: the next view may contain it
            if taken or compacted.inside:
                return taken
            inside = False
        return self._next_in_order(max_entries, max_messages, now, max_bytes)

    def _next_in_order(self, max_entries: int, max_messages: int, now: Now, max_bytes: int | None) -> list[Entry]:
        """Do the same in log order."""
        delayed = self.delayed
        taken: list[Entry] = []
        cursor, ahead = self._cursor, self._ahead
        ledger_id, entry_id = self.position
        tail, border = self._tail(ledger_id)
        enough = 0
        acked = AckedAhead(cursor)
        while len(taken) < max_entries and max_messages > 0:
            if ahead:
                entry: Entry | None = ahead.popleft()
            else:
                entry = tail.get(entry_id) if entry_id < border else None
            if entry is None:
                following = self._missing(ledger_id, entry_id, bool(taken), now)
                if following is None:
                    break
                ledger_id, entry_id = following
                if delayed is not None and delayed.tired:
                    self._timers.at(now.monotonic, self._ready)
                    break
                tail, border = self._tail(ledger_id)
                acked = AckedAhead(cursor)
                continue
            ledger_id, entry_id = at = entry.ledger_id, entry.entry_id
            entry_id += 1
            if at <= acked.last and acked.has(at):
                continue
            if entry.deliver_at and delayed is not None and delayed.is_early(entry, now):
                continue
            if not taken:
                enough = entry.total_bytes + self._bounds.read_bytes
                if max_bytes is not None:
                    enough = min(enough, entry.total_bytes + max_bytes - len(entry.body))
            taken.append(entry)
            max_messages -= entry.num_messages
            if entry.total_bytes >= enough:
                break
        self.position = Position(ledger_id, entry_id)
        if not self.reading and len(ahead) < self._bounds.read_entries // 2:
            self._read_ahead()
        return taken

    def _tail(self, ledger_id: int) -> tuple[dict[int, Entry], int]:
        """Return a ledger's entries in memory, and the entry ID up to which they may be taken."""
        ledger, limit = self._ledger, self._ledger.read_limit
        border = NO_RUN[0][0] if ledger_id < limit[0] else limit[1] if ledger_id == limit[0] else 0
        return ledger.tail.get(ledger_id, NO_TAIL), border

    def dropped(self) -> None:
        """Discard entries of deleted ledgers."""
        ledgers = self._ledger.ledgers
        if any(entry.ledger_id not in ledgers for entry in self._ahead):
            self._ahead = deque(entry for entry in self._ahead if entry.ledger_id in ledgers)

    def has_more_than(self, entries: int) -> bool:
        """Return whether more than ``entries`` remain, counting acknowledged ones ahead of the position."""
        ledger_id, entry_id = self.position
        left = 0
        for info in reversed(self._ledger.ledgers.values()):
            if info.ledger_id < ledger_id:
                break
            left += info.confirmed - (entry_id if info.ledger_id == ledger_id else 0)
            if left > entries:
                return True
        return False

    def prepare(self) -> None:
        """Read ahead, so that entries are available once they may be taken."""
        if self.compacted is not None and self.compacted.inside:
            self.compacted.prepare()
        elif not self.reading and not self._ahead:
            self._read_ahead()

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to take. Delayed entries count as left, because they may be due."""
        if self._ahead or (self.delayed is not None and self.delayed.holds):
            return False
        if self.compacted is not None and self.compacted.inside:
            return False
        ledger_id, entry_id = self.position
        following = self._cursor.next_unacked(self._ledger.next(ledger_id, entry_id - 1))
        return not self._ledger.is_readable(following)

    def _missing(self, ledger_id: int, entry_id: int, some: bool, now: Now) -> Position | None:
        """Handle an entry that is not in memory: return the position to continue at, or None to stop."""
        following = self._cursor.next_unacked(self._ledger.next(ledger_id, entry_id - 1))
        following = self._damaged.get(following, following)
        if self.delayed is not None:
            following = self.delayed.pass_by(following, now)
        if following != (ledger_id, entry_id):
            return following
        if self._ledger.is_readable(following) and not some:
            self._starved = True
            if not self.reading:
                self._read(following)
        return None

    def _read_ahead(self) -> None:
        """Read the next entries of the backlog before they are needed."""
        last = self._ahead[-1] if self._ahead else None
        following = self._ledger.next(last.ledger_id, last.entry_id) if last is not None else self.position
        if self._ledger.is_readable(following):
            tail = self._ledger.tail.get(following.ledger_id)
            if tail is None or following.entry_id not in tail:
                following = self._cursor.next_unacked(following)
                if self.delayed is not None and self.delayed.holds_back(following):
                    return  # skipped without a read once ``take`` reaches it
                self._read(self._damaged.get(following, following))

    def _read(self, first: Position) -> None:
        info = self._ledger.ledgers.get(first.ledger_id)
        if info is None or first.entry_id >= info.confirmed or first >= self._ledger.read_limit:
            return
        self.reading = True
        left_out: list[tuple[int, int]] = []
        last = min(info.confirmed - 1, self._end_of_read(first, left_out))
        limit = self._ledger.read_limit
        if limit[0] == first.ledger_id:
            last = min(last, limit[1] - 1)
        answer = partial(self._answer, self._generation, first)
        self._reads.ask(first.ledger_id, first.entry_id, last, self._bounds.read_bytes, answer, tuple(left_out))

    def _end_of_read(self, first: Position, left_out: list[tuple[int, int]]) -> int:
        """Return the last entry ID of a read of unacknowledged entries, adding the acknowledged runs between them."""
        last = first.entry_id + self._bounds.read_entries - 1
        if first > self._cursor.last_acked:
            return last
        furthest = first.entry_id + HOLES_READ * self._bounds.read_entries - 1
        for (ledger_id, start), (_, end) in self._cursor.ranges.runs_from(*first):
            if ledger_id != first.ledger_id or start > last:
                break
            if end > first.entry_id:  # the run may end before ``first``
                left_out.append((start, end))
                last += end - start + 1
                if last >= furthest:
                    return furthest
        return last

    def _answer(
        self, generation: int, first: Position, entries: list[Entry], error: Exception | None, now: Now
    ) -> None:
        if generation != self._generation:
            return
        self.reading = False
        if first.ledger_id not in self._ledger.ledgers:
            # Trimmed during the read, so acknowledged on all subscriptions: there is nothing to wait for.
            self._starved = False
            self._ready(now)
            return
        if isinstance(error, EntryDamaged):
            damaged = Position(error.ledger_id, error.first)
            self._damaged[damaged] = self._ledger.next(error.ledger_id, error.last)
            self.set_aside(error, now)
            self._starved = False
            self._ready(now)
            return
        if error is not None:
            log.error("subscription %s of topic %d cannot read: %s", self._cursor.name, self._ledger.topic_id, error)
            self._timers.at(now.monotonic + RETRY_SECONDS, self._ready)
            return
        if entries and entries[0][:2] < self.position:
            entries = [entry for entry in entries if entry[:2] >= self.position]
        self._ahead.extend(entries)
        if self._starved:
            self._starved = False
            self._ready(now)
