"""Delivery times of a topic's delayed entries: a checkpointed index of the headers in the log.

The index is divided into chunks of entry ids of one ledger, each sorted by time. The next entry due is the first row of
some chunk; the entries to skip in log order are in one chunk; a deleted ledger takes its chunks with it. Memory holds
the extents of the chunks (one per 4096 entry ids), the chunks changed since the last checkpoint, and a small cache: ten
million delayed entries take a megabyte. Loading a topic rebuilds nothing.

Rows of a full chunk never change: entries that are due remain until their ledger is deleted. An entry whose row was
damaged gets another one when a reader skips it.
"""

import json
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from pulsarbox.storage.acknowledged_ranges import ChunkKey
from pulsarbox.storage.catalog import Catalog, Row, delayed_key, delays_key
from pulsarbox.storage.record import Position

DELAY_CHUNK: Final = 4096
"""Entry ids per chunk, and so per row of the checkpoint."""
CACHED_CHUNKS: Final = 16
"""Cached unchanged chunks per topic: 40 KB each if every entry is delayed."""

TimeKey = tuple[int, int, int]
"""Delivery time (ms since 1970), ledger, entry id: the sort key of all delayed entries."""

_TIME_BYTES: Final = array("Q").itemsize
_PLACE_BYTES: Final = array("H").itemsize
ROW_BYTES: Final = _TIME_BYTES + _PLACE_BYTES + array("I").itemsize
"""Bytes per entry in the table."""
assert ROW_BYTES == 14


class DelayedChunk:
    """Delayed entries of one chunk: delivery time, place in the chunk, bytes; sorted by the first two."""

    __slots__ = ("_by_place", "places", "sizes", "times")

    def __init__(self, rows: Iterable[tuple[int, int, int]] = ()) -> None:
        """``rows`` are sorted: times, places, sizes."""
        times, places, sizes = tuple(zip(*rows, strict=True)) or ((), (), ())
        self.times, self.places, self.sizes = array("Q", times), array("H", places), array("I", sizes)
        self._by_place: dict[int, int] | None = None

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Return times, places and sizes, sorted."""
        return zip(self.times, self.places, self.sizes, strict=True)

    def __len__(self) -> int:
        return len(self.times)

    def _find(self, time: int, place: int) -> tuple[int, bool]:
        """Return the index of the row or its insertion point, and whether it exists."""
        times, places = self.times, self.places
        low, high = bisect_left(times, time), bisect_right(times, time)
        at = bisect_left(places, place, low, high)
        return at, at < high and places[at] == place

    def has(self, time: int, place: int) -> bool:
        """Return whether the row exists."""
        return self._find(time, place)[1]

    def add(self, time: int, place: int, size: int) -> bool:
        """Add a row; False if it exists."""
        if not self.times or time > self.times[-1]:
            self.times.append(time)
            self.places.append(place)
            self.sizes.append(size)
        else:
            at, found = self._find(time, place)
            if found:
                return False
            self.times.insert(at, time)
            self.places.insert(at, place)
            self.sizes.insert(at, size)
        if self._by_place is not None:
            self._by_place[place] = time
        return True

    def with_all(self, rows: Iterable[tuple[int, int, int]]) -> "DelayedChunk":
        """Return the chunk with more rows, of which some may exist; sorts once, unlike repeated ``add``."""
        if not self:
            return DelayedChunk(sorted(rows))
        by_place = {(time, place): size for time, place, size in chain(self.rows(), rows)}
        return DelayedChunk(sorted((time, place, size) for (time, place), size in by_place.items()))

    def behind(self, key: TimeKey, ledger_id: int, base: int) -> int:
        """Return the index of the first row after ``key``; ``base`` is the first entry id of the chunk."""
        time, key_ledger, key_entry = key
        if key_ledger < ledger_id or (key_ledger == ledger_id and key_entry < base):
            return bisect_left(self.times, time)
        if key_ledger > ledger_id or key_entry >= base + DELAY_CHUNK:
            return bisect_right(self.times, time)
        low, high = bisect_left(self.times, time), bisect_right(self.times, time)
        return bisect_right(self.places, key_entry - base, low, high)

    def due(self, place: int) -> int | None:
        """Return the delivery time of the entry at this place of the chunk, or None if it is not delayed."""
        if self._by_place is None:
            self._by_place = dict(zip(self.places, self.times, strict=True))
        return self._by_place.get(place)

    def without(self, first: int) -> "DelayedChunk":
        """Return the chunk without the places from ``first`` on."""
        return DelayedChunk([row for row in self.rows() if row[1] < first])

    def pack(self) -> bytes:
        """Return the chunk as a row of the checkpoint."""
        return b"".join(_big_endian(each[:]).tobytes() for each in (self.times, self.places, self.sizes))


def unpack_chunk(row: bytes, count: int) -> DelayedChunk:
    """Decode a checkpoint row of ``count`` entries. Raises ValueError if it has another length."""
    if len(row) != count * ROW_BYTES:
        raise ValueError(f"{len(row)} bytes are not a row of {count} delayed entries")
    chunk = DelayedChunk()
    sizes = count * (_TIME_BYTES + _PLACE_BYTES)
    chunk.times.frombytes(row[: count * _TIME_BYTES])
    chunk.places.frombytes(row[count * _TIME_BYTES : sizes])
    chunk.sizes.frombytes(row[sizes:])
    for each in (chunk.times, chunk.places, chunk.sizes):
        _big_endian(each)
    return chunk


def chunk_entries(row: bytes) -> int:
    """Return the number of entries in a checkpoint row, without its extent."""
    return len(row) // ROW_BYTES


def _big_endian(numbers: "array[int]") -> "array[int]":
    """Swap between native and on-disk byte order, in place."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


