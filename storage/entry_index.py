"""The index of entry locations: runs that only memory has yet, and the index rows that they become.

Pure. A *segment* is a contiguous part of one ledger's entries inside one batch: a run, cut to the requested entries. A
row holds consecutive segments of one ledger, across batches.
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
from pulsarbox.storage.journal import JournalRun

ROW_BYTES_MAX = 4080
"""Capacity of one LMDB overflow page: 1017 entries of one batch, or 255 entries of one batch each."""

ROWS_AT_ONCE_MIN = 32
BYTES_AT_ONCE_MIN = 2 * ROW_BYTES_MAX
"""Minimum of rows, or of bytes, of the index that a commit writes, even if that exceeds its share.

A full row of single-entry batches takes 0.2 ms to build.
"""

_SINGLE = Struct(INDEX_SEGMENT.format + "I")
_ROW_ENTRIES_MIN = ROW_BYTES_MAX // _SINGLE.size
_OFFSET_BYTES = array("I").itemsize
_SWAP = sys.byteorder == "little"
assert _OFFSET_BYTES == 4
_SEGMENT_WORDS = INDEX_SEGMENT.size // _OFFSET_BYTES
assert INDEX_SEGMENT.format == ">QI"


class IndexSegment(NamedTuple):
    """Consecutive entries of one ledger in one batch."""

    position: int
    """The batch's position in the log."""
    first_entry: int
    offsets: "array[int]"
    """Offset of each entry's record from the start of the batch value. Shared, never changed."""


new_segment: Final = tuple.__new__
"""A NamedTuple's keyword constructor costs three times as much, and with many topics it runs once per entry."""


class VolumeRun(NamedTuple):
    """Consecutive entries of one ledger in one volume."""

    ledger_id: int
    first: int
    volume: int
    entries: int
    bytes: int
    """Bytes of their records, headers included."""

    @property
    def end(self) -> int:
        """The first entry after the stretch."""
        return self.first + self.entries


class UnindexedRuns:
    """The runs of the batches that no index row covers yet.

    One thread adds while another finds, without a lock: lists only grow at their end, and the table is cleared by
    replacing it with a new one.
    """

    __slots__ = ("_ledgers", "entries")

    def __init__(self) -> None:
        self._ledgers: dict[int, list[IndexSegment]] = {}
        self.entries = 0

    def __bool__(self) -> bool:
        return bool(self._ledgers)

    @property
    def ledgers(self) -> int:
        """Number of ledgers that have runs."""
        return len(self._ledgers)

    def add(self, position: int, runs: Mapping[int, JournalRun]) -> None:
        """Add the runs of the batch at ``position``; positions increase."""
        ledgers = self._ledgers
        entries = 0
        for ledger_id, run in runs.items():
            offsets = run.offsets
            segment = new_segment(IndexSegment, (position, run.first_entry, offsets))
            entries += len(offsets)
            known = ledgers.get(ledger_id)
            if known is None:
                ledgers[ledger_id] = [segment]
            else:
                known.append(segment)
        self.entries += entries

    def add_runs(self, position: int, runs: Iterable[tuple[int, JournalRun]]) -> None:
        """Add runs of the batch at ``position``, of which a ledger may have several."""
        for ledger_id, run in runs:
            self.add(position, {ledger_id: run})

    def find(self, ledger_id: int, first: int, limit: int) -> list[IndexSegment]:
        """Return up to ``limit`` consecutive segments from entry ``first`` on; none if it is not in memory."""
        known = self._ledgers.get(ledger_id)
        if known is None:
            return []
        at = bisect_right(known, first, key=_first_entry) - 1
        if at < 0:
            return []
        return _from_entry(known[at : at + limit], first)

    def ends(self) -> Iterator[tuple[int, tuple[int, int, int], tuple[int, int, int]]]:
        """Yield entry, position and offset of the first and of the last entry of each ledger."""
        for ledger_id in list(self._ledgers):
            known = self._ledgers[ledger_id]
            (position, first, offsets), (end_position, end_first, end_offsets) = known[0], known[-1]
            last = end_first + len(end_offsets) - 1
            yield ledger_id, (first, position, offsets[0]), (last, end_position, end_offsets[-1])

    def ids(self) -> list[int]:
        """Return the ledgers that have runs."""
        return list(self._ledgers)

    def extent(self, ledger_id: int) -> tuple[int, int] | None:
        """Return the first entry of a ledger and its end (exclusive); None if it has none."""
        known = self._ledgers.get(ledger_id)
        return None if known is None else (known[0].first_entry, known[-1].first_entry + len(known[-1].offsets))

    def before(self, position: int) -> "UnindexedRuns":
        """Return the runs of the batches before a position."""
        kept = UnindexedRuns()
        for ledger_id, known in self._ledgers.items():
            segments = known if known[-1].position < position else [one for one in known if one.position < position]
            if segments:
                kept._ledgers[ledger_id] = segments
                kept.entries += sum([len(segment.offsets) for segment in segments])
        return kept

    def positions(self, ledger_id: int) -> list[int]:
        """Return the positions of the batches that hold entries of a ledger."""
        return [segment.position for segment in self._ledgers.get(ledger_id, ())]

    def forget(self, ledger_id: int) -> None:
        """Remove a ledger that is no longer read."""
        known = self._ledgers.pop(ledger_id, ())
        self.entries -= sum([len(segment.offsets) for segment in known])

    def replace(self, position: int, runs: Mapping[int, JournalRun]) -> None:
        """Replace the locations of entries of these ledgers, now in the batch at ``position``."""
        for ledger_id, run in runs.items():
            known = self._ledgers[ledger_id]
            at = bisect_right(known, run.first_entry, key=_first_entry) - 1
            known[at] = IndexSegment(position, run.first_entry, run.offsets)

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the equivalent index rows, in key order."""
        for ledger_id in sorted(self._ledgers):
            yield from pack_rows(ledger_id, self._ledgers[ledger_id])


class IndexFlush:
    """The rows of closed runs, written to the index a few with each commit, so that no commit waits long.

    A put is cheap but releases the GIL, and beside a busy thread some puts wait for it: a transaction of a thousand
    puts took 16 ms, one of a single put 1.5 (docs/decisions/journal-shape.md).
    """

    __slots__ = ("_rows", "_rows_about", "runs", "up_to")

    def __init__(self, runs: UnindexedRuns, up_to: int) -> None:
        self.runs = runs
        self.up_to = up_to
        """The log position that the index covers once all rows are written."""
        self._rows = runs.rows()
        self._rows_about = runs.ledgers + runs.entries // _ROW_ENTRIES_MIN

    def next_rows(self, share: float) -> tuple[list[tuple[bytes, bytes]], bool]:
        """Return this ``share`` of all rows and a few more, and whether they are the last."""
        rows = list(islice(self._rows, int(share * self._rows_about)))
        size, limit = 0, len(rows) + ROWS_AT_ONCE_MIN
        for row in self._rows:
            rows.append(row)
            size += len(row[1])
            if len(rows) == limit or size >= BYTES_AT_ONCE_MIN:
                return rows, False
        return rows, True

    def restore(self, rows: list[tuple[bytes, bytes]]) -> None:
        """Put back rows that could not be written, as the next ones."""
        self._rows = chain(rows, self._rows)


def pack_rows(ledger_id: int, segments: Iterable[IndexSegment]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows for the segments of one ledger, merging consecutive ones while the row has space."""
    row_first = next_entry = -1
    parts: list[bytes] = []
    size = 0
    for position, first, offsets in segments:
        done = 0
        if len(offsets) == 1 and first == next_entry and size + _SINGLE.size <= ROW_BYTES_MAX:
            # With many topics nearly every run is one entry, and this loop dominates the cost of an index flush.
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


