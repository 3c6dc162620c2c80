"""Cache of decompressed entries, for readers of the same entries: another subscription, or a seek back. Pure.

A position never holds a different entry, and ledger ids are never reused, so the cache needs no invalidation: unused
entries are evicted when space runs out, even those of deleted ledgers. The cache is consulted only for entries that the
index contains.
"""

from typing import Final, NamedTuple

from pulsarbox.storage.record import Entry

ENTRY_BYTES: Final = 640
"""Overhead of a cached entry besides its body, measured with CPython 3.11, rounded up."""
KEPT_BYTES: Final = 16 << 20
"""Default size of the cache in bytes, overhead included."""


class UnpackedUse(NamedTuple):
    """Statistics of the cache since startup."""

    hits: int
    """Entries served from the cache."""
    misses: int
    """Entries decompressed."""
    bytes: int
    """Bytes cached now, overhead included."""


def nothing_unpacked() -> UnpackedUse:
    """Return the statistics of a store without compression."""
    return UnpackedUse(0, 0, 0)


class DecompressedCache:
    """The cache, in two generations: a full younger one replaces the older, whose entries are evicted.

    A hit moves an entry into the younger generation. This approximates LRU without an ordered list, and costs a
    sequential reader almost nothing. Belongs to one thread, but ``use`` is thread-safe.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        """``limit`` is the size in bytes, with ENTRY_BYTES of overhead per entry. 0 disables the cache."""
        self._half = limit // 2
        self._younger: dict[tuple[int, int], Entry] = {}
        self._older: dict[tuple[int, int], Entry] = {}
        self._younger_bytes = 0
        self._older_bytes = 0
        self._hits = 0
        self._misses = 0

    @property
    def use(self) -> UnpackedUse:
        """Statistics so far."""
        return UnpackedUse(self._hits, self._misses, self._younger_bytes + self._older_bytes)

    def get(self, ledger_id: int, entry_id: int) -> Entry | None:
        """Return the entry, or None if it is not cached."""
        position = ledger_id, entry_id
        entry = self._younger.get(position)
        if entry is None:
            entry = self._older.pop(position, None)
            if entry is None:
                return None
            self._older_bytes -= len(entry.body) + ENTRY_BYTES
            self._add(position, entry)
        self._hits += 1
        return entry

    def store(self, entry: Entry) -> None:
        """Count a miss, and cache the entry after it was decompressed and verified."""
        self._misses += 1
        self._add((entry.ledger_id, entry.entry_id), entry)

    def _add(self, position: tuple[int, int], entry: Entry) -> None:
        cost = len(entry.body) + ENTRY_BYTES
        if cost > self._half:
            return
        if self._younger_bytes + cost > self._half:
            self._older, self._older_bytes = self._younger, self._younger_bytes
            self._younger, self._younger_bytes = {}, 0
        self._younger[position] = entry
        self._younger_bytes += cost
