"""When the delayed entries of a topic fall due: a checkpoint of what their headers in the log say.

They stand in chunks of so many entry ids of a ledger, each chunk sorted by time. So what falls due next is the first
row of some chunk, what is to be passed by in order of the log is one chunk, and a dropped ledger takes its chunks with
it. In memory are the extents of the chunks (one for 4096 entry ids), those that changed since the last checkpoint, and
a few that were looked at last: ten million delayed entries take a megabyte. Nothing is rebuilt when a topic is loaded.

Rows never change once their chunk is full: what has fallen due stays until its ledger goes. An entry that has no row
(it was published by a version that did not know of any) gets one when somebody steps over it.
"""

import json
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from pulsarbox.storage.catalog import Catalog, Row, delayed_key, delays_key
from pulsarbox.storage.ranges import ChunkKey
from pulsarbox.storage.record import Position

DELAY_CHUNK: Final = 4096
"""Entry ids of one chunk, and so of one row of the checkpoint."""
CACHED_CHUNKS: Final = 16
"""Of those that did not change, per topic: 40 KB each, where every entry is delayed."""

TimeKey = tuple[int, int, int]
"""When an entry falls due (ms since 1970), its ledger, its id: what all delayed entries are sorted by."""

_TIME_BYTES: Final = array("Q").itemsize
ROW_BYTES: Final = _TIME_BYTES + array("H").itemsize
"""What an entry takes in the table."""
assert ROW_BYTES == 10
_PLACE_BITS: Final = 16
_PLACE_MASK: Final = (1 << _PLACE_BITS) - 1
assert DELAY_CHUNK <= _PLACE_MASK


class DelayedChunk:
    """The delayed entries of one chunk: when each falls due, and its place in the chunk; sorted by both."""

    __slots__ = ("_by_place", "places", "times")

    def __init__(self, times: "array[int] | None" = None, places: "array[int] | None" = None) -> None:
        self.times = array("Q") if times is None else times
        self.places = array("H") if places is None else places
        self._by_place: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self.times)

    def _find(self, time: int, place: int) -> tuple[int, bool]:
        """Where the row is, or belongs; and whether it is there."""
        times, places = self.times, self.places
        low, high = bisect_left(times, time), bisect_right(times, time)
        at = bisect_left(places, place, low, high)
        return at, at < high and places[at] == place

    def has(self, time: int, place: int) -> bool:
        """Whether the row is there."""
        return self._find(time, place)[1]

    def add(self, time: int, place: int) -> bool:
        """Add a row; False where it is there already."""
        if not self.times or time > self.times[-1]:
            self.times.append(time)
            self.places.append(place)
        else:
            at, found = self._find(time, place)
            if found:
                return False
            self.times.insert(at, time)
            self.places.insert(at, place)
        if self._by_place is not None:
            self._by_place[place] = time
        return True

    def add_all(self, rows: Iterable[tuple[int, int]]) -> None:
        """Add rows, times and places; they are sorted once, where ``add`` finds the place of each."""
        known = zip(self.times, self.places, strict=True)
        keys = sorted({time << _PLACE_BITS | place for time, place in chain(known, rows)})
        self.times = array("Q", [key >> _PLACE_BITS for key in keys])
        self.places = array("H", [key & _PLACE_MASK for key in keys])
        self._by_place = None

    def behind(self, key: TimeKey, ledger_id: int, base: int) -> int:
        """The index of the first row behind ``key``; the chunk is of a ledger, and ``base`` is its first entry id."""
        time, key_ledger, key_entry = key
        if key_ledger < ledger_id or (key_ledger == ledger_id and key_entry < base):
            return bisect_left(self.times, time)
        if key_ledger > ledger_id or key_entry >= base + DELAY_CHUNK:
            return bisect_right(self.times, time)
        low, high = bisect_left(self.times, time), bisect_right(self.times, time)
        return bisect_right(self.places, key_entry - base, low, high)

    def due(self, place: int) -> int | None:
        """When the entry at this place of the chunk falls due; None where it is not delayed."""
        if self._by_place is None:
            self._by_place = dict(zip(self.places, self.times, strict=True))
        return self._by_place.get(place)

    def without(self, first: int) -> "DelayedChunk":
        """The same without the places from ``first`` on."""
        kept = [(time, place) for time, place in zip(self.times, self.places, strict=True) if place < first]
        return DelayedChunk(array("Q", [time for time, _ in kept]), array("H", [place for _, place in kept]))

    def pack(self) -> bytes:
        """As a row of the checkpoint."""
        times, places = array("Q", self.times), array("H", self.places)
        if sys.byteorder == "little":
            times.byteswap()
            places.byteswap()
        return times.tobytes() + places.tobytes()


