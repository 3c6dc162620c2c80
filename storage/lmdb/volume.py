"""One volume of the journal: an LMDB environment with the log, its index, and the mark that the index has reached."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.entry_index import (
    IndexFlush,
    IndexSegment,
    UnindexedRuns,
    VolumeRun,
    pack_rows,
    runs_of,
    unpack_row,
)
from pulsarbox.storage.entry_read import Answer
from pulsarbox.storage.format import BATCH_HEADER, ENTRY_HEADER, INDEX_KEY, LOG_KEY, EntryField, RecordKind
from pulsarbox.storage.journal import JournalRun
from pulsarbox.storage.lmdb.directory import DATA_FILE, EnvironmentDamaged
from pulsarbox.storage.lmdb.environment import open_environment
from pulsarbox.storage.record import check_batch

if TYPE_CHECKING:
    from pulsarbox.storage.packing.live_records import LiveRecord

INDEXED = b"indexed"
WRITTEN = b"written"
INDEX_ROOM = 256 << 20
"""Bytes of the map reserved for the pages that the next index flush copies."""

_SEGMENTS_AT_ONCE = 256
_PAGE = 4096
_ID_MAX = 2**64 - 1
_KEYS_AT_ONCE = 1000

NOTHING_TO_INDEX_BYTES = 1 << 20
"""Bytes of log without entries after which the index mark advances: opening a volume reads the log after the mark."""


class FlushAt(NamedTuple):
    """An index flush is due when this much of the log is only in memory."""

    entries: int
    bytes: int


class Volume:
    """An open volume. One thread appends, another may read concurrently.

    ``last_position`` is that of its newest batch, 0 if it has none; ``size`` is about its file size.
    """

    TABLES = (b"log", b"index", b"mark")

    def __init__(
        self, path: Path, map_size: int, flush: FlushAt, keep_until: int | None = None, *, sealed: bool = False
    ) -> None:
        """Open the volume at ``path`` and read the entries that its index does not cover yet.

        Batches after ``keep_until`` are dropped: a commit that failed at its last step may have left one. A ``sealed``
        volume is read-only. Raises PersistenceError if the file or a batch is damaged, and lmdb.Error.
        """
        self.path = path
        self.file = path / DATA_FILE
        self.map_size = map_size
        self._flush_at = flush
        self._env = open_environment(path, map_size, sealed=sealed)
        try:
            status = self.file.stat()
            self.inode = status.st_dev, status.st_ino
            """Device and inode of the file."""
            self._seen_size = status.st_size
            self._log = self._env.open_db(b"log", create=False)
            self._index = self._env.open_db(b"index", create=False)
            self._mark = self._env.open_db(b"mark", create=False)
            if keep_until is not None:
                self._drop_after(keep_until)
            self.first_position, self.last_position, self.indexed = self._extent()
            self.size = self._file_size()
            # New runs collect in one table while the rows of the previous one are written.
            self._runs = UnindexedRuns()
            self._unindexed_bytes = 0
            self._flush: IndexFlush | None = None
            for position, value in () if sealed else self.batches(max(self.indexed + 1, self.first_position)):
                self._runs.add(position, runs_of(value))
                self._unindexed_bytes += len(value)
        except BaseException:
            self._env.close()
            raise

    @property
    def environment(self) -> lmdb.Environment:
        """The LMDB environment, for statistics."""
        return self._env

    def check_file(self) -> None:
        """Raise EnvironmentDamaged if the file was removed, replaced, or truncated since the last call or the opening.

        Reading a page behind the end of a truncated file would end the process with SIGBUS.
        """
        try:
            status = self.file.stat()
        except OSError as error:
            raise EnvironmentDamaged(f"{self.file} cannot be read: {error.strerror}") from error
        if (status.st_dev, status.st_ino) != self.inode:
            raise EnvironmentDamaged(f"{self.file} was replaced")
        if status.st_size < self._seen_size:
            raise EnvironmentDamaged(f"{self.file} was truncated: {status.st_size} of {self._seen_size} bytes")
        self._seen_size = status.st_size

    def has_room(self, size: int) -> bool:
        """Return whether a batch of ``size`` bytes fits into the map, with space for its index."""
        return self.size + size + min(INDEX_ROOM, self.map_size // 4) <= self.map_size

    def append(self, position: int, value: bytes, runs: Mapping[int, JournalRun]) -> None:
        """Append a batch, and index rows that are due: one transaction, one sync.

        Raises lmdb.Error, and PersistenceError if the log already has the position; nothing has changed then.
        """
        flush = self._due_flush()
        rows: list[tuple[bytes, bytes]] = []
        last = False
        if flush is not None:
            # Twice this batch's share of the distance to the next flush, so that this flush completes before it.
            entries = sum([len(run.offsets) for run in runs.values()])
            rows, last = flush.next_rows(2 * max(entries / self._flush_at.entries, len(value) / self._flush_at.bytes))
        try:
            with self._env.begin(write=True) as txn:
                for key, row in rows:
                    txn.put(key, row, db=self._index)
                if flush is not None and last:
                    txn.put(INDEXED, LOG_KEY.pack(flush.up_to), db=self._mark)
                if not txn.put(LOG_KEY.pack(position), value, append=True, db=self._log):
                    raise PersistenceError(f"{self.path}: the log already holds batch {position}")
        except BaseException:
            if flush is not None:
                flush.restore(rows)
            raise
        self.size += (len(value) // _PAGE + 2) * _PAGE
        if flush is not None and last:
            self._flush = None
            self.indexed = flush.up_to
            self.size = self._file_size()
        if not self.first_position:
            self.first_position = position
        self.last_position = position
        self._unindexed_bytes += len(value)
        self._runs.add(position, runs)

    def append_packed(self, batches: Iterable[tuple[int, bytes, Iterable[tuple[int, JournalRun]]]]) -> None:
        """Append batches in position order, with gaps allowed: one transaction, one sync.

        Raises lmdb.Error, and PersistenceError if they are out of order.
        """
        added = list(batches)
        with self._env.begin(write=True) as txn:
            for position, value, runs in added:
                if not txn.put(LOG_KEY.pack(position), value, append=True, db=self._log):
                    raise PersistenceError(f"{self.path}: batch {position} is out of order")
                self._runs.add_runs(position, runs)
            self._flush_packed(txn, added[-1][0] if added else 0)
        if added:
            self.first_position = self.first_position or added[0][0]
            self.last_position = added[-1][0]

    def merge_packed(self, batches: "Mapping[int, list[LiveRecord]]") -> None:
        """Add entries to batches by position, in any order; those of a ledger increase. One transaction, one sync.

        Raises lmdb.Error.
        """
        # Only the housekeeper's thread comes here: the daemon does not load it before it serves.
        from pulsarbox.storage.packing.live_records import live_entries, put_together, runs_from

        with self._env.begin(write=True) as txn:
            for position, records in batches.items():
                known = txn.get(LOG_KEY.pack(position), db=self._log)
                before = [] if known is None else live_entries(known, _every)
                wall = max([ENTRY_HEADER.unpack_from(live.header)[EntryField.APPEND_TIME] for live in records])
                txn.put(LOG_KEY.pack(position), put_together([*before, *records], wall)[0], db=self._log)
                self._runs.add_runs(position, runs_from(records, BATCH_HEADER.size if known is None else len(known)))
            self._flush_packed(txn, max(batches))
        self.first_position = min(self.first_position or min(batches), *batches)
        self.last_position = max(self.last_position, *batches)

    def _flush_packed(self, txn: "lmdb.Transaction[bytes]", last: int) -> None:
        """Write the index rows of a volume that nobody reads yet, if there are enough."""
        if self._runs.entries >= self._flush_at.entries:
            for key, row in self._runs.rows():
                txn.put(key, row, db=self._index)
            self._runs = UnindexedRuns()
            self.indexed = max(self.indexed, last)
            txn.put(INDEXED, LOG_KEY.pack(self.indexed), db=self._mark)

    def flush_index(self) -> None:
        """Complete the index up to the end of the log. Raises lmdb.Error; nothing has changed then."""
        if self.indexed == self.last_position and not self._runs:
            return
        with self._env.begin(write=True) as txn:
            for flushed in (self._flush.runs if self._flush else UnindexedRuns(), self._runs):
                for key, row in flushed.rows():
                    txn.put(key, row, db=self._index)
            txn.put(INDEXED, LOG_KEY.pack(self.last_position), db=self._mark)
        self._flush = None
        self._runs = UnindexedRuns()
        self._unindexed_bytes = 0
        self.indexed = self.last_position

    def read_into(self, answer: Answer, ledger_id: int) -> bool:
        """Feed ``answer`` from this volume; False if it does not hold the next entry.

        Raises PersistenceError as Answer.collect does, and lmdb.Error.
        """
        # Search memory before the transaction begins: entries removed from memory by then are in the index that the
        # transaction sees, and their batches are committed. Search the newer table first: its entries move to the older
        # one, then to the index.
        segments = self._runs.find(ledger_id, answer.next_entry, _SEGMENTS_AT_ONCE)
        if not segments and (flush := self._flush) is not None:
            segments = flush.runs.find(ledger_id, answer.next_entry, _SEGMENTS_AT_ONCE)
        with self._env.begin(buffers=True) as txn:
            if not segments:
                segments = self._find(txn, ledger_id, answer.next_entry, answer.last)
            if not segments:
                return False

            # py-lmdb's Transaction.get releases the GIL for the lookup and touches each page of the value before it
            # reacquires it (preload in cpython.c), so page faults of a cold batch block no other thread. The copies
            # below are then made from memory. The price: one entry of a batch reads the whole batch.
            def value_at(position: int) -> memoryview:
                value = txn.get(LOG_KEY.pack(position), db=self._log)
                if value is None:
                    raise PersistenceError(f"batch {position} is missing")
                return value

            answer.collect(segments, value_at)
        return True

    def batches(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield positions and values from ``first`` on. Raises PersistenceError at a damaged or missing batch."""
        for position in range(first, self.last_position + 1):
            with self._env.begin() as txn:
                value = txn.get(LOG_KEY.pack(position), db=self._log)
            if value is None:
                raise EnvironmentDamaged(f"{self.path}: batch {position} is missing")
            try:
                check_batch(value)
            except PersistenceError as error:
                raise EnvironmentDamaged(f"{self.path}: batch {position}: {error}") from error
            yield position, value

    def position_of(self, ledger_id: int, entry: int) -> int:
        """Return the position of an entry according to the index of a sealed volume, or 0."""
        with self._env.begin(buffers=True) as txn:
            segments = self._find(txn, ledger_id, entry)
        return segments[0].position if segments else 0

    def positions(self, first: int = 0) -> Iterator[int]:
        """Yield the positions of the batches from ``first`` on, sorted; no transaction is held between them."""
        while True:
            with self._env.begin() as txn, txn.cursor(db=self._log) as cursor:
                keys = list(islice(_keys_from(cursor, LOG_KEY.pack(first)), _KEYS_AT_ONCE))
            for key in keys:
                yield LOG_KEY.unpack(key)[0]
            if len(keys) < _KEYS_AT_ONCE:
                return
            first = LOG_KEY.unpack(keys[-1])[0] + 1

    def value(self, position: int) -> bytes:
        """Return a batch, unverified. Raises PersistenceError if it is missing."""
        with self._env.begin() as txn:
            value = txn.get(LOG_KEY.pack(position), db=self._log)
        if value is None:
            raise PersistenceError(f"{self.path}: batch {position} is missing")
        return value

    def ledger_ids(self) -> list[int]:
        """Return the ledgers in the index, sorted."""
        found: list[int] = []
        with self._env.begin() as txn, txn.cursor(db=self._index) as cursor:
            more = cursor.first()
            while more:
                found.append(INDEX_KEY.unpack(cursor.key())[0])
                seek_at_or_before(cursor, INDEX_KEY.pack(found[-1], _ID_MAX))
                more = cursor.next()
        return found

    def stretches(self, number: int) -> list[VolumeRun]:
        """Return the volume's entries as one stretch per ledger, sorted; ``number`` is the volume's number.

        Not for packed volumes, whose ledgers may have gaps. Raises PersistenceError if the index is damaged, and
        lmdb.Error.
        """
        ends: dict[int, tuple[_Place, _Place]] = {}
        # The same order as in ``take``, for the same reason.
        for runs in (self._runs, self._flush.runs if self._flush is not None else None):
            for ledger_id, first, last in runs.ends() if runs is not None else ():
                _widen(ends, ledger_id, _Place(*first), _Place(*last))
        with self._env.begin() as txn, txn.cursor(db=self._index) as cursor:
            more = cursor.first()
            while more:
                ledger_id, entry = INDEX_KEY.unpack(cursor.key())
                low = self._row(entry, cursor.value(), entry)[0]
                seek_at_or_before(cursor, INDEX_KEY.pack(ledger_id, _ID_MAX))
                entry = INDEX_KEY.unpack(cursor.key())[1]
                high = self._row(entry, cursor.value(), entry)[-1]
                _widen(
                    ends,
                    ledger_id,
                    _Place(low.first_entry, low.position, low.offsets[0]),
                    _Place(high.first_entry + len(high.offsets) - 1, high.position, high.offsets[-1]),
                )
                more = cursor.next()
        sizes = self._record_bytes(ends)
        return [
            VolumeRun(ledger_id, low.entry, number, high.entry - low.entry + 1, sizes[ledger_id])
            for ledger_id, (low, high) in sorted(ends.items())
        ]

    def all_ledgers(self) -> set[int]:
        """Return the ledgers with entries, indexed or not. Raises lmdb.Error."""
        # The same order as in ``read_into``, for the same reason.
        found = set(self._runs.ids())
        if (flush := self._flush) is not None:
            found.update(flush.runs.ids())
        return found.union(self.ledger_ids())

    def extents(self, ledger_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Return the first entry and the end (exclusive) of the ledgers that it has; not for packed volumes.

        Raises PersistenceError if the index is damaged, and lmdb.Error.
        """
        found: dict[int, tuple[int, int]] = {}
        wanted = list(ledger_ids)
        flush = self._flush
        for runs in (self._runs, flush.runs if flush is not None else UnindexedRuns()):
            for ledger_id in wanted:
                extent = runs.extent(ledger_id)
                if extent is not None:
                    found[ledger_id] = _joint(found.get(ledger_id, extent), extent)
        with self._env.begin(buffers=True) as txn, txn.cursor(db=self._index) as cursor:
            for ledger_id in wanted:
                extent = self._indexed_extent(cursor, ledger_id)
                if extent is not None:
                    found[ledger_id] = _joint(found.get(ledger_id, extent), extent)
        return found

    def _indexed_extent(self, cursor: "lmdb.Cursor[memoryview]", ledger_id: int) -> tuple[int, int] | None:
        if not cursor.set_range(INDEX_KEY.pack(ledger_id, 0)):
            return None
        found, first = INDEX_KEY.unpack(cursor.key())
        if found != ledger_id:
            return None
        seek_at_or_before(cursor, INDEX_KEY.pack(ledger_id, _ID_MAX))
        entry = INDEX_KEY.unpack(cursor.key())[1]
        last = self._row(entry, cursor.value(), entry)[-1]
        return first, last.first_entry + len(last.offsets)

    def erase_from(self, position: int) -> bool:
        """Delete the batches from a position on, and their index; return whether the volume has to be opened again.

        Called by the thread that appends. Raises PersistenceError, lmdb.Error.
        """
        with self._env.begin() as txn, txn.cursor(db=self._log) as cursor:
            gone = [bytes(key) for key in _keys_from(cursor, LOG_KEY.pack(position))]
            found = cursor.set_range(LOG_KEY.pack(position)) and cursor.prev()
            last = LOG_KEY.unpack(cursor.key())[0] if found else 0
        if not gone:
            return False
        with self._env.begin(write=True) as txn:
            for key in gone:
                txn.delete(key, db=self._log)
            # An append writes index rows only of batches before it.
            if len(gone) > 1 or self.indexed >= position:
                self._erase_index_from(txn, position)
                txn.put(INDEXED, LOG_KEY.pack(min(self.indexed, last)), db=self._mark)
        self._runs = self._runs.before(position)
        self.indexed = min(self.indexed, last)
        self.first_position, self.last_position = (self.first_position, last) if last else (0, 0)
        return self._flush is not None and self._flush.up_to >= position

    def _erase_index_from(self, txn: "lmdb.Transaction[bytes]", position: int) -> None:
        with txn.cursor(db=self._index) as cursor:
            more = cursor.first()
            while more:
                key = bytes(cursor.key())
                ledger_id, first = INDEX_KEY.unpack(key)
                segments = self._row(first, cursor.value(), first)
                kept = [segment for segment in segments if segment.position < position]
                if len(kept) < len(segments):
                    txn.delete(key, db=self._index)
                    for each, row in pack_rows(ledger_id, kept):
                        txn.put(each, row, db=self._index)
                more = cursor.set_range(key + b"\0")

    def note_written(self, size: int) -> None:
        """Store how many bytes of records the volume was sealed with. Raises lmdb.Error."""
        with self._env.begin(write=True) as txn:
            txn.put(WRITTEN, LOG_KEY.pack(size), db=self._mark)

    def written(self) -> int:
        """Return how many bytes of records the volume was sealed with; 0 before it is sealed."""
        with self._env.begin() as txn:
            return int(LOG_KEY.unpack(txn.get(WRITTEN, LOG_KEY.pack(0), db=self._mark))[0])

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _find(
        self, txn: "lmdb.Transaction[memoryview]", ledger_id: int, entry: int, last: int = 1 << 64
    ) -> list[IndexSegment]:
        wanted = INDEX_KEY.pack(ledger_id, entry)
        with txn.cursor(db=self._index) as cursor:
            if not seek_at_or_before(cursor, wanted):
                return []
            found_ledger, first = INDEX_KEY.unpack(cursor.key())
            if found_ledger != ledger_id:
                return []
            return self._row(first, cursor.value(), entry, last)

    def _row(self, first: int, row: bytes | memoryview, entry: int, last: int = 1 << 64) -> list[IndexSegment]:
        try:
            return unpack_row(first, row, entry, last)
        except PersistenceError as error:
            raise EnvironmentDamaged(f"{self.path}: {error}") from error

    def _record_bytes(self, ends: Mapping[int, "tuple[_Place, _Place]"]) -> dict[int, int]:
        """Return the bytes of each ledger's records, computed from the totals in its first and last header.

        If those are implausible, returns the size of the headers, a lower bound.
        """
        wanted = sorted((place.position, place.offset, ledger_id) for ledger_id in ends for place in ends[ledger_id])
        seen: dict[int, list[tuple[int, int, int]]] = {}
        for position, places in groupby(wanted, key=_first_of):
            with self._env.begin(buffers=True) as txn:
                value = txn.get(LOG_KEY.pack(position), db=self._log)
                for _, offset, ledger_id in places:
                    if value is not None and offset + ENTRY_HEADER.size <= len(value):
                        kind, _, header, body, found, _, _, total = ENTRY_HEADER.unpack_from(value, offset)[:8]
                        if kind == RecordKind.ENTRY and found == ledger_id:
                            seen.setdefault(ledger_id, []).append((header, body, total))
        sizes: dict[int, int] = {}
        for ledger_id, (low, high) in ends.items():
            entries = high.entry - low.entry + 1
            sizes[ledger_id] = entries * ENTRY_HEADER.size
            if len(seen.get(ledger_id, ())) == 2:
                (header, body, total), (_, _, end) = seen[ledger_id]
                size = end - total + body + entries * header
                if sizes[ledger_id] <= size <= self.map_size:
                    sizes[ledger_id] = size
        return sizes

    def _due_flush(self) -> IndexFlush | None:
        """Return the flush in progress, or a new one once enough is unindexed."""
        due = self._runs.entries >= self._flush_at.entries or self._unindexed_bytes >= self._flush_at.bytes
        if not self._runs.entries and self._unindexed_bytes >= NOTHING_TO_INDEX_BYTES:
            due = True  # only the mark is written
        if self._flush is None and due:
            self._flush = IndexFlush(self._runs, self.last_position)
            self._runs = UnindexedRuns()
            self._unindexed_bytes = 0
        return self._flush

    def _extent(self) -> tuple[int, int, int]:
        with self._env.begin() as txn:
            indexed = txn.get(INDEXED, LOG_KEY.pack(0), db=self._mark)
            with txn.cursor(db=self._log) as cursor:
                if not cursor.first():
                    return 0, 0, 0
                first = cursor.key()
                cursor.last()
                return (*LOG_KEY.unpack(first), *LOG_KEY.unpack(cursor.key()), *LOG_KEY.unpack(indexed))

    def _drop_after(self, position: int) -> None:
        with self._env.begin() as txn, txn.cursor(db=self._log) as cursor:
            beyond = [bytes(key) for key in _keys_from(cursor, LOG_KEY.pack(position + 1))]
        if beyond:
            with self._env.begin(write=True) as txn:
                for key in beyond:
                    txn.delete(key, db=self._log)

    def _file_size(self) -> int:
        return int(self._env.info()["last_pgno"] + 1) * int(self._env.stat()["psize"])


class _Place(NamedTuple):
    """Location of an entry."""

    entry: int
    position: int
    offset: int


def _widen(ends: "dict[int, tuple[_Place, _Place]]", ledger_id: int, first: _Place, last: _Place) -> None:
    known = ends.get(ledger_id)
    ends[ledger_id] = (first, last) if known is None else (min(known[0], first), max(known[1], last))


def _every(ledger_id: int, entry_id: int) -> bool:
    return True


def _joint(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0], other[0]), max(one[1], other[1])


def _first_of(place: tuple[int, int, int]) -> int:
    return place[0]


def seek_at_or_before(cursor: "lmdb.Cursor[bytes] | lmdb.Cursor[memoryview]", key: bytes) -> bool:
    """Position a cursor on the greatest key up to ``key``; False if there is none."""
    if not cursor.set_range(key):
        return cursor.last()
    return cursor.key() == key or cursor.prev()


def _keys_from(cursor: "lmdb.Cursor[bytes]", first: bytes) -> Iterator[bytes]:
    if cursor.set_range(first):
        yield from cursor.iternext(keys=True, values=False)
