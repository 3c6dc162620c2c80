"""One volume of the journal: an LMDB environment with the log, its index, and the mark up to which that goes."""

import errno
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.entry_index import IndexFlush, Segment, Stretch, UnindexedRuns, runs_of, unpack_row
from pulsarbox.storage.entry_read import Answer
from pulsarbox.storage.format import ENTRY_HEADER, INDEX_KEY, LOG_KEY, NEW_SUFFIX, RecordKind
from pulsarbox.storage.journal import Run
from pulsarbox.storage.lmdb.directory import DATA_FILE, EnvironmentDamaged, sync_directory, verify_environment
from pulsarbox.storage.lmdb.private_files import PRIVATE_DIRECTORY
from pulsarbox.storage.record import check_batch

INDEXED = b"indexed"
WRITTEN = b"written"
INDEX_ROOM = 256 << 20
"""Bytes of the map kept for the pages that the next flush of the index copies."""

_TABLES_MAX = 16
_READERS_MAX = 1024
"""Others may read beside the box: a slot for each environment that each of their threads reads."""
_SEGMENTS_AT_ONCE = 256
_PAGE = 4096
_FREE_MIN = 1 << 20
_ID_MAX = 2**64 - 1
_KEYS_AT_ONCE = 1000

_TRANSIENT = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EAGAIN, errno.EINTR, errno.EACCES, errno.EPERM}
)
_DAMAGE = (
    EnvironmentDamaged,
    FileNotFoundError,
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.NotFoundError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
)


def create_environment(path: Path, tables: tuple[bytes, ...]) -> None:
    """Make an empty environment at ``path``: there completely or not at all, and durable.

    Raises lmdb.Error and OSError.
    """
    publish_environment(make_environment(path, tables), path)


def make_environment(path: Path, tables: tuple[bytes, ...]) -> Path:
    """Make an empty environment that is to stand at ``path``; where it is until it is published.

    Raises lmdb.Error and OSError.
    """
    new = path.with_name(path.name + NEW_SUFFIX)
    if new.exists():
        import shutil

        shutil.rmtree(new, ignore_errors=True)
    env = lmdb.open(str(new), map_size=1 << 20, max_dbs=_TABLES_MAX, mode=PRIVATE_DIRECTORY)
    try:
        with env.begin(write=True) as txn:  # one sync for all of them
            for name in tables:
                env.open_db(name, txn=txn)
    finally:
        env.close()
    return new


def publish_environment(new: Path, path: Path) -> None:
    """Give a closed environment its name, durably. Raises OSError."""
    sync_directory(new)
    new.rename(path)
    sync_directory(path.parent)


def open_environment(path: Path, map_size: int, *, sealed: bool = False, beside: bool = False) -> lmdb.Environment:
    """Open an environment after a look at its file. Raises PersistenceError, lmdb.Error.

    One that is ``sealed`` is never written again: it is opened without its locks. ``beside``: it is only read, while
    another process may be writing it.
    """
    verify_environment(path)
    if beside:
        # LMDB makes its lock file where it is missing.
        return lmdb.open(
            str(path), map_size=map_size, max_dbs=_TABLES_MAX, create=False, readonly=True, mode=PRIVATE_DIRECTORY
        )
    if sealed:
        return lmdb.open(str(path), map_size=map_size, max_dbs=_TABLES_MAX, create=False, readonly=True, lock=False)
    # Sync is LMDB's default: data, then the meta page. Read-ahead stays on: values of the log are many pages long,
    # and the backlog is read from front to back.
    env = lmdb.open(
        str(path),
        map_size=map_size,
        max_dbs=_TABLES_MAX,
        max_readers=_READERS_MAX,
        create=False,
        mode=PRIVATE_DIRECTORY,
    )
    env.reader_check()
    return env


def failure(what: str, error: Exception, path: Path, size: int = 0) -> PersistenceError:
    """What LMDB or the system said of writing ``size`` bytes to ``path``, as an error that a client can be told."""
    if isinstance(error, lmdb.MapFullError):
        return PersistenceError(f"{what}: the volume's map is full")
    code = getattr(error, "code", None) or getattr(error, "errno", None)
    full = isinstance(error, lmdb.DiskError) or code in (errno.ENOSPC, errno.EDQUOT)
    if code == errno.EIO:  # what LMDB makes of a write that went half way, as the last one before a full disk does
        import shutil

        full = shutil.disk_usage(path).free < size + _FREE_MIN
    return StoreFull(f"{what}: the disk is full") if full else PersistenceError(f"{what}: {error}")


def is_damage(error: BaseException) -> bool:
    """Whether an error of opening or reading an environment says that it is damaged, and not that it has to wait."""
    code = getattr(error, "code", None) or getattr(error, "errno", None)
    return isinstance(error, _DAMAGE) and code not in _TRANSIENT


def disk_bytes(path: Path) -> int:
    """What the file of the environment at ``path`` takes on the disk; 0 where there is none."""
    try:
        return (path / DATA_FILE).stat().st_blocks * 512
    except FileNotFoundError:
        return 0


