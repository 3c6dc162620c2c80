"""Acknowledged ranges of a topic: sorted, disjoint, never adjacent, each with the topic's totals at both ends.

The totals make a backlog a subtraction: the messages in any run of entries are the total after its last entry minus the
total before its first, however the run was merged.

There may be millions of ranges, so they are stored in chunks of `CHUNK_ENTRIES` entry ids, as on disk: seven numbers
per range, in one array. A range belongs to the chunk of its first entry and may extend past the end of that chunk,
because the totals at the boundary are not known.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final

from sortedcontainers import SortedDict

from pulsarbox.storage.record import AckedRange

CHUNK_ENTRIES: Final = 1024
"""Entry ids per chunk, and so per row of the checkpoint."""

ChunkKey = tuple[int, int]
"""Ledger id, and number of the chunk in the ledger."""

new_range: Final = tuple.__new__
"""Faster than the constructor of a NamedTuple."""

_FIELDS: Final = len(AckedRange._fields)
_FIRST, _LAST, _MESSAGES_BEFORE, _MESSAGES_AFTER, _BYTES_BEFORE, _BYTES_AFTER = range(1, _FIELDS)


class _Chunk:
    """Ranges of one chunk, concatenated, and the start of each relative to the chunk, for binary search."""

    __slots__ = ("ranges", "starts")

    def __init__(self, ranges: "array[int]") -> None:
        self.ranges = ranges
        self.starts = array("H", [first % CHUNK_ENTRIES for first in ranges[_FIRST::_FIELDS]])


class RangeSet:
    """Ranges of entries of one topic. ``touch`` is called for every chunk that changes."""

    __slots__ = ("_end", "_touch", "chunks", "entries", "messages", "size")

    def __init__(self, touch: Callable[[ChunkKey], object]) -> None:
        self._touch = touch
        self.chunks: SortedDict[ChunkKey, _Chunk] = SortedDict()
        """Chunks that hold a range. Other classes may only test for their presence."""
        self._end: _Chunk | None = None
        """The last chunk, if known."""
        self.entries = 0
        """Entries in all ranges."""
        self.messages = 0
        """Messages in all ranges."""
        self.size = 0
        """Bytes in all ranges."""

    def __iter__(self) -> Iterator[AckedRange]:
        for chunk in self.chunks.values():
            for at in range(0, len(chunk.ranges), _FIELDS):
                yield AckedRange(*chunk.ranges[at : at + _FIELDS])

    def __len__(self) -> int:
        return sum([len(chunk.starts) for chunk in self.chunks.values()]) if self.chunks else 0

    def __bool__(self) -> bool:
        return bool(self.chunks)

    @property
    def last(self) -> tuple[int, int]:
        """Ledger id and last entry id of the last range. Raises IndexError if there are no ranges."""
        key, chunk = self.chunks.peekitem(-1)
        return key[0], chunk.ranges[_LAST - _FIELDS]

    def covers(self, ledger_id: int, entry_id: int) -> bool:
        """Return whether the entry is in one of the ranges."""
        return self.first_gap(ledger_id, entry_id) != entry_id

    def first_gap(self, ledger_id: int, entry_id: int) -> int:
        """Return the first entry id of the ledger, from ``entry_id`` on, that is in no range."""
        found = self._find(ledger_id, entry_id)
        if found is None:
            return entry_id
        last: int = self.chunks[found[0]].ranges[found[1] * _FIELDS + _LAST]
        return last + 1 if last >= entry_id else entry_id

    def around(self, entries: list[tuple[int, int]]) -> tuple[AckedRange, ...]:
        """Return the ranges that contain any of the entries, each once."""
        found = {}
        for ledger_id, entry_id in entries:
            place = self._find(ledger_id, entry_id)
            if place is not None:
                at = place[1] * _FIELDS
                acked = new_range(AckedRange, self.chunks[place[0]].ranges[at : at + _FIELDS])
                if acked.last >= entry_id:
                    found[place] = acked
        return tuple(found.values())

    def runs_from(self, ledger_id: int, entry_id: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield the first and last entry of each range from the entry on; the first range may end before it.

        For iterating over entries in order, where ``covers`` would search for each one. The ranges must not change
        meanwhile.
        """
        found = self._find(ledger_id, entry_id)
        key, i = found if found is not None else ((ledger_id, entry_id // CHUNK_ENTRIES), 0)
        for each in self.chunks.irange(key):
            ranges, ledger_id = self.chunks[each].ranges, each[0]
            for at in range(i * _FIELDS, len(ranges), _FIELDS):
                yield (ledger_id, ranges[at + _FIRST]), (ledger_id, ranges[at + _LAST])
            i = 0

    def _find(self, ledger_id: int, entry_id: int) -> tuple[ChunkKey, int] | None:
        """Return the last range that starts at or before the entry: its chunk, and its index in the chunk."""
        key = (ledger_id, entry_id // CHUNK_ENTRIES)
        chunk = self.chunks.get(key)
        if chunk is not None:
            i = bisect_right(chunk.starts, entry_id % CHUNK_ENTRIES)
            if i:
                return key, i - 1
        i = self.chunks.bisect_left(key)
        if i:
            key, chunk = self.chunks.peekitem(i - 1)
            if key[0] == ledger_id:
                return key, len(chunk.starts) - 1
        return None

    # Mutation

    def add(self, acked: AckedRange) -> None:
        """Add a range, merged with the ranges that it touches or overlaps."""
        ledger_id, first, last = acked[:3]
        found = self._find(ledger_id, first)
        if found is None or self.chunks[found[0]].ranges[found[1] * _FIELDS + _LAST] < first - 1:
            found = self._insert(acked)
        else:
            self._grow(found, acked)
        low, high = first // CHUNK_ENTRIES, (last + 1) // CHUNK_ENTRIES
        keys = [(ledger_id, low)] if low == high else list(self.chunks.irange((ledger_id, low), (ledger_id, high)))
        for key in keys:
            chunk = self.chunks.get(key)
            if chunk is not None:
                i = bisect_right(chunk.starts, first % CHUNK_ENTRIES) if key[1] == low else 0
                while i < len(chunk.starts) and chunk.ranges[i * _FIELDS + _FIRST] <= last + 1:
                    self._grow(found, self._pop((key, i)))

    def add_entry(
        self, ledger_id: int, entry_id: int, messages: int, size: int, total_messages: int, total_bytes: int
    ) -> bool:
        """Add one entry of ``messages`` and ``size`` bytes; the totals include it. False if a range covers it already.

        Equivalent to ``covers`` and ``add``, for out-of-order acknowledgements: most of them extend the last range or
        have neighbours in their chunk, and need one lookup.
        """
        if self._end is not None:
            ranges = self._end.ranges
            if ranges[_LAST - _FIELDS] == entry_id - 1 and ranges[-_FIELDS] == ledger_id:
                self._touch((ledger_id, ranges[_FIRST - _FIELDS] // CHUNK_ENTRIES))
                ranges[_LAST - _FIELDS] = entry_id
                ranges[_MESSAGES_AFTER - _FIELDS] = total_messages
                ranges[_BYTES_AFTER - _FIELDS] = total_bytes
                self.entries += 1
                self.messages += messages
                self.size += size
                return True
        return self._add_elsewhere(ledger_id, entry_id, messages, size, total_messages, total_bytes)

    def _add_elsewhere(
        self, ledger_id: int, entry_id: int, messages: int, size: int, total_messages: int, total_bytes: int
    ) -> bool:
        key = (ledger_id, entry_id // CHUNK_ENTRIES)
        start = entry_id % CHUNK_ENTRIES
        chunk = self.chunks.get(key)
        i = bisect_right(chunk.starts, start) if chunk is not None else 0
        if chunk is None or not i or start == CHUNK_ENTRIES - 1:
            if self.covers(ledger_id, entry_id):
                return False
            before = (total_messages - messages, total_messages, total_bytes - size, total_bytes)
            self.add(AckedRange(ledger_id, entry_id, entry_id, *before))
            self._end = self.chunks.peekitem(-1)[1]
            return True
        starts, ranges = chunk.starts, chunk.ranges
        at = i * _FIELDS  # of the range after it
        last = ranges[at - _FIELDS + _LAST]
        if last >= entry_id:
            return False
        self._touch(key)
        touches_next = i < len(starts) and starts[i] == start + 1
        if last == entry_id - 1:
            if touches_next:
                ranges[at - _FIELDS + _LAST] = ranges[at + _LAST]
                ranges[at - _FIELDS + _MESSAGES_AFTER] = ranges[at + _MESSAGES_AFTER]
                ranges[at - _FIELDS + _BYTES_AFTER] = ranges[at + _BYTES_AFTER]
                del ranges[at : at + _FIELDS], starts[i]
            else:
                ranges[at - _FIELDS + _LAST] = entry_id
                ranges[at - _FIELDS + _MESSAGES_AFTER] = total_messages
                ranges[at - _FIELDS + _BYTES_AFTER] = total_bytes
        elif touches_next:
            starts[i] = start
            ranges[at + _FIRST] = entry_id
            ranges[at + _MESSAGES_BEFORE] = total_messages - messages
            ranges[at + _BYTES_BEFORE] = total_bytes - size
        else:
            starts.insert(i, start)
            before = (total_messages - messages, total_messages, total_bytes - size, total_bytes)
            ranges[at:at] = array("Q", (ledger_id, entry_id, entry_id, *before))
        self.entries += 1
        self.messages += messages
        self.size += size
        return True

    def take(self, ledger_id: int, first: int) -> AckedRange | None:
        """Remove and return the range that starts at ``first``, or None if there is none."""
        key = (ledger_id, first // CHUNK_ENTRIES)
        chunk = self.chunks.get(key)
        if chunk is None:
            return None
        starts, ranges = chunk.starts, chunk.ranges
        start = first % CHUNK_ENTRIES
        i = bisect_left(starts, start)
        if i == len(starts) or starts[i] != start:
            return None
        at = i * _FIELDS
        acked = new_range(AckedRange, ranges[at : at + _FIELDS])
        _, _, last, messages_before, messages_after, bytes_before, bytes_after = acked
        self.entries -= last - first + 1
        self.messages -= messages_after - messages_before
        self.size -= bytes_after - bytes_before
        self._touch(key)
        if len(starts) == 1:
            del self.chunks[key]
            self._end = None
        else:
            del ranges[at : at + _FIELDS], starts[i]
        return acked

    def drop_through(self, ledger_id: int, entry_id: int) -> AckedRange | None:
        """Remove everything up to an entry, and return the removed range that extends past it, or None."""
        found = self._find(ledger_id, entry_id)
        beyond = None
        if found is not None and self.chunks[found[0]].ranges[found[1] * _FIELDS + _LAST] > entry_id:
            beyond = self._pop(found)
        border = (ledger_id, entry_id // CHUNK_ENTRIES)
        while self.chunks:
            key, chunk = self.chunks.peekitem(0)
            if key > border:
                break
            count = len(chunk.starts) if key < border else bisect_right(chunk.starts, entry_id % CHUNK_ENTRIES)
            if count:
                self._count(chunk.ranges[: count * _FIELDS], -1)
                self._delete(key, 0, count)
            if key == border:
                break
        return beyond

    def drop_ledger(self, ledger_id: int) -> bool:
        """Remove the ranges of a ledger; return whether there were any."""
        keys = list(self.chunks.irange((ledger_id, 0), (ledger_id + 1, 0), inclusive=(True, False)))
        for key in keys:
            chunk = self.chunks[key]
            self._count(chunk.ranges, -1)
            self._delete(key, 0, len(chunk.starts))
        return bool(keys)

    def end_of(self, chunks: int) -> AckedRange | None:
        """Return the last range of the first ``chunks`` chunks, or None if there are no further chunks."""
        if len(self.chunks) <= chunks:
            return None
        ranges = self.chunks.peekitem(chunks - 1)[1].ranges
        return new_range(AckedRange, ranges[-_FIELDS:])

    def clear(self) -> None:
        """Remove all ranges."""
        for key in self.chunks:
            self._touch(key)
        self.chunks.clear()
        self._end = None
        self.entries = self.messages = self.size = 0

    def _insert(self, acked: AckedRange) -> tuple[ChunkKey, int]:
        number, start = divmod(acked.first, CHUNK_ENTRIES)
        key = (acked.ledger_id, number)
        self._touch(key)
        chunk = self.chunks.get(key)
        if chunk is None:
            self.chunks[key] = _Chunk(array("Q", acked))
            self._end = None
            i = 0
        else:
            i = bisect_left(chunk.starts, start)
            chunk.starts.insert(i, start)
            chunk.ranges[i * _FIELDS : i * _FIELDS] = array("Q", acked)
        self.entries += acked.last - acked.first + 1
        self.messages += acked.messages_after - acked.messages_before
        self.size += acked.bytes_after - acked.bytes_before
        return key, i

    def _grow(self, place: tuple[ChunkKey, int], acked: AckedRange) -> None:
        """Extend a range to the end of ``acked``, which starts in it or directly after it."""
        key, i = place
        ranges = self.chunks[key].ranges
        at = i * _FIELDS
        if acked.last > ranges[at + _LAST]:
            self._touch(key)
            self.entries += acked.last - ranges[at + _LAST]
            self.messages += acked.messages_after - ranges[at + _MESSAGES_AFTER]
            self.size += acked.bytes_after - ranges[at + _BYTES_AFTER]
            ranges[at + _LAST] = acked.last
            ranges[at + _MESSAGES_AFTER] = acked.messages_after
            ranges[at + _BYTES_AFTER] = acked.bytes_after

    def _pop(self, place: tuple[ChunkKey, int]) -> AckedRange:
        key, i = place
        at = i * _FIELDS
        chunk = self.chunks[key]
        acked = new_range(AckedRange, chunk.ranges[at : at + _FIELDS])
        self.entries -= acked.last - acked.first + 1
        self.messages -= acked.messages_after - acked.messages_before
        self.size -= acked.bytes_after - acked.bytes_before
        self._delete(key, i, i + 1)
        return acked

    def _delete(self, key: ChunkKey, start: int, stop: int) -> None:
        """Remove ranges from a chunk, and the chunk once it is empty."""
        self._touch(key)
        chunk = self.chunks[key]
        del chunk.ranges[start * _FIELDS : stop * _FIELDS]
        del chunk.starts[start:stop]
        if not chunk.starts:
            del self.chunks[key]
            self._end = None

    def _count(self, ranges: "array[int]", sign: int) -> None:
        lasts, firsts = sum(ranges[_LAST::_FIELDS]), sum(ranges[_FIRST::_FIELDS])
        self.entries += sign * (lasts - firsts + len(ranges) // _FIELDS)
        self.messages += sign * (sum(ranges[_MESSAGES_AFTER::_FIELDS]) - sum(ranges[_MESSAGES_BEFORE::_FIELDS]))
        self.size += sign * (sum(ranges[_BYTES_AFTER::_FIELDS]) - sum(ranges[_BYTES_BEFORE::_FIELDS]))

    # Checkpoint

    def pack(self, key: ChunkKey) -> bytes:
        """Return the ranges of a chunk as the body of an ACKED record; empty if it has none."""
        chunk = self.chunks.get(key)
        return b"" if chunk is None else _big_endian(chunk.ranges[:]).tobytes()

    def load(self, body: bytes) -> None:
        """Add the ranges of an ACKED record; fast if they are one whole chunk, as written by ``pack``."""
        ranges = array("Q")
        ranges.frombytes(body)
        _big_endian(ranges)
        if not ranges:
            return
        key = (ranges[0], ranges[_FIRST] // CHUNK_ENTRIES)
        if key in self.chunks or ranges[_FIRST - _FIELDS] // CHUNK_ENTRIES != key[1]:
            for at in range(0, len(ranges), _FIELDS):
                self.add(AckedRange(*ranges[at : at + _FIELDS]))
            return
        self._touch(key)
        self.chunks[key] = _Chunk(ranges)
        self._end = None
        self._count(ranges, 1)


def _big_endian(numbers: "array[int]") -> "array[int]":
    """Swap between native and on-disk byte order, in place."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
