"""Entries that were unpacked, kept for who reads the same again: another subscription, a seek back. Pure.

A position never has another entry, and no ledger gets the number of one that is gone; so what is kept never has to be
taken back. What nobody asks for goes when there is no room, whatever has become of its ledger; and it is only asked for
where the index says that the entry is there.
"""

from typing import Final, NamedTuple

from pulsarbox.storage.record import Entry

ENTRY_BYTES: Final = 640
"""What keeping an entry takes besides the bytes of its body, measured with CPython 3.11, rounded up."""
KEPT_BYTES: Final = 16 << 20
"""Of entries that were unpacked, and of what keeping them takes, where nothing else is said."""


class UnpackedUse(NamedTuple):
    """What keeping entries has been good for since the start."""

    hits: int
    """Entries that did not have to be unpacked again."""
    misses: int
    """Entries that were unpacked."""
    bytes: int
    """What is kept now, with what keeping takes."""


def nothing_unpacked() -> UnpackedUse:
    """Of a store that compresses nothing."""
    return UnpackedUse(0, 0, 0)


class Unpacked:
    """Entries that were compressed, in two halves: when the younger is full, it takes the place of the older, whose
    entries go; what is asked for comes into the younger. So what was asked for longest ago goes, without a list that
    has to be kept in order: who reads on and on, and nothing twice, hardly pays for it.

    Belongs to one thread; ``use`` may be asked for in any.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        """``limit``: bytes that are kept at most, with ENTRY_BYTES for each entry. 0 keeps nothing."""
        self._half = limit // 2
        self._younger: dict[tuple[int, int], Entry] = {}
        self._older: dict[tuple[int, int], Entry] = {}
        self._younger_bytes = 0
        self._older_bytes = 0
        self._hits = 0
        self._misses = 0

    @property
    def use(self) -> UnpackedUse:
        """How it has done so far."""
        return UnpackedUse(self._hits, self._misses, self._younger_bytes + self._older_bytes)

    def get(self, ledger_id: int, entry_id: int) -> Entry | None:
        """The entry, None where it is not kept."""
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

    def keep(self, entry: Entry) -> None:
        """This one was unpacked and verified, because it was not kept."""
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
