"""Entries awaiting redelivery: kept in memory, found in the tail, or read again."""

import logging
from bisect import insort
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Protocol

from pulsarbox.broker.dispatch.read_limits import RETRY_SECONDS
from pulsarbox.broker.services import HasReadLimits, HasReads, HasTimers
from pulsarbox.broker.topic.quarantine import SetAside
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry

log = logging.getLogger(__name__)

At = tuple[int, int]
"""Ledger ID and entry ID."""

KEPT_READS = 4
"""Bytes of entries kept in memory, as a multiple of one read's bytes."""


class ReadServices(HasTimers, HasReads, HasReadLimits, Protocol):
    """The services of the broker that read entries for a dispatcher."""


class Replay:
    """Fetches entries for redelivery. One read is in flight at a time; ``ready`` is called after it."""

    def __init__(
        self, cursor: ManagedCursor, services: ReadServices, ready: Callable[[Now], None], set_aside: SetAside
    ) -> None:
        self._cursor = cursor
        self._reads = services.reads
        self._timers = services.timers
        self._set_aside = set_aside
        self._bounds = services.bounds
        self._ready = ready
        self._kept: dict[At, Entry] = {}
        self._kept_bytes = 0
        self._lost: list[tuple[At, At]] = []
        """First and last positions of damaged ranges with unknown message counts."""
        self._generation = 0
        self.reading = False

    def clear(self) -> None:
        """Forget all entries and ignore the read in flight."""
        self._kept.clear()
        self._kept_bytes = 0
        self._generation += 1
        self.reading = False

    def cache(self, entry: Entry) -> None:
        """Keep an entry in memory if there is room."""
        if self._kept_bytes < KEPT_READS * self._bounds.read_bytes:
            self._put(entry)

    def _put(self, entry: Entry) -> None:
        at = entry.ledger_id, entry.entry_id
        if at not in self._kept:
            self._kept[at] = entry
            self._kept_bytes += len(entry.body)

    def is_gone(self, at: At) -> bool:
        """Return whether the entry is acknowledged (also in an open transaction) or unreadable."""
        cursor = self._cursor
        if cursor.is_acked(*at) or cursor.is_claimed(*at) or any(first <= at <= last for first, last in self._lost):
            self.take(at)
            return True
        return False

    def take(self, at: At) -> Entry | None:
        """Return the entry; None if it must be read first."""
        entry = self._kept.pop(at, None)
        if entry is not None:
            self._kept_bytes -= len(entry.body)
            return entry
        return self._cursor.ledger.tail.get(at[0], {}).get(at[1])

    def read(self, first: At, wanted: Container[At]) -> None:
        """Read an entry, and those of ``wanted`` shortly after it."""
        info = self._cursor.ledger.ledgers.get(first[0])
        if self.reading or info is None:
            return
        last = min(first[1] + self._bounds.read_entries, info.confirmed) - 1
        while last > first[1] and (first[0], last) not in wanted:
            last -= 1
        self.reading = True
        generation = self._generation

        def answer(entries: list[Entry], error: Exception | None, now: Now) -> None:
            if generation != self._generation:
                return
            self.reading = False
            if isinstance(error, EntryDamaged):
                self._set_aside(error, now)
                if error.counts is None:
                    self._lost.append(((error.ledger_id, error.first), (error.ledger_id, error.last)))
            elif error is not None and first[0] in self._cursor.ledger.ledgers:  # else trimmed, so acknowledged
                log.error("subscription %s cannot read entry %s: %s", self._cursor.name, first, error)
                self._timers.at(now.monotonic + RETRY_SECONDS, self._ready)
                return
            for entry in entries:
                if (entry.ledger_id, entry.entry_id) in wanted:
                    self._put(entry)
            self._ready(now)

        self._reads.ask(first[0], first[1], last, self._bounds.read_bytes, answer)


class Positions:
    """A sorted queue of positions."""

    __slots__ = ("_positions", "_start")

    def __init__(self) -> None:
        self._positions: list[At] = []
        self._start = 0
        """Index of the first position in the queue; the taken ones before it are cut off in bulk."""

    def __len__(self) -> int:
        return len(self._positions) - self._start

    def __iter__(self) -> Iterator[At]:
        positions = self._positions
        return (positions[i] for i in range(self._start, len(positions)))

    @property
    def first(self) -> At:
        """Oldest position. Raises IndexError if empty."""
        return self._positions[self._start]

    def add(self, at: At) -> None:
        """Add a position."""
        insort(self._positions, at, self._start)

    def add_all(self, positions: Iterable[At]) -> None:
        """Add many positions."""
        self._cut()
        self._positions.extend(positions)
        self._positions.sort()

    def pop(self) -> At:
        """Remove and return the oldest position."""
        at = self._positions[self._start]
        self._start += 1
        if self._start > 1024 and self._start * 2 > len(self._positions):
            self._cut()
        return at

    def clear(self) -> None:
        """Remove all positions."""
        self._positions.clear()
        self._start = 0

    def _cut(self) -> None:
        del self._positions[: self._start]
        self._start = 0