class NotDue(NamedTuple):
    """Entries due later than some time."""

    entries: int
    size: int
    """Their bytes."""
    next_at: int
    """Delivery time of the first one (ms since 1970); 0 if there is none."""


NOTHING_LATE: Final = NotDue(0, 0, 0)


class Extent:
    """Summary of a chunk: number of rows, first and last time, bytes of the entries."""

    __slots__ = ("_passed", "_passed_from", "_passed_size", "_passed_to", "count", "first", "last", "left", "size")

    def __init__(self, count: int, first: int, last: int, size: int) -> None:
        self.count = count
        self.first = first
        self.last = last
        self.size = size
        self._passed = self._passed_size = self._passed_from = self._passed_to = 0
        self.left = (first, 0)
        """Time and place of a row before which a walk in time order need not look. An earlier row moves it back."""

    @classmethod
    def of(cls, chunk: DelayedChunk) -> "Extent":
        """Summarize a non-empty chunk."""
        return cls(len(chunk), chunk.times[0], chunk.times[-1], sum(chunk.sizes))

    def grown(self, time: int, size: int) -> None:
        """Add one row."""
        self.count += 1
        self.size += size
        self.first = min(self.first, time)
        self.last = max(self.last, time)
        self.left = min(self.left, (time, 0))
        self._passed_to = 0

    def not_due(self, time: int, delays: "Delays", key: ChunkKey) -> "NotDue":
        """Return its rows due later than ``time``; cached until the next one is due."""
        if time < self.first:
            return NotDue(self.count, self.size, self.first)
        if time >= self.last:
            return NOTHING_LATE
        if not self._passed_from <= time < self._passed_to:
            chunk = delays.chunk(*key)
            if not chunk:
                return NOTHING_LATE
            self._passed = bisect_right(chunk.times, time)
            self._passed_size = sum(chunk.sizes[: self._passed])
            self._passed_from, self._passed_to = chunk.times[self._passed - 1], chunk.times[self._passed]
        return NotDue(self.count - self._passed, self.size - self._passed_size, self._passed_to)


