"""Where the entries are: the runs that only memory knows yet, and the rows of the index that they become.

Pure. A *segment* is a stretch of one ledger's entries inside one batch: a run, cut to what somebody asked for.
A row holds the segments of one ledger that follow each other, whatever batches they are in.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from struct import Struct
from typing import Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.format import (
    BATCH_HEADER,
    ENTRY_HEADER,
    INDEX_KEY,
    INDEX_SEGMENT,
    RECORD_PREFIX,
    RecordKind,
)
from pulsarbox.storage.journal import Run

ROW_BYTES_MAX = 4080
"""What one LMDB overflow page takes: 1017 entries of one batch, or 255 that are in a batch each."""

ROWS_AT_ONCE_MIN = 32
BYTES_AT_ONCE_MIN = 2 * ROW_BYTES_MAX
"""A commit writes so many rows of the index, or of so many bytes, also where that is more than its share: of batches of
an entry each, a full row takes 0.2 ms to make."""

_SINGLE = Struct(INDEX_SEGMENT.format + "I")
_ROW_ENTRIES_MIN = ROW_BYTES_MAX // _SINGLE.size
_OFFSET_BYTES = array("I").itemsize
_SWAP = sys.byteorder == "little"
assert _OFFSET_BYTES == 4
_SEGMENT_WORDS = INDEX_SEGMENT.size // _OFFSET_BYTES
assert INDEX_SEGMENT.format == ">QI"


class Segment(NamedTuple):
    """Entries of one ledger, one after another, in one batch."""

    position: int
    """The batch's place in the log."""
    first_entry: int
    offsets: "array[int]"
    """Where each entry's record starts, from the start of the batch value. Shared: never changed."""


new_segment: Final = tuple.__new__
"""The constructor of a NamedTuple with names costs three times as much, and with many topics it is one an entry."""


class Stretch(NamedTuple):
    """Entries of one ledger, one after another, in one volume."""

    ledger_id: int
    first: int
    volume: int
    entries: int
    bytes: int
    """Of their records, headers included."""

    @property
    def end(self) -> int:
        """The entry behind the last."""
        return self.first + self.entries


class UnindexedRuns:
    """The runs of the batches that no row of the index covers yet.

    One thread adds while another finds, without a lock: lists only grow at their end, and to forget everything
    is to put a new table in the place of this one.
    """

    __slots__ = ("_ledgers", "entries")

    def __init__(self) -> None:
        self._ledgers: dict[int, list[Segment]] = {}
        self.entries = 0

    def __bool__(self) -> bool:
        return bool(self._ledgers)

    @property
    def ledgers(self) -> int:
        """How many ledgers the runs are of."""
        return len(self._ledgers)

    def add(self, position: int, runs: Mapping[int, Run]) -> None:
        """Take over the runs of the batch at ``position``; positions grow."""
        ledgers = self._ledgers
        entries = 0
        for ledger_id, run in runs.items():
            offsets = run.offsets
            segment = new_segment(Segment, (position, run.first_entry, offsets))
            entries += len(offsets)
            known = ledgers.get(ledger_id)
            if known is None:
                ledgers[ledger_id] = [segment]
            else:
                known.append(segment)
        self.entries += entries

    def find(self, ledger_id: int, first: int, limit: int) -> list[Segment]:
        """Segments from entry ``first`` on, in order: up to ``limit`` of them, none where memory does not know it."""
        known = self._ledgers.get(ledger_id)
        if known is None:
            return []
        at = bisect_right(known, first, key=_first_entry) - 1
        if at < 0:
            return []
        return _from_entry(known[at : at + limit], first)

    def ends(self) -> Iterator[tuple[int, tuple[int, int, int], tuple[int, int, int]]]:
        """Of each ledger entry, position and offset of its first entry, and of its last."""
        for ledger_id in list(self._ledgers):
            known = self._ledgers[ledger_id]
            (position, first, offsets), (end_position, end_first, end_offsets) = known[0], known[-1]
            last = end_first + len(end_offsets) - 1
            yield ledger_id, (first, position, offsets[0]), (last, end_position, end_offsets[-1])

    def positions(self, ledger_id: int) -> list[int]:
        """Which batches hold entries of a ledger."""
        return [segment.position for segment in self._ledgers.get(ledger_id, ())]

    def forget(self, ledger_id: int) -> None:
        """Nobody will ask for a ledger again."""
        known = self._ledgers.pop(ledger_id, ())
        self.entries -= sum([len(segment.offsets) for segment in known])

    def replace(self, position: int, runs: Mapping[int, Run]) -> None:
        """The batch at ``position`` holds the same entries of these ledgers somewhere else now."""
        for ledger_id, run in runs.items():
            known = self._ledgers[ledger_id]
            at = bisect_right(known, run.first_entry, key=_first_entry) - 1
            known[at] = Segment(position, run.first_entry, run.offsets)

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """The rows of the index that say the same, in the order of their keys."""
        for ledger_id in sorted(self._ledgers):
            yield from pack_rows(ledger_id, self._ledgers[ledger_id])


