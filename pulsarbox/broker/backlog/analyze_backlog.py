"""Analysis of a subscription's backlog by reading its entries, one run per turn.

Source: https://github.com/apache/pulsar/blob/master/pip/pip-187.md (analyze subscription backlog).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulsarbox.broker.dispatch.entry_source import AckedAhead
from pulsarbox.broker.dispatch.read_limits import ReadLimits
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position

READ_BYTES: Final = 1 << 20
"""Bytes per read; a single entry may be larger."""


@dataclass(slots=True)
class BacklogCounts:
    """Result of a backlog analysis."""

    entries: int = 0
    messages: int = 0
    markers: int = 0
    first: Position | None = None
    """The first and last entries counted."""
    last: Position | None = None
    aborted: bool = False
    """A bound was reached before the end of the backlog."""


class BacklogScan:
    """One scan of a subscription's unacknowledged entries, up to the end of the topic when it starts."""

    def __init__(
        self,
        cursor: ManagedCursor,
        reader: LedgerReader,
        max_entries: int,
        max_ms: int,
        done: Callable[[BacklogCounts], None],
        failed: Callable[[Exception], None],
        limits: ReadLimits,
    ) -> None:
        self._reader = reader
        self._cursor = cursor
        self._ledger = cursor.ledger
        self._max_entries = max_entries
        self._max_ms = max_ms
        self._done = done
        self._failed = failed
        self._limits = limits
        self._end = self._ledger.read_end
        self._deadline = 0.0
        self._from_start = False
        self._counts = BacklogCounts()

    def begin(self, start: Position | None, now: Now) -> None:
        """Scan from ``start``, or from the first unacknowledged entry.

        As in Pulsar, entries from ``start`` up to mark-delete are counted as well.
        """
        self._deadline = now.monotonic + self._max_ms / 1000
        self._from_start = start is not None
        self._continue(
            self._ledger.next(*self._cursor.mark_delete) if start is None else self._ledger.clamp(*start), now
        )

    def _passed(self, at: Position) -> bool:
        """Return whether an entry counts although mark-delete has passed it."""
        return self._from_start and at <= self._cursor.mark_delete

    def _continue(self, at: Position, now: Now) -> None:
        """Read the next run of entries, or finish."""
        if not self._passed(at):
            at = self._cursor.next_unacked(at)
        info = self._ledger.ledgers.get(at.ledger_id)
        if info is None:  # trimmed meanwhile
            at = self._ledger.next(*at)
            info = self._ledger.ledgers.get(at.ledger_id)
        if at > self._end or info is None:
            self._done(self._counts)
        elif self._counts.entries >= self._max_entries or now.monotonic > self._deadline:
            self._counts.aborted = True
            self._done(self._counts)
        else:
            count = self._limits.read_entries
            last = self._end.entry_id if at.ledger_id == self._end.ledger_id else info.confirmed - 1

            def answer(entries: list[Entry], error: Exception | None, when: Now) -> None:
                self._read(at, entries, error, when)

            self._reader.read_run(at, min(at.entry_id + count - 1, last), READ_BYTES, answer)

    def _read(self, at: Position, entries: list[Entry], error: Exception | None, now: Now) -> None:
        if isinstance(error, EntryDamaged):
            self._continue(self._ledger.next(error.ledger_id, error.last), now)
        elif at.ledger_id not in self._ledger.ledgers:
            self._continue(self._ledger.next(*at), now)
        elif error is not None:
            self._failed(error)
        else:
            self._continue(self._counted(at, entries), now)

    def _counted(self, at: Position, entries: list[Entry]) -> Position:
        """Count a run of entries; return the position of the next."""
        counts, acked = self._counts, AckedAhead(self._cursor)
        for entry in entries:
            position = Position(entry.ledger_id, entry.entry_id)
            if not self._passed(position) and acked.has(position):
                continue
            if counts.entries >= self._max_entries:
                return position
            if counts.first is None:
                counts.first = position
            counts.last = position
            if entry.flags & EntryFlag.MARKER:
                counts.markers += 1
            else:
                counts.entries += 1
                counts.messages += entry.num_messages
        return self._ledger.next(*(entries[-1][:2] if entries else at))