class Delays:
    """The delayed entries of one topic, confirmed or not."""

    __slots__ = ("_cached", "_catalog", "_changed", "_extents", "topic_id")

    def __init__(self, topic_id: int, catalog: Catalog) -> None:
        self.topic_id = topic_id
        self._catalog = catalog
        self._extents: dict[int, dict[int, Extent]] = {}
        """By ledger and chunk number."""
        self._changed: dict[ChunkKey, DelayedChunk] = {}
        """Chunks whose row is older than the log."""
        self._cached: OrderedDict[ChunkKey, DelayedChunk] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._extents)

    def __len__(self) -> int:
        return sum(extent.count for _, extent in self.extents())

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return len(self) * ROW_BYTES

    def extents(self) -> Iterator[tuple[ChunkKey, Extent]]:
        """Yield the non-empty chunks with their extents."""
        for ledger_id, extents in self._extents.items():
            for number, extent in extents.items():
                yield (ledger_id, number), extent

    def extent(self, ledger_id: int, number: int) -> Extent | None:
        """Return the extent of a chunk, or None if nothing in it is delayed."""
        extents = self._extents.get(ledger_id)
        return None if extents is None else extents.get(number)

    def chunk(self, ledger_id: int, number: int) -> DelayedChunk:
        """Return a chunk, read-only; empty if nothing in it is delayed."""
        key = (ledger_id, number)
        chunk = self._changed.get(key)
        if chunk is not None:
            return chunk
        chunk = self._cached.get(key)
        if chunk is not None:
            self._cached.move_to_end(key)
            return chunk
        extent = self.extent(ledger_id, number)
        if extent is None:
            return DelayedChunk()
        try:
            row = self._catalog.raw(delayed_key(self.topic_id, ledger_id, number)) or b""
            chunk = unpack_chunk(row, extent.count)
        except ValueError:
            chunk = DelayedChunk()
        if chunk:
            self._keep(key, chunk)
            return chunk
        del self._extents[ledger_id][number]  # damaged row: the entries have their delivery times
        return DelayedChunk()

    def _keep(self, key: ChunkKey, chunk: DelayedChunk) -> None:
        self._cached[key] = chunk
        if len(self._cached) > CACHED_CHUNKS:
            self._cached.popitem(last=False)

    def has(self, ledger_id: int, entry_id: int, time: int) -> bool:
        """Return whether an entry has a row."""
        number, place = divmod(entry_id, DELAY_CHUNK)
        return self.extent(ledger_id, number) is not None and self.chunk(ledger_id, number).has(time, place)

    def not_due(self, after: tuple[int, int], time: int) -> NotDue:
        """Return the entries after a position that are due later than ``time``."""
        entries = size = 0
        next_at = 1 << 64
        after_ledger, (number, place) = after[0], divmod(after[1] + 1, DELAY_CHUNK)
        for key, extent in list(self.extents()):
            if key < (after_ledger, number) or extent.last <= time:
                continue
            if key == (after_ledger, number) and place:
                late = _late_from(self.chunk(*key), place, time)
            else:
                late = extent.not_due(time, self, key)
            if late.entries:
                entries, size, next_at = entries + late.entries, size + late.size, min(next_at, late.next_at)
        return NotDue(entries, size, next_at) if entries else NOTHING_LATE

    # Mutation

    def record(self, ledger_id: int, entry_id: int, time: int, size: int) -> None:
        """Add an entry of ``size`` bytes, due at ``time`` (ms since 1970)."""
        number, place = divmod(entry_id, DELAY_CHUNK)
        if not self._chunk_to_change((ledger_id, number)).add(time, place, size):
            return
        extents = self._extents.setdefault(ledger_id, {})
        extent = extents.get(number)
        if extent is None:
            extents[number] = Extent(1, time, time, size)
        else:
            extent.grown(time, size)

    def _chunk_to_change(self, key: ChunkKey) -> DelayedChunk:
        chunk = self._changed.get(key)
        if chunk is None:
            chunk = self._changed[key] = self.chunk(*key)
            self._cached.pop(key, None)
        return chunk

    def record_all(self, ledger_id: int, entries: Sequence[int], times: Sequence[int], sizes: Sequence[int]) -> None:
        """Add many entries of one ledger, in log order."""
        at = 0
        while at < len(entries):
            number = entries[at] // DELAY_CHUNK
            base = number * DELAY_CHUNK
            end = bisect_left(entries, base + DELAY_CHUNK, at)
            key = (ledger_id, number)
            places = [entry - base for entry in entries[at:end]]
            chunk = self._chunk_to_change(key).with_all(zip(times[at:end], places, sizes[at:end], strict=True))
            self._changed[key] = chunk
            self._extents.setdefault(ledger_id, {})[number] = Extent.of(chunk)
            at = end

    def roll_back(self, last: Position) -> bool:
        """Remove the entries after ``last``, which were not stored; return whether there were any."""
        number, place = divmod(last.entry_id + 1, DELAY_CHUNK)
        border = (last.ledger_id, number)
        behind = [key for key, _ in self.extents() if key >= border]
        for key in behind:
            chunk = self.chunk(*key)
            left = chunk.without(place if key == border else 0)
            if len(left) < len(chunk):
                self._cached.pop(key, None)
                self._changed[key] = left
                if left:
                    self._extents[key[0]][key[1]] = Extent.of(left)
                else:
                    del self._extents[key[0]][key[1]]
        return bool(behind)

    def drop(self, ledger_id: int) -> None:
        """Remove a deleted ledger and its rows."""
        self._extents.pop(ledger_id, None)
        for chunks in (self._changed, self._cached):
            for key in [key for key in chunks if key[0] == ledger_id]:
                del chunks[key]
        forget_delays(self._catalog, self.topic_id, ledger_id)

    # Checkpoint

    def dirty_rows(self) -> dict[str, bytes | Row | None]:
        """Return the rows that changed since the last call, None for deleted ones."""
        rows: dict[str, bytes | Row | None] = {}
        for key in sorted(self._changed):
            chunk = self._changed[key]
            rows[delayed_key(self.topic_id, *key)] = chunk.pack() if chunk else None
            if chunk:
                self._keep(key, chunk)
        for ledger_id in sorted({key[0] for key in self._changed}):
            extents = self._extents.get(ledger_id, {})
            row = {str(number): [each.count, each.first, each.last, each.size] for number, each in extents.items()}
            rows[delays_key(self.topic_id, ledger_id)] = row or None
        self._changed.clear()
        return rows

    def restore(self, ledger_id: int, row: Row) -> None:
        """Restore the extents of a ledger's chunks from the checkpoint."""
        self._extents[ledger_id] = {int(number): Extent(*known) for number, known in row.items()}


def _late_from(chunk: DelayedChunk, place: int, time: int) -> NotDue:
    """Return the rows of a chunk, from a place on, that are due later than ``time``."""
    rows = list(islice(chunk.rows(), bisect_right(chunk.times, time), None))
    late = [(at, size) for at, each, size in rows if each >= place]
    return NotDue(len(late), sum(size for _, size in late), late[0][0]) if late else NOTHING_LATE


def forget_delays(catalog: Catalog, topic_id: int, ledger_id: int | None = None) -> None:
    """Delete the rows of a ledger, or of a whole topic, with the next checkpoint, without reading the chunks."""
    for key, value in list(catalog.items(delays_key(topic_id, ledger_id))):
        ledger = int(key.rpartition("/")[2], 16)
        for number in json.loads(value):
            catalog.note(delayed_key(topic_id, ledger, int(number)), None)
        catalog.note(key, None)