def unpack_chunk(row: bytes) -> DelayedChunk:
    """A row of the checkpoint. Raises ValueError where it is cut off."""
    count, rest = divmod(len(row), ROW_BYTES)
    if rest:
        raise ValueError(f"{len(row)} bytes are no row of delayed entries")
    times, places = array("Q"), array("H")
    times.frombytes(row[: count * _TIME_BYTES])
    places.frombytes(row[count * _TIME_BYTES :])
    if sys.byteorder == "little":
        times.byteswap()
        places.byteswap()
    return DelayedChunk(times, places)


class Extent:
    """What is known of a chunk without looking into it: how many rows it has, the first and the last time in them."""

    __slots__ = ("_passed", "_passed_from", "_passed_to", "count", "first", "last")

    def __init__(self, count: int, first: int, last: int) -> None:
        self.count = count
        self.first = first
        self.last = last
        self._passed = self._passed_from = self._passed_to = 0

    def grown(self, time: int) -> None:
        """There is one more row."""
        self.count += 1
        self.first = min(self.first, time)
        self.last = max(self.last, time)
        self._passed_to = 0

    def passed(self, time: int, delays: "Delays", key: ChunkKey) -> int:
        """How many of its rows are due at ``time``; it is looked up again when the next one is."""
        if time < self.first:
            return 0
        if time >= self.last:
            return self.count
        if not self._passed_from <= time < self._passed_to:
            times = delays.chunk(*key).times
            if not times:
                return self.count
            self._passed = bisect_right(times, time)
            self._passed_from, self._passed_to = times[self._passed - 1], times[self._passed]
        return self._passed


