"""Oldest message of a backlog for an age quota that excludes delayed messages.

The age of a delayed message begins when it is due, that of any other when it was published. So the oldest one is the
first undelayed message in the log or the delayed message that is due first. Both are searched in the delayed index,
over several turns. A search resumes where the last one ended, which takes two numbers per chunk of the index.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from pulsarbox.broker.policies.kinds.message_ttl import age_begins
from pulsarbox.broker.subscription.first_unacked import expiring, first_unacked
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.clock import Now
from pulsarbox.storage.acknowledged_ranges import ChunkKey
from pulsarbox.storage.delayed_index import DELAY_CHUNK, Extent
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.recovery import StoredTopic

STEPS: Final = 2000
"""Rows of the delayed index, or chunks, visited in one turn, which takes a few ms."""
NEVER_DUE: Final = 1 << 63
"""Later than any time that a client can send."""

Found = Callable[[int, Now], None]


def ripens(entry: Entry) -> int:
    """Return when the age of an entry begins for such a quota (ms since 1970)."""
    return max(age_begins(entry), entry.deliver_at)


class OldestUndelayed:
    """Search for the oldest message of one topic in memory."""

    __slots__ = (
        "_begins", "_delays", "_due", "_due_of", "_of", "_plain", "_reader", "_stored", "_timers", "_walked",
    )  # fmt: skip

    def __init__(self, stored: StoredTopic, reader: LedgerReader, timers: Timers) -> None:
        self._stored = stored
        self._reader = reader
        self._timers = timers
        self._delays = stored.delays
        self._walked = Position(-1, -1)
        """All unacknowledged entries before this position are delayed."""
        self._plain: Position | None = None
        """The first undelayed entry that a subscription has not acknowledged."""
        self._due = NEVER_DUE
        """When the first delayed entry is due (ms since 1970), ..."""
        self._due_of = Position(-1, -1)
        """... and its position."""
        self._of = Position(-1, -1)
        """The undelayed entry to which ``_begins`` belongs."""
        self._begins = 0

    def forget(self) -> None:
        """Forget the search state after a subscription was reset, possibly to an earlier position."""
        self._walked = Position(-1, -1)
        for _, extent in self._delays.extents():
            extent.left = (extent.first, 0)

    def find(self, found: Found, at_the_latest: Callable[[Position], int], now: Now) -> None:
        """Pass to ``found`` when the age of the oldest message begins (ms since 1970); ``NEVER`` without one.

        ``at_the_latest`` returns the append time for an entry that cannot be read.
        """
        walk = self._walk()

        def step(when: Now) -> None:
            if next(walk, None) is None:
                self._read(found, at_the_latest, when)
            else:
                self._timers.at(when.monotonic, step)

        step(now)

    def _walk(self) -> Iterator[bool]:
        """Search both; yields where the search should continue in another turn."""
        steps = 0
        for looked in (self._search_undelayed(), self._search_due()):
            for rows in looked:
                steps += rows
                if steps >= STEPS:
                    steps = 0
                    yield True

    def _read(self, found: Found, at_the_latest: Callable[[Position], int], now: Now) -> None:
        position = self._plain

        def known(begins: int, when: Now) -> None:
            assert position is not None
            self._of, self._begins = position, begins
            found(min(begins, self._due), when)

        if position is None:
            found(self._due, now)
        elif position == self._of:
            known(self._begins, now)
        else:
            self._reader.read_entry(
                position,
                lambda entry, when: known(age_begins(entry), when),
                lambda error, when: known(at_the_latest(position), when),
                now,
            )

    def _search_undelayed(self) -> Iterator[int]:
        """Search the first undelayed entry; yields the number of rows visited."""
        ledger = self._stored.ledger
        self._walked = ledger.clamp(*self._walked)
        while (first := first_unacked(ledger, expiring(self._stored), self._walked)) is not None:
            self._plain = position = first[0]
            number, place = divmod(position.entry_id, DELAY_CHUNK)
            extent, info = self._delays.extent(position.ledger_id, number), ledger.ledgers[position.ledger_id]
            if extent is None:
                return
            last = position.entry_id
            if extent.count >= min(info.entries - number * DELAY_CHUNK, DELAY_CHUNK):  # all of the chunk is delayed
                last = min((number + 1) * DELAY_CHUNK, info.confirmed) - 1
            elif self._delays.chunk(position.ledger_id, number).due(place) is None:
                return
            self._walked = ledger.next(position.ledger_id, last)
            yield 1
        self._plain = None

    def _search_due(self) -> Iterator[int]:
        """Search the unacknowledged delayed entry that is due first; yields the number of rows visited."""
        while (chosen := self._next_chunk()) is not None:
            (ledger_id, number), extent = chosen
            self._due = extent.left[0]
            chunk = self._delays.chunk(ledger_id, number)
            first = at = bisect_left(chunk.times, self._due)
            while at < len(chunk):
                self._due_of = Position(ledger_id, number * DELAY_CHUNK + chunk.places[at])
                if self._is_left(self._due_of):
                    break
                at += 1
            extent.left = (chunk.times[at], chunk.places[at]) if at < len(chunk) else (NEVER_DUE, 0)
            if extent.left[0] == self._due:
                return
            yield at - first + 1
        self._due = NEVER_DUE

    def _next_chunk(self) -> tuple[ChunkKey, Extent] | None:
        """Return the chunk whose next row is due first, as far as known; None if there is none."""
        slowest = min((cursor.mark_delete for cursor in expiring(self._stored)), default=None)
        if slowest is None:
            return None
        border = (slowest.ledger_id, (slowest.entry_id + 1) // DELAY_CHUNK)
        chunks = (each for each in self._delays.extents() if each[0] >= border and each[1].left[0] < NEVER_DUE)
        return min(chunks, key=lambda each: each[1].left, default=None)

    def _is_left(self, position: Position) -> bool:
        return any(not cursor.is_acked(*position) for cursor in expiring(self._stored))

    @property
    def is_current(self) -> bool:
        """Whether the message found to be the oldest is still unacknowledged."""
        plain, due = self._plain, self._due
        if plain is not None and self._begins <= due:
            return self._is_left(plain)
        return due < NEVER_DUE and self._is_left(self._due_of)
