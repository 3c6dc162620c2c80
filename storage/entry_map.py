"""A map from entries of a topic to numbers, in the same chunks as the acknowledged ranges.

There may be millions of these as well, so only the numbers are stored, under small keys that all chunks share.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, TypeVar, overload

from sortedcontainers import SortedDict

from pulsarbox.storage.acknowledged_ranges import CHUNK_ENTRIES, ChunkKey
from pulsarbox.storage.record import Position

V = TypeVar("V")
D = TypeVar("D")

_PLACES: Final = tuple(range(CHUNK_ENTRIES))
"""The keys: one object each, shared by all chunks."""


class EntryMap(Mapping[tuple[int, int], V], Generic[V]):
    """Maps a position to its decoded number. ``touch`` is called for every chunk that changes."""

    __slots__ = ("_decode", "_touch", "chunks")

    def __init__(self, touch: Callable[[ChunkKey], object], decode: Callable[[int], V]) -> None:
        self._touch = touch
        self._decode = decode
        self.chunks: SortedDict[ChunkKey, dict[int, int]] = SortedDict()
        """Chunks that hold a number. Other classes may only test for their presence."""

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self.chunks.values())

    def __bool__(self) -> bool:
        return bool(self.chunks)

    def __iter__(self) -> Iterator[Position]:
        for key in self.chunks:
            for position, _ in self.of_chunk(key):
                yield position

    def __getitem__(self, position: tuple[int, int]) -> V:
        value = self.get(position)
        if value is None:
            raise KeyError(position)
        return value

    @overload
    def get(self, position: tuple[int, int], /) -> V | None: ...
    @overload
    def get(self, position: tuple[int, int], /, default: D) -> V | D: ...

    def get(self, position: tuple[int, int], /, default: D | None = None) -> V | D | None:
        """Return the value of an entry, or ``default`` if it has none."""
        chunk = self.chunks.get((position[0], position[1] // CHUNK_ENTRIES))
        number = None if chunk is None else chunk.get(position[1] % CHUNK_ENTRIES)
        return default if number is None else self._decode(number)

    def of_chunk(self, key: ChunkKey) -> list[tuple[Position, V]]:
        """Return the values of a chunk, sorted by position."""
        ledger_id, base = key[0], key[1] * CHUNK_ENTRIES
        chunk = self.chunks.get(key, {})
        return [(Position(ledger_id, base + place), self._decode(chunk[place])) for place in sorted(chunk)]

    def items_after(self, position: tuple[int, int]) -> Iterator[tuple[Position, V]]:
        """Yield the values of the entries after a position, in order. They must not change meanwhile."""
        for key in self.chunks.irange((position[0], position[1] // CHUNK_ENTRIES)):
            yield from (each for each in self.of_chunk(key) if each[0] > position)

    # Mutation

    def put(self, position: tuple[int, int], number: int) -> None:
        """Set the number of an entry."""
        key = (position[0], position[1] // CHUNK_ENTRIES)
        self._touch(key)
        chunk = self.chunks.get(key)
        if chunk is None:
            chunk = self.chunks[key] = {}
        chunk[_PLACES[position[1] % CHUNK_ENTRIES]] = number

    def drop(self, ledger_id: int, first: int, last: int) -> list[V]:
        """Remove and return the values of the entries from ``first`` to ``last``."""
        low, high = first // CHUNK_ENTRIES, last // CHUNK_ENTRIES
        if low == high:
            return self._drop((ledger_id, low), first % CHUNK_ENTRIES, last % CHUNK_ENTRIES)
        dropped = []
        for key in list(self.chunks.irange((ledger_id, low), (ledger_id, high))):
            start = first % CHUNK_ENTRIES if key[1] == low else 0
            dropped += self._drop(key, start, last % CHUNK_ENTRIES if key[1] == high else CHUNK_ENTRIES - 1)
        return dropped

    def drop_ledger(self, ledger_id: int) -> list[V]:
        """Remove and return the values of a ledger's entries."""
        dropped = []
        for key in list(self.chunks.irange((ledger_id, 0), (ledger_id + 1, 0), inclusive=(True, False))):
            dropped += self._drop(key, 0, CHUNK_ENTRIES - 1)
        return dropped

    def drop_through(self, ledger_id: int, entry_id: int) -> list[V]:
        """Remove and return the values of the entries up to this one."""
        border = (ledger_id, entry_id // CHUNK_ENTRIES)
        dropped = []
        while self.chunks:
            key = self.chunks.peekitem(0)[0]
            if key < border:
                dropped += self._drop(key, 0, CHUNK_ENTRIES - 1)
                continue
            if key == border:
                dropped += self._drop(key, 0, entry_id % CHUNK_ENTRIES)
            break
        return dropped

    def clear(self) -> None:
        """Remove all values."""
        for key in self.chunks:
            self._touch(key)
        self.chunks.clear()

    def _drop(self, key: ChunkKey, first: int, last: int) -> list[V]:
        """Remove places ``first`` to ``last`` of a chunk; iterates over the shorter of the range and the chunk."""
        chunk = self.chunks.get(key)
        if chunk is None:
            return []
        if last - first < len(chunk):
            places = [place for place in range(first, last + 1) if place in chunk]
        else:
            places = [place for place in chunk if first <= place <= last]
        if places:
            self._touch(key)
        dropped = [self._decode(chunk.pop(place)) for place in places]
        if not chunk:
            del self.chunks[key]
        return dropped