class Delays:
    """The delayed entries of one topic, confirmed or not."""

    __slots__ = ("_cached", "_catalog", "_changed", "_extents", "topic_id")

    def __init__(self, topic_id: int, catalog: Catalog) -> None:
        self.topic_id = topic_id
        self._catalog = catalog
        self._extents: dict[int, dict[int, Extent]] = {}
        """By ledger and number of the chunk."""
        self._changed: dict[ChunkKey, DelayedChunk] = {}
        """Chunks whose row does not say what the log says."""
        self._cached: OrderedDict[ChunkKey, DelayedChunk] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._extents)

    def __len__(self) -> int:
        return sum(extent.count for _, extent in self._all())

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return len(self) * ROW_BYTES

    def _all(self) -> Iterator[tuple[ChunkKey, Extent]]:
        for ledger_id, extents in self._extents.items():
            for number, extent in extents.items():
                yield (ledger_id, number), extent

    def extent(self, ledger_id: int, number: int) -> Extent | None:
        """What is known of a chunk; None where nothing in it is delayed."""
        extents = self._extents.get(ledger_id)
        return None if extents is None else extents.get(number)

    def chunk(self, ledger_id: int, number: int) -> DelayedChunk:
        """A chunk; an empty one where nothing in it is delayed. Not to be changed."""
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
            chunk = unpack_chunk(self._catalog.raw(delayed_key(self.topic_id, ledger_id, number)) or b"")
        except ValueError:
            chunk = DelayedChunk()
        if len(chunk) == extent.count:
            self._keep(key, chunk)
            return chunk
        del self._extents[ledger_id][number]  # damaged: the entries themselves say when they fall due
        return DelayedChunk()

    def _keep(self, key: ChunkKey, chunk: DelayedChunk) -> None:
        self._cached[key] = chunk
        if len(self._cached) > CACHED_CHUNKS:
            self._cached.popitem(last=False)

    def has(self, ledger_id: int, entry_id: int, time: int) -> bool:
        """Whether there is a row for an entry."""
        number, place = divmod(entry_id, DELAY_CHUNK)
        return self.extent(ledger_id, number) is not None and self.chunk(ledger_id, number).has(time, place)

    def not_due(self, after: tuple[int, int], time: int) -> int:
        """How many entries behind a position fall due later than ``time``."""
        total = 0
        after_ledger, (number, place) = after[0], divmod(after[1] + 1, DELAY_CHUNK)
        for key, extent in list(self._all()):
            if key < (after_ledger, number) or extent.last <= time:
                continue
            if key == (after_ledger, number) and place:
                chunk = self.chunk(*key)
                total += sum(each >= place for each in chunk.places[bisect_right(chunk.times, time) :])
            else:
                total += extent.count - extent.passed(time, self, key)
        return total

    # Changing

    def record(self, ledger_id: int, entry_id: int, time: int) -> None:
        """An entry falls due at ``time`` (ms since 1970)."""
        number, place = divmod(entry_id, DELAY_CHUNK)
        if not self._chunk_to_change((ledger_id, number)).add(time, place):
            return
        extents = self._extents.setdefault(ledger_id, {})
        extent = extents.get(number)
        if extent is None:
            extents[number] = Extent(1, time, time)
        else:
            extent.grown(time)

    def _chunk_to_change(self, key: ChunkKey) -> DelayedChunk:
        chunk = self._changed.get(key)
        if chunk is None:
            chunk = self._changed[key] = self.chunk(*key)
            self._cached.pop(key, None)
        return chunk

    def record_all(self, ledger_id: int, entries: "array[int]", times: "array[int]") -> None:
        """The same of many entries of one ledger, in the order of the log."""
        at = 0
        while at < len(entries):
            number = entries[at] // DELAY_CHUNK
            base = number * DELAY_CHUNK
            end = bisect_left(entries, base + DELAY_CHUNK, at)
            chunk = self._chunk_to_change((ledger_id, number))
            chunk.add_all(zip(times[at:end], [entry - base for entry in entries[at:end]], strict=True))
            extent = Extent(len(chunk), chunk.times[0], chunk.times[-1])
            self._extents.setdefault(ledger_id, {})[number] = extent
            at = end

    def roll_back(self, last: Position) -> bool:
        """Forget the entries behind ``last``: they are not stored. Whether there were any."""
        number, place = divmod(last.entry_id + 1, DELAY_CHUNK)
        border = (last.ledger_id, number)
        behind = [key for key, _ in self._all() if key >= border]
        for key in behind:
            chunk = self.chunk(*key)
            left = chunk.without(place if key == border else 0)
            if len(left) < len(chunk):
                self._cached.pop(key, None)
                self._changed[key] = left
                if left:
                    self._extents[key[0]][key[1]] = Extent(len(left), left.times[0], left.times[-1])
                else:
                    del self._extents[key[0]][key[1]]
        return bool(behind)

    def drop(self, ledger_id: int) -> None:
        """The ledger is no more: nor are its rows."""
        self._extents.pop(ledger_id, None)
        for chunks in (self._changed, self._cached):
            for key in [key for key in chunks if key[0] == ledger_id]:
                del chunks[key]
        forget_delays(self._catalog, self.topic_id, ledger_id)

    # The checkpoint

    def dirty_rows(self) -> dict[str, bytes | Row | None]:
        """The rows that changed since the last call, None for those that are gone."""
        rows: dict[str, bytes | Row | None] = {}
        for key in sorted(self._changed):
            chunk = self._changed[key]
            rows[delayed_key(self.topic_id, *key)] = chunk.pack() if chunk else None
            if chunk:
                self._keep(key, chunk)
        for ledger_id in sorted({key[0] for key in self._changed}):
            extents = self._extents.get(ledger_id, {})
            row = {str(number): [each.count, each.first, each.last] for number, each in extents.items()}
            rows[delays_key(self.topic_id, ledger_id)] = row or None
        self._changed.clear()
        return rows

    def restore(self, ledger_id: int, row: Row) -> None:
        """Take over what the checkpoint knows of the chunks of a ledger."""
        self._extents[ledger_id] = {int(number): Extent(*known) for number, known in row.items()}


def forget_delays(catalog: Catalog, topic_id: int, ledger_id: int | None = None) -> None:
    """Delete the rows of a ledger, or of a whole topic, with the next checkpoint; the chunks are not read for it."""
    for key, value in list(catalog.items(delays_key(topic_id, ledger_id))):
        ledger = int(key.rpartition("/")[2], 16)
        for number in json.loads(value):
            catalog.note(delayed_key(topic_id, ledger, int(number)), None)
        catalog.note(key, None)