NOTHING_TO_INDEX_BYTES = 1 << 20
"""Log without entries after which the index is said to cover it: opening the volume reads what it does not cover."""


class FlushAt(NamedTuple):
    """The rows of the index are due when this much of the log is only known to memory."""

    entries: int
    bytes: int


class Volume:
    """An open volume. One thread appends, another may read beside it.

    ``last_position`` is that of its newest batch, 0 where it has none; ``size`` is about what its file takes.
    """

    TABLES = (b"log", b"index", b"mark")

    def __init__(
        self, path: Path, map_size: int, flush: FlushAt, keep_until: int | None = None, *, sealed: bool = False
    ) -> None:
        """Open the volume at ``path`` and read the entries that its index does not cover yet.

        Batches after ``keep_until`` are dropped: a commit that failed at its very last step may have left one.
        A ``sealed`` one is only read.
        Raises PersistenceError where the file or a batch is damaged, lmdb.Error.
        """
        self.path = path
        self.file = path / DATA_FILE
        self.map_size = map_size
        self._flush_at = flush
        self._env = open_environment(path, map_size, sealed=sealed)
        try:
            self._log = self._env.open_db(b"log", create=False)
            self._index = self._env.open_db(b"index", create=False)
            self._mark = self._env.open_db(b"mark", create=False)
            if keep_until is not None:
                self._drop_after(keep_until)
            self.first_position, self.last_position, self.indexed = self._extent()
            self.size = self._file_size()
            # New runs gather in one table while the rows of the one before are written.
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
        """The environment itself, for who looks at its numbers."""
        return self._env

    def has_room(self, size: int) -> bool:
        """Whether a batch of ``size`` bytes fits into the map, beside what its index may need."""
        return self.size + size + min(INDEX_ROOM, self.map_size // 4) <= self.map_size

    def append(self, position: int, value: bytes, runs: Mapping[int, Run]) -> None:
        """Add a batch, and some rows of the index where they are due: one transaction, one sync.

        Raises lmdb.Error, and PersistenceError where the log has grown beyond it; then nothing has changed.
        """
        flush = self._due_flush()
        rows: list[tuple[bytes, bytes]] = []
        last = False
        if flush is not None:
            # Twice the share of the way to the next flush that this batch goes: this one is through before.
            entries = sum([len(run.offsets) for run in runs.values()])
            rows, last = flush.next_rows(2 * max(entries / self._flush_at.entries, len(value) / self._flush_at.bytes))
        try:
            with self._env.begin(write=True) as txn:
                for key, row in rows:
                    txn.put(key, row, db=self._index)
                if flush is not None and last:
                    txn.put(INDEXED, LOG_KEY.pack(flush.up_to), db=self._mark)
                if not txn.put(LOG_KEY.pack(position), value, append=True, db=self._log):
                    raise PersistenceError(f"{self.path}: the log holds batch {position} already")
        except BaseException:
            if flush is not None:
                flush.give_back(rows)
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

    def append_packed(self, batches: Iterable[tuple[int, bytes, Mapping[int, Run]]]) -> None:
        """Add batches in the order of their positions, which may leave some out: one transaction, one sync.

        Raises lmdb.Error, and PersistenceError where the order is another.
        """
        added = list(batches)
        with self._env.begin(write=True) as txn:
            for position, value, runs in added:
                if not txn.put(LOG_KEY.pack(position), value, append=True, db=self._log):
                    raise PersistenceError(f"{self.path}: batch {position} comes too late")
                self._runs.add(position, runs)
            if self._runs.entries >= self._flush_at.entries:
                for key, row in self._runs.rows():
                    txn.put(key, row, db=self._index)
                txn.put(INDEXED, LOG_KEY.pack(added[-1][0]), db=self._mark)
                self._runs = UnindexedRuns()
                self.indexed = added[-1][0]
        if added:
            self.first_position = self.first_position or added[0][0]
            self.last_position = added[-1][0]

    def flush_index(self) -> None:
        """Bring the index up to the log. Raises lmdb.Error; then nothing has changed."""
        if self.indexed == self.last_position:
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

    def take(self, answer: Answer, ledger_id: int) -> bool:
        """Feed ``answer`` from this volume; False where its next entry is not here.

        Raises PersistenceError as Answer.take does, lmdb.Error.
        """
        # Memory is asked before the transaction begins: what it has forgotten by then, the transaction sees in the
        # index, and the batches it names are committed.
        # The newer table is asked first: one that is not there any more has become the older one, or the index.
        segments = self._runs.find(ledger_id, answer.next_entry, _SEGMENTS_AT_ONCE)
        if not segments and (flush := self._flush) is not None:
            segments = flush.runs.find(ledger_id, answer.next_entry, _SEGMENTS_AT_ONCE)
        with self._env.begin(buffers=True) as txn:
            if not segments:
                segments = self._find(txn, ledger_id, answer.next_entry, answer.last)
            if not segments:
                return False

            # py-lmdb's Transaction.get gives up the GIL for the look-up and, still without it, touches each page of
            # the value before it returns (preload in cpython.c): the page faults of a cold batch stop nobody. The
            # copies below are then made from memory. The price: one entry of a batch reads the whole batch.
            def value_at(position: int) -> memoryview:
                value = txn.get(LOG_KEY.pack(position), db=self._log)
                if value is None:
                    raise PersistenceError(f"batch {position} is missing")
                return value

            answer.take(segments, value_at)
        return True

    def batches(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Positions and values from ``first`` on. Raises PersistenceError at a damaged or missing one."""
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
        """Where the index of a sealed volume says that an entry is, 0 where it does not."""
        with self._env.begin(buffers=True) as txn:
            segments = self._find(txn, ledger_id, entry)
        return segments[0].position if segments else 0

    def positions(self, first: int = 0) -> Iterator[int]:
        """The positions of the batches from ``first`` on, sorted; no transaction is held between them."""
        while True:
            with self._env.begin() as txn, txn.cursor(db=self._log) as cursor:
                keys = list(islice(_keys_from(cursor, LOG_KEY.pack(first)), _KEYS_AT_ONCE))
            for key in keys:
                yield LOG_KEY.unpack(key)[0]
            if len(keys) < _KEYS_AT_ONCE:
                return
            first = LOG_KEY.unpack(keys[-1])[0] + 1

    def value(self, position: int) -> bytes:
        """A batch, not checked. Raises PersistenceError where it is missing."""
        with self._env.begin() as txn:
            value = txn.get(LOG_KEY.pack(position), db=self._log)
        if value is None:
            raise PersistenceError(f"{self.path}: batch {position} is missing")
        return value

    def ledger_ids(self) -> list[int]:
        """The ledgers in the index, sorted."""
        found: list[int] = []
        with self._env.begin() as txn, txn.cursor(db=self._index) as cursor:
            more = cursor.first()
            while more:
                found.append(INDEX_KEY.unpack(cursor.key())[0])
                seek_at_or_before(cursor, INDEX_KEY.pack(found[-1], _ID_MAX))
                more = cursor.next()
        return found

    def stretches(self, number: int) -> list[Stretch]:
        """What this volume, whose number is given, holds of each ledger, sorted: entries that follow each other.

        So not for a packed one, which may lack some between others. Raises PersistenceError where the index is
        damaged, lmdb.Error.
        """
        ends: dict[int, tuple[_Place, _Place]] = {}
        # The order of ``take``, for the same reason.
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
            Stretch(ledger_id, low.entry, number, high.entry - low.entry + 1, sizes[ledger_id])
            for ledger_id, (low, high) in sorted(ends.items())
        ]

    def note_written(self, size: int) -> None:
        """Note how many bytes of records this volume was sealed with. Raises lmdb.Error."""
        with self._env.begin(write=True) as txn:
            txn.put(WRITTEN, LOG_KEY.pack(size), db=self._mark)

    def written(self) -> int | None:
        """How many bytes of records it was sealed with, where that was noted."""
        with self._env.begin() as txn:
            value = txn.get(WRITTEN, db=self._mark)
        return None if value is None else int(LOG_KEY.unpack(value)[0])

    def close(self) -> None:
        """Let go of the environment."""
        self._env.close()

    def _find(
        self, txn: "lmdb.Transaction[memoryview]", ledger_id: int, entry: int, last: int = 1 << 64
    ) -> list[Segment]:
        wanted = INDEX_KEY.pack(ledger_id, entry)
        with txn.cursor(db=self._index) as cursor:
            if not seek_at_or_before(cursor, wanted):
                return []
            found_ledger, first = INDEX_KEY.unpack(cursor.key())
            if found_ledger != ledger_id:
                return []
            return self._row(first, cursor.value(), entry, last)

    def _row(self, first: int, row: bytes | memoryview, entry: int, last: int = 1 << 64) -> list[Segment]:
        try:
            return unpack_row(first, row, entry, last)
        except PersistenceError as error:
            raise EnvironmentDamaged(f"{self.path}: {error}") from error

    def _record_bytes(self, ends: Mapping[int, "tuple[_Place, _Place]"]) -> dict[int, int]:
        """The bytes of each ledger's records, told from the totals in the first header and the last.

        Where those cannot be believed, it is what their headers take at least.
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
        """The flush under way, or a new one where enough has gathered."""
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
    """Where an entry is."""

    entry: int
    position: int
    offset: int


def _widen(ends: "dict[int, tuple[_Place, _Place]]", ledger_id: int, first: _Place, last: _Place) -> None:
    known = ends.get(ledger_id)
    ends[ledger_id] = (first, last) if known is None else (min(known[0], first), max(known[1], last))


def _first_of(place: tuple[int, int, int]) -> int:
    return place[0]


def seek_at_or_before(cursor: "lmdb.Cursor[bytes] | lmdb.Cursor[memoryview]", key: bytes) -> bool:
    """Put a cursor on the greatest key that is not beyond ``key``; False where there is none."""
    if not cursor.set_range(key):
        return cursor.last()
    return cursor.key() == key or cursor.prev()


def _keys_from(cursor: "lmdb.Cursor[bytes]", first: bytes) -> Iterator[bytes]:
    if cursor.set_range(first):
        yield from cursor.iternext(keys=True, values=False)