def unpack_row(row_first: int, row: bytes | memoryview, entry: int, last: int = 1 << 64) -> list[IndexSegment]:
    """Decode the segments of a row from the one with ``entry`` through the one with ``last``.

    Raises PersistenceError if the row is truncated.
    """
    size = len(row) // _OFFSET_BYTES
    words = _big_endian(array("I", bytes(row[: size * _OFFSET_BYTES])))
    segments: list[IndexSegment] = []
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
            known = max(first, entry)  # the first segment may begin before
            segments.append(
                new_segment(IndexSegment, (words[at] << 32 | words[at + 1], known, words[begin + known - first : end]))
            )
        at = end
        first += count
    return segments


def runs_of(value: bytes | memoryview) -> dict[int, JournalRun]:
    """Rebuild the runs of a verified batch from its value."""
    runs: dict[int, JournalRun] = {}
    offset = BATCH_HEADER.size
    while offset < len(value):
        kind, _, header_size, body_size = RECORD_PREFIX.unpack_from(value, offset)
        if kind == RecordKind.ENTRY:
            ledger_id, entry_id = ENTRY_HEADER.unpack_from(value, offset)[4:6]
            run = runs.get(ledger_id)
            if run is None:
                run = runs[ledger_id] = JournalRun(entry_id)
            run.offsets.append(offset)
        offset += header_size + body_size
    return runs


def _first_entry(segment: IndexSegment) -> int:
    return segment.first_entry


def _from_entry(segments: list[IndexSegment], entry: int) -> list[IndexSegment]:
    """Return ``segments`` from ``entry`` on, up to the first gap; none if the first segment does not contain it."""
    if not segments:
        return []
    position, first, offsets = segments[0]
    if not first <= entry < first + len(offsets):
        return []
    found = [IndexSegment(position, entry, offsets[entry - first :])]
    follows = first + len(offsets)
    for segment in segments[1:]:
        if segment.first_entry != follows:
            break
        found.append(segment)
        follows += len(segment.offsets)
    return found


def _big_endian(offsets: "array[int]") -> "array[int]":
    """Return a copy in on-disk byte order; applied twice, it restores the original."""
    copy = array("I", offsets)
    if _SWAP:
        copy.byteswap()
    return copy
