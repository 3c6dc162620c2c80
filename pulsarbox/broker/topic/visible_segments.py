"""Visible segments of a topic's ledgers, for parallel bulk readers.

A segment is a range of entries of one ledger, so the cost depends on the number of ledgers and aborted transactions,
not of entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pulsarbox.broker.topic.termination import Termination
from pulsarbox.storage.catalog import Catalog
from pulsarbox.storage.ledger import LedgerInfo
from pulsarbox.storage.record import AckedRange, Position
from pulsarbox.storage.recovery import StoredTopic
from pulsarbox.storage.transactions import aborted_of

SEGMENTS_MAX: Final = 1000
RUNS_MAX: Final = 10_000
"""Hidden runs in one answer; there may be one more for each segment."""


class WholeLedger(NamedTuple):
    """Totals of a whole ledger, regardless of the requested range and visibility."""

    entries: int
    before: int
    """The topic's messages before this ledger, including trimmed ones."""
    after: int
    """The topic's messages up to the end of this ledger, including trimmed ones."""
    closed: int
    """When the ledger was closed or its topic terminated in it (ms since 1970); 0 while it is open."""


@dataclass(slots=True)
class VisibleSegment:
    """Visible entries ``first`` to ``end`` (exclusive) of one ledger."""

    ledger_id: int
    first: int
    end: int
    messages: int
    """Messages in entries that are not hidden; estimated by proportion for part of a ledger."""
    bytes: int
    whole: "WholeLedger"
    hidden: list[tuple[int, int]] = field(default_factory=list)
    """Runs of aborted transactions, as first and last entry id."""


def end_of(stored: StoredTopic) -> tuple[Position, int]:
    """Return the position after the last readable entry, and the topic's messages up to there."""
    ledger, readable = stored.ledger, stored.open.readable
    total = ledger.confirmed_messages if readable is None else readable[1]
    last = ledger.read_end
    return Position(last.ledger_id, last.entry_id + 1), min(total, ledger.confirmed_messages)


def begin_of(stored: StoredTopic) -> tuple[Position, int]:
    """Return the position of the first existing or future entry, and the topic's messages before it."""
    ledger = stored.ledger
    first = ledger.next(*ledger.first_position())
    return first, ledger.ledgers[first.ledger_id].messages_before


class Segments:
    """Finds the segments from ``start`` to ``end`` (exclusive), in steps."""

    def __init__(
        self, stored: StoredTopic, catalog: Catalog, termination: Termination, start: Position, end: Position
    ) -> None:
        self._stored = stored
        self._ledger = stored.ledger
        self._catalog = catalog
        self._termination = termination
        self._start = start
        self._end = min(end, end_of(stored)[0])
        self.found: list[VisibleSegment] = []
        self.next: Position | None = None
        """Start of the next answer; None if this one is complete."""

    def steps(self) -> Iterator[None]:
        """Search in short steps; ``found`` and ``next`` have the result."""
        ledger = self._ledger
        runs = 0
        for ledger_id in list(ledger.ledgers):
            info = ledger.ledgers.get(ledger_id)
            if info is None or ledger_id < self._start.ledger_id or ledger_id > self._end.ledger_id:
                continue
            first = max(self._start.entry_id, 0) if ledger_id == self._start.ledger_id else 0
            end = ledger.readable_of(info)
            if ledger_id == self._end.ledger_id:
                end = min(end, self._end.entry_id)
            if first >= end:
                continue
            if len(self.found) >= SEGMENTS_MAX or runs >= RUNS_MAX:
                self.next = Position(ledger_id, first)
                return
            seen = VisibleSegment(ledger_id, first, end, *self._weight(info, first, end), self._whole(info))
            self.found.append(seen)
            yield
            for run in self._aborted(ledger_id, first, end):
                if runs >= RUNS_MAX:
                    self._cut(seen, run.first)
                    return
                _hide(seen, run)
                runs += 1
                yield

    def put_off(self) -> Iterator[None]:
        """Return no steps, and leave everything to the next answer."""
        self.next = self._start
        return iter(())

    def _aborted(self, ledger_id: int, first: int, end: int) -> Iterator[AckedRange]:
        stored = self._stored
        if not stored.has_aborted:
            return
        for run in aborted_of(self._catalog, stored.topic_id, ledger_id):
            if run.first >= end:
                return
            if run.last >= first:
                yield run

    def _cut(self, seen: VisibleSegment, at: int) -> None:
        """Cut a segment with too many runs at an entry; the next answer continues there."""
        share = (at - seen.first) / (seen.end - seen.first)
        seen.messages, seen.bytes = round(seen.messages * share), round(seen.bytes * share)
        self.next = Position(seen.ledger_id, at)
        seen.end = at

    def _behind(self, info: LedgerInfo) -> LedgerInfo | None:
        ledgers = self._ledger.ledgers.values()
        return next((each for each in ledgers if each.ledger_id > info.ledger_id), None)

    def _whole(self, info: LedgerInfo) -> WholeLedger:
        ledger, behind = self._ledger, self._behind(info)
        if behind is not None:
            after, closed = behind.messages_before - behind.hole[0], info.closed
        else:
            ended = self._termination.ended and info.confirmed == info.entries
            after, closed = ledger.confirmed_messages, max(ledger.last_append_time, 1) if ended else 0
        return WholeLedger(info.entries, info.messages_before, after, closed)

    def _weight(self, info: LedgerInfo, first: int, end: int) -> tuple[int, int]:
        """Estimate the messages and bytes of entries ``first`` to ``end`` (exclusive) by proportion."""
        ledger, behind = self._ledger, self._behind(info)
        messages, size = ledger.confirmed_messages - info.messages_before, ledger.confirmed_bytes - info.bytes_before
        if behind is not None:
            messages = behind.messages_before - behind.hole[0] - info.messages_before
            size = behind.bytes_before - behind.hole[1] - info.bytes_before
        entries = info.confirmed
        readable = self._stored.open.readable
        if readable is not None and readable[0].ledger_id == info.ledger_id:
            entries = readable[0].entry_id + 1
            messages, size = readable[1] - info.messages_before, readable[2] - info.bytes_before
        share = (end - first) / max(entries, end - first, 1)
        return max(round(messages * share), 0), max(round(size * share), 0)


def _hide(seen: VisibleSegment, run: AckedRange) -> None:
    first, last = max(run.first, seen.first), min(run.last, seen.end - 1)
    share = (last - first + 1) / (run.last - run.first + 1)
    seen.messages = max(seen.messages - round((run.messages_after - run.messages_before) * share), 0)
    seen.bytes = max(seen.bytes - round((run.bytes_after - run.bytes_before) * share), 0)
    if seen.hidden and seen.hidden[-1][1] == first - 1:
        seen.hidden[-1] = seen.hidden[-1][0], last
    else:
        seen.hidden.append((first, last))
