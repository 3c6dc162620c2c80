"""Eviction of a backlog up to a position, sparing delayed messages; a few entries per turn."""

from collections.abc import Callable, Collection
from typing import Final

from pulsarbox.broker.subscription.skip_and_clear import SkipAndClear
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PreconditionFailed
from pulsarbox.storage.delayed_index import DELAY_CHUNK, Delays
from pulsarbox.storage.record import Entry, Position

Done = Callable[[Now], None]

READ_ENTRIES: Final = 200
READ_BYTES: Final = 1 << 20
"""Bytes per read, whose entries are acknowledged in one turn."""
STEPS: Final = 2000
"""Delayed entries, or chunks of them, skipped in one turn."""


def acknowledge_undelayed(
    clearings: Collection[SkipAndClear],
    delays: Delays,
    reader: LedgerReader,
    timers: Timers,
    *,
    end: Position,
    due: int,
    done: Done,
    now: Now,
) -> None:
    """Acknowledge everything before ``end`` for these subscriptions, except entries due later than ``due``.

    ``due`` is in ms since 1970. Subscriptions that are being reset or deleted are skipped. ``done`` is called at the
    end.
    """
    left = len(clearings) + 1

    def one_done(when: Now) -> None:
        nonlocal left
        left -= 1
        if not left:
            done(when)

    for clearing in clearings:
        _UndelayedEviction(clearing, delays, reader, timers, end=end, due=due, done=one_done).step(now)
    one_done(now)


def is_due_after(delays: Delays, position: Position, due: int) -> bool:
    """Return whether an entry is due later than ``due`` (ms since 1970)."""
    number, place = divmod(position.entry_id, DELAY_CHUNK)
    extent = delays.extent(position.ledger_id, number)
    if extent is None or extent.last <= due:
        return False
    at = delays.chunk(position.ledger_id, number).due(place)
    return at is not None and at > due


class _UndelayedEviction:
    """Eviction for one subscription."""

    def __init__(
        self,
        clearing: SkipAndClear,
        delays: Delays,
        reader: LedgerReader,
        timers: Timers,
        *,
        end: Position,
        due: int,
        done: Done,
    ) -> None:
        self._clearing = clearing
        self._cursor = clearing.cursor
        self._delays = delays
        self._reader = reader
        self._timers = timers
        self._end = end
        self._due = due
        self._done = done
        self._at = clearing.cursor.mark_delete

    def step(self, now: Now) -> None:
        """Skip delayed entries and read the next ones to acknowledge."""
        ledger = self._reader.ledger
        try:
            self._clearing.check()
        except (PreconditionFailed, NotFound):
            self._done(now)
            return
        for _ in range(STEPS):
            position = self._cursor.next_unacked(ledger.clamp(*self._at))
            if position >= self._end or position > ledger.read_end:
                self._done(now)
                return
            if not is_due_after(self._delays, position, self._due):
                self._read(position)
                return
            self._at = self._behind(position)
        self._timers.at(now.monotonic, self.step)

    def _behind(self, position: Position) -> Position:
        """Return the position after a spared entry, or after its chunk if all of that is spared."""
        number, ledger = position.entry_id // DELAY_CHUNK, self._reader.ledger
        extent, info = self._delays.extent(position.ledger_id, number), ledger.ledgers[position.ledger_id]
        entries = min(info.entries - number * DELAY_CHUNK, DELAY_CHUNK)
        whole = extent is not None and extent.first > self._due and extent.count >= entries
        return ledger.next(position.ledger_id, number * DELAY_CHUNK + entries - 1 if whole else position.entry_id)

    def _read(self, first: Position) -> None:
        last = first.entry_id + READ_ENTRIES - 1
        if first.ledger_id == self._end.ledger_id:
            last = min(last, self._end.entry_id - 1)
        ledger = self._reader.ledger
        last = min(last, ledger.readable_of(ledger.ledgers[first.ledger_id]) - 1)

        def answer(entries: list[Entry], error: Exception | None, when: Now) -> None:
            if error is not None or not entries:  # the next eviction retries
                self._at = self._reader.ledger.next(*first)
            else:
                self._at = Position(entries[-1].ledger_id, entries[-1].entry_id + 1)
                self._acknowledge(entries, when)
            self.step(when)

        self._reader.read_run(first, last, READ_BYTES, answer)

    def _acknowledge(self, entries: list[Entry], now: Now) -> None:
        try:
            self._clearing.check()
        except (PreconditionFailed, NotFound):
            return
        gone = [entry for entry in entries if not is_due_after(self._delays, entry.position, self._due)]
        self._clearing.expire_entries(gone, now)
