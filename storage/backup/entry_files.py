"""Files of a backup with entries, from whichever data directory has them intact.

A file is MAGIC, then runs of consecutive entries of a ledger that are in one batch: its position, the size of the
records, and the records as a journal has them, uncompressed::

    position u64 | size u32 | records

``BackupFile.runs`` lists the entries, so that the next backup stores only others.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.backup.manifest import BackupDamaged, BackupFile
from pulsarbox.storage.ensemble.member import Piece
from pulsarbox.storage.format import RECORD_PREFIX
from pulsarbox.storage.lmdb.coverage import merged, missing
from pulsarbox.storage.record import Entry, pack_entry, unpack_entry

MAGIC: Final = b"pbxent\0\1"
FILE_BYTES: Final = 8 << 20
"""A file ends with the run that reaches this size."""
_HEAD: Final = struct.Struct(">QI")
_ANY: Final = 1 << 62

Runs = list[tuple[int, int]]


class NeededEntries:
    """Entries that are not stored yet, as runs by ledger."""

    def __init__(self, ledgers: dict[int, int | None]) -> None:
        """Need the entries of ``ledgers``: so many from 0 on, or all that are found."""
        self._runs: dict[int, Runs] = {
            ledger: [(0, _ANY if entries is None else entries)] for ledger, entries in ledgers.items() if entries != 0
        }

    def has(self, ledger_id: int, entry_id: int) -> bool:
        """Return whether an entry is needed."""
        return any(first <= entry_id < end for first, end in self._runs.get(ledger_id, ()))

    def count(self, ledger_id: int, first: int, end: int) -> int:
        """Return how many entries of a run are needed."""
        return sum(max(min(end, high) - max(first, low), 0) for low, high in self._runs.get(ledger_id, ()))

    def stored(self, ledger_id: int, first: int, end: int) -> None:
        """Note that a run is stored."""
        runs = self._runs.get(ledger_id, [])
        self._runs[ledger_id] = [part for run in runs for part in missing(run, [(first, end)])]


class EntryFileWriter:
    """Collects runs of entries into files."""

    def __init__(self, store: Callable[[bytes, tuple[tuple[int, int, int], ...]], None]) -> None:
        """``store`` is called with the content of each file, and the entries in it."""
        self._store = store
        self._parts: list[bytes] = [MAGIC]
        self._size = len(MAGIC)
        self._runs: dict[int, Runs] = {}

    def add(self, piece: Piece) -> None:
        """Add entries. Raises OSError."""
        ledger_id, first = piece.entries[0].ledger_id, piece.entries[0].entry_id
        records = b"".join([pack_entry(entry) + entry.body for entry in piece.entries])
        self._parts += [_HEAD.pack(piece.position, len(records)), records]
        self._size += _HEAD.size + len(records)
        runs, end = self._runs.setdefault(ledger_id, []), piece.entries[-1].entry_id + 1
        if runs and runs[-1][1] == first:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((first, end))
        if self._size >= FILE_BYTES:
            self.finish()

    def finish(self) -> None:
        """Store what is left. Raises OSError."""
        if self._runs:
            runs = [(ledger, *run) for ledger, found in sorted(self._runs.items()) for run in merged(found)]
            self._store(b"".join(self._parts), tuple(runs))
        self._parts, self._size, self._runs = [MAGIC], len(MAGIC), {}


def read_pieces(file: BackupFile, data: bytes, where: str) -> Iterator[Piece]:
    """Yield the runs of a file. Raises BackupDamaged."""
    if not data.startswith(MAGIC):
        raise BackupDamaged(f"{where} has no entries")
    at = len(MAGIC)
    try:
        while at < len(data):
            position, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            yield Piece(position, _entries(data[at : at + size], size))
            at += size
    except (PersistenceError, struct.error, IndexError) as error:
        raise BackupDamaged(f"{where} ({file.path}) is damaged: {error}") from error


def _entries(records: bytes, size: int) -> list[Entry]:
    if len(records) != size:
        raise PersistenceError("it ends within a record")
    entries: list[Entry] = []
    at = 0
    while at < size:
        entry = unpack_entry(records, at)
        entries.append(entry)
        at += sum(RECORD_PREFIX.unpack_from(records, at)[2:])
    return entries