class IndexFlush:
    """The rows of runs that take no more, on their way into the index: some with each commit, so that none waits long.

    A put costs little, but it gives up the GIL, and beside a busy thread some of them wait for it: by itself, a
    transaction of a thousand took 16 ms where one of a single put took 1.5 (docs/decisions/journal-shape.md).
    """

    __slots__ = ("_rows", "_rows_about", "runs", "up_to")

    def __init__(self, runs: UnindexedRuns, up_to: int) -> None:
        self.runs = runs
        self.up_to = up_to
        """The index covers the log up to here when all rows are written."""
        self._rows = runs.rows()
        self._rows_about = runs.ledgers + runs.entries // _ROW_ENTRIES_MIN

    def next_rows(self, share: float) -> tuple[list[tuple[bytes, bytes]], bool]:
        """This ``share`` of all rows and a few more, and whether they are the last."""
        rows = list(islice(self._rows, int(share * self._rows_about)))
        size, limit = 0, len(rows) + ROWS_AT_ONCE_MIN
        for row in self._rows:
            rows.append(row)
            size += len(row[1])
            if len(rows) == limit or size >= BYTES_AT_ONCE_MIN:
                return rows, False
        return rows, True

    def give_back(self, rows: list[tuple[bytes, bytes]]) -> None:
        """Rows that could not be written are the next ones again."""
        self._rows = chain(rows, self._rows)


def pack_rows(ledger_id: int, segments: Iterable[Segment]) -> Iterator[tuple[bytes, bytes]]:
    """Rows for the segments of one ledger, merged while they follow each other and the row has room."""
    row_first = next_entry = -1
    parts: list[bytes] = []
    size = 0
    for position, first, offsets in segments:
        done = 0
        if len(offsets) == 1 and first == next_entry and size + _SINGLE.size <= ROW_BYTES_MAX:
            # With many topics nearly every run is one entry, and this loop is what a flush of the index costs.
            parts.append(_SINGLE.pack(position, 1, offsets[0]))
            size += _SINGLE.size
            next_entry += 1
            continue
        while done < len(offsets):
            entry = first + done
            room = (ROW_BYTES_MAX - size - INDEX_SEGMENT.size) // _OFFSET_BYTES
            if parts and (room <= 0 or entry != next_entry):
                yield INDEX_KEY.pack(ledger_id, row_first), b"".join(parts)
                parts, size = [], 0
                room = (ROW_BYTES_MAX - INDEX_SEGMENT.size) // _OFFSET_BYTES
            if not parts:
                row_first = entry
            piece = offsets[done : done + room]
            parts.append(INDEX_SEGMENT.pack(position, len(piece)))
            parts.append(_big_endian(piece).tobytes())
            size += INDEX_SEGMENT.size + len(piece) * _OFFSET_BYTES
            done += len(piece)
            next_entry = entry + len(piece)
    if parts:
        yield INDEX_KEY.pack(ledger_id, row_first), b"".join(parts)


def unpack_row(row_first: int, row: bytes | memoryview, entry: int, last: int = 1 << 64) -> list[Segment]:
    """The segments of a row from ``entry`` on, up to that with ``last``; none where the row ends before it.

    Raises PersistenceError where the row is cut off.
    """
    size = len(row) // _OFFSET_BYTES
    words = _big_endian(array("I", bytes(row[: size * _OFFSET_BYTES])))
    segments: list[Segment] = []
    at, first = 0, row_first
    while at * _OFFSET_BYTES < len(row):
        begin = at + _SEGMENT_WORDS
        if begin > size:
            raise PersistenceError(f"index row at entry {row_first} is damaged: {len(row)} bytes")
        count = words[at + 2]
        end = begin + count
        if count == 0 or end > size:
            raise PersistenceError(f"index row at entry {row_first} is damaged: {count} offsets in {len(row)} bytes")
        if first <= last and first + count > entry >= row_first:
            known = max(first, entry)  # the first one may begin before
            segments.append(
                new_segment(Segment, (words[at] << 32 | words[at + 1], known, words[begin + known - first : end]))
            )
        at = end
        first += count
    return segments


def runs_of(value: bytes | memoryview) -> dict[int, Run]:
    """The runs of a batch that has been checked, read back from its value."""
    runs: dict[int, Run] = {}
    offset = BATCH_HEADER.size
    while offset < len(value):
        kind, _, header_size, body_size = RECORD_PREFIX.unpack_from(value, offset)
        if kind == RecordKind.ENTRY:
            ledger_id, entry_id = ENTRY_HEADER.unpack_from(value, offset)[4:6]
            run = runs.get(ledger_id)
            if run is None:
                run = runs[ledger_id] = Run(entry_id)
            run.offsets.append(offset)
        offset += header_size + body_size
    return runs


def _first_entry(segment: Segment) -> int:
    return segment.first_entry


def _from_entry(segments: list[Segment], entry: int) -> list[Segment]:
    """``segments`` without what is before ``entry``; none where it is not in the first, nor what follows a gap."""
    if not segments:
        return []
    position, first, offsets = segments[0]
    if not first <= entry < first + len(offsets):
        return []
    found = [Segment(position, entry, offsets[entry - first :])]
    follows = first + len(offsets)
    for segment in segments[1:]:
        if segment.first_entry != follows:
            break
        found.append(segment)
        follows += len(segment.offsets)
    return found


def _big_endian(offsets: "array[int]") -> "array[int]":
    """A copy with its bytes in the disk's order; the same again turns it back."""
    copy = array("I", offsets)
    if _SWAP:
        copy.byteswap()
    return copy
