"""The durable store: a data directory with the meta environment and the volumes of the journal.

Where a ledger's entries are::

    the newest volume   asked directly: its unindexed runs in memory, then its index
    every other one     the ``volumes`` table of the meta environment says which, then its index

A volume is closed in this order, each step durable before the next: its index is brought up to its log; its ledgers
are written to ``volumes``; the next volume is made. So after a crash at any point every volume but the newest is
indexed and listed, a step that was done is done again to the same effect, and nothing has to be repaired.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.directory import DataDirectory
from pulsarbox.storage.engine import ReadRequest, Recovery
from pulsarbox.storage.format import INDEX_KEY, LOG_KEY, LONG_ROW, ROW_KEY_MAX
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.page_cache import PageCacheWindow
from pulsarbox.storage.reading import Answer
from pulsarbox.storage.record import Entry
from pulsarbox.storage.volume import (
    INDEX_ROOM,
    FlushAt,
    Volume,
    create_environment,
    failure,
    open_environment,
    seek_at_or_before,
)

_POSITION = b"position"
_META_MAP_SIZE = 64 << 30


class _Closable(Protocol):
    def close(self) -> None: ...


_T = TypeVar("_T", bound=_Closable)


class Pool(Generic[_T]):
    """Open environments by number: opened when first used, the longest unused one closed when there are too many."""

    def __init__(self, limit: int, opener: Callable[[int], _T]) -> None:
        self._limit = limit
        self._opener = opener
        self._open: OrderedDict[int, _T] = OrderedDict()
        self._users: dict[int, int] = {}
        self._changed = threading.Condition()
        self._closed = False

    @contextmanager
    def using(self, number: int) -> Iterator[_T]:
        """The environment, which stays open inside the block. Raises what opening it raises."""
        with self._changed:
            one = self._open.get(number)
            if one is None:
                if self._closed:
                    raise PersistenceError("the store is closed")
                self._make_room()
                one = self._open[number] = self._opener(number)
            self._open.move_to_end(number)
            self._users[number] = self._users.get(number, 0) + 1
        try:
            yield one
        finally:
            with self._changed:
                self._users[number] -= 1
                if not self._users[number]:
                    del self._users[number]
                    self._changed.notify_all()

    def drop(self, number: int) -> None:
        """Close one, as soon as nobody uses it; the next use opens it again."""
        with self._changed:
            self._changed.wait_for(lambda: number not in self._users)
            one = self._open.pop(number, None)
            if one is not None:
                one.close()

    def close(self) -> None:
        """Close all of them."""
        with self._changed:
            self._closed = True
            while self._open:
                self._open.popitem()[1].close()

    def _make_room(self) -> None:
        unused = [number for number in self._open if number not in self._users]
        for number in unused[: max(0, len(self._open) - self._limit + 1)]:
            self._open.pop(number).close()


class MetaEnvironment:
    """The checkpoint, and which volume holds which entries."""

    TABLES = (b"rows", b"mark", b"volumes")

    def __init__(self, path: Path) -> None:
        """Open it, and make it where there is none. Raises PersistenceError, lmdb.Error, OSError."""
        if not path.exists():
            create_environment(path, self.TABLES)
        self._env = open_environment(path, _META_MAP_SIZE)
        self._rows, self._mark, self._volumes = [self._env.open_db(name, create=False) for name in self.TABLES]

    def load(self) -> tuple[dict[bytes, bytes], int]:
        """The rows of the checkpoint and the position it covers."""
        with self._env.begin() as txn:
            rows = dict(_unpack_row(key, value) for key, value in txn.cursor(db=self._rows))
            (mark,) = LOG_KEY.unpack(txn.get(_POSITION, LOG_KEY.pack(0), db=self._mark))
        return rows, mark

    def checkpoint(self, rows: dict[bytes, bytes | None], position: int) -> None:
        """Take over rows with the position they cover. Raises lmdb.Error; then nothing has changed."""
        with self._env.begin(write=True) as txn:
            for key in sorted(rows):
                value = rows[key]
                if value is None:
                    txn.delete(_row_key(key), db=self._rows)
                else:
                    txn.put(_row_key(key), _row_value(key, value), db=self._rows)
            txn.put(_POSITION, LOG_KEY.pack(position), db=self._mark)

    def list_volume(self, number: int, ledgers: Iterator[tuple[int, int]]) -> None:
        """Note what a volume holds. Raises lmdb.Error; then nothing has changed."""
        value = LOG_KEY.pack(number)
        with self._env.begin(write=True) as txn:
            for ledger_id, first in ledgers:
                txn.put(INDEX_KEY.pack(ledger_id, first), value, db=self._volumes)

    def volume_of(self, ledger_id: int, entry: int) -> int | None:
        """The volume that holds an entry, if a listed one does."""
        wanted = INDEX_KEY.pack(ledger_id, entry)
        with self._env.begin() as txn, txn.cursor(db=self._volumes) as cursor:
            if not seek_at_or_before(cursor, wanted) or INDEX_KEY.unpack(cursor.key())[0] != ledger_id:
                return None
            return int(LOG_KEY.unpack(cursor.value())[0])

    def close(self) -> None:
        """Let go of the environment."""
        self._env.close()


def _row_key(key: bytes) -> bytes:
    if len(key) < ROW_KEY_MAX:
        return key
    digest = sha256(key).digest()
    return key[: ROW_KEY_MAX - len(digest)] + digest


def _row_value(key: bytes, value: bytes) -> bytes:
    return value if len(key) < ROW_KEY_MAX else LONG_ROW.pack(len(key)) + key + value


def _unpack_row(key: bytes, value: bytes) -> tuple[bytes, bytes]:
    if len(key) < ROW_KEY_MAX:
        return key, value
    end = LONG_ROW.size + LONG_ROW.unpack_from(value)[0]
    return value[LONG_ROW.size : end], value[end:]


class LmdbEngine:
    """An Engine on a data directory. Sizes are in bytes."""

    def __init__(
        self,
        path: str | Path,
        *,
        volume_size: int = 1 << 30,
        map_size: int | None = None,
        index_flush_entries: int = 20_000,
        index_flush_bytes: int = 64 << 20,
        open_volumes_max: int = 4,
        page_cache_bytes: int = 0,
    ) -> None:
        """A new volume is begun where the newest has grown beyond ``volume_size``; its map has ``map_size``.

        The index begins to be written when this many entries, or bytes of the log, are only known to memory; a
        restart after a crash reads up to twice as much of the log again. At most ``open_volumes_max`` volumes are
        mapped at once. ``page_cache_bytes`` of the journal stay in the system's page cache, 0 for all of it.
        """
        self._path = Path(path)
        self._volume_size = volume_size
        # An index of one-entry rows can outgrow its log, so three times the volume; 16 MiB is the largest batch.
        self._map_size = 3 * volume_size + (32 << 20) + 2 * INDEX_ROOM if map_size is None else map_size
        self._flush_at = FlushAt(index_flush_entries, index_flush_bytes)
        self._volumes = Pool(open_volumes_max, self._open_volume)
        self._metas = Pool(1, lambda _: MetaEnvironment(self._directory.meta))
        self._directory: DataDirectory  # from recover on
        self._page_cache = PageCacheWindow(page_cache_bytes)
        self._current = 0
        self._next_position = 0
        self._pending_rows: dict[bytes, bytes | None] = {}
        self._pending_mark = 0
        self.checkpoint_failure: PersistenceError | None = None
        """Why the last checkpoint is still waiting to be written, None where it is not."""

    @property
    def instance(self) -> str:
        """The data directory's own id; there is one after ``recover``."""
        return self._directory.instance

    def recover(self) -> Recovery:
        """Open the data directory, and make it where there is none.

        Raises DirectoryHeld where another process has it, PersistenceError where it is of an unknown format, damaged
        or incomplete.
        """
        self._directory = DataDirectory(self._path)
        try:
            return self._recover()
        except (lmdb.Error, OSError) as error:
            self.close()
            raise failure(f"{self._path} cannot be opened", error, self._path) from error
        except PersistenceError:
            self.close()
            raise

    def commit(self, batch: Batch) -> None:
        """Make a batch durable, then its checkpoint where it has one.

        Raises PersistenceError where the batch could not be stored: then nothing of it is there, and the same
        position may be committed again. A checkpoint that cannot be written is no error, as the log holds all that
        it says: it is written with one of the next batches. Raises ValueError where the position is not the next.
        """
        if batch.position != self._next_position:
            raise ValueError(f"batch {batch.position} is committed where {self._next_position} is next")
        value = batch.value()
        try:
            self._append(batch, value)
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.PanicError):
                self._volumes.drop(self._current)
            what = f"batch {batch.position} of {len(value)} bytes is not stored"
            raise failure(what, error, self._path, len(value)) from error
        self._next_position = batch.position + 1
        if batch.checkpoint is not None:
            self._pending_rows.update(batch.checkpoint)
            self._pending_mark = batch.position
        if self._pending_mark:
            self._checkpoint()

    def read(self, request: ReadRequest) -> list[Entry]:
        """The entries asked for. Raises PersistenceError where the first one cannot be given."""
        answer = Answer(request)
        try:
            while answer.open:
                if not self._take(answer, request.ledger_id):
                    answer.nothing_more()
        except (lmdb.Error, OSError) as error:
            reason = f"entry {request.ledger_id}:{answer.next_entry} cannot be read"
            if not answer.entries:
                raise failure(reason, error, self._path) from error
        except PersistenceError:
            if not answer.entries:
                raise
        return answer.entries

    def close(self) -> None:
        """Close the environments and let another process have the directory."""
        self._volumes.close()
        self._metas.close()
        if hasattr(self, "_directory"):  # not where another process holds it
            self._directory.close()

    def _recover(self) -> Recovery:
        numbers = self._directory.volume_numbers()
        if not numbers:
            create_environment(self._directory.volume(1), Volume.TABLES)
            numbers = [1]
        self._current = numbers[-1]
        with self._metas.using(0) as meta:
            rows, mark = meta.load()
        parts = self._parts_after(numbers, mark)
        last = max([mark, *(last for _, _, last in parts)])
        self._next_position = last + 1
        return Recovery(rows, self._batches(parts), self._next_position)

    def _parts_after(self, numbers: list[int], mark: int) -> list[tuple[int, int, int]]:
        """Volume, first and last position of each part of the log after ``mark``, oldest first."""
        parts: list[tuple[int, int, int]] = []
        newest = first = 0
        for number in reversed(numbers):
            with self._volumes.using(number) as volume:
                if not volume.last_position:
                    continue
                if first and volume.last_position != first - 1:
                    raise PersistenceError(
                        f"{volume.path}: its log ends at batch {volume.last_position}, the next begins at {first}"
                    )
                newest = newest or volume.last_position
                first = volume.first_position
                if volume.last_position > mark:
                    parts.append((number, max(first, mark + 1), volume.last_position))
                if first <= mark + 1:
                    break
        if newest < mark:
            raise PersistenceError(f"{self._path}: the log ends at batch {newest}, its checkpoint covers {mark}")
        if first > mark + 1:
            raise PersistenceError(f"{self._path}: the log begins at batch {first}, its checkpoint ends at {mark}")
        return parts[::-1]

    def _batches(self, parts: list[tuple[int, int, int]]) -> Iterator[bytes]:
        for number, first, last in parts:
            with self._volumes.using(number) as volume:
                for position, value in volume.batches(first):
                    if position > last:
                        break
                    yield value

    def _open_volume(self, number: int) -> Volume:
        reopened = number == self._current and self._next_position > 0
        keep_until = self._next_position - 1 if reopened else None
        return Volume(self._directory.volume(number), self._map_size, self._flush_at, keep_until)

    def _append(self, batch: Batch, value: bytes) -> None:
        with self._volumes.using(self._current) as volume:
            full = volume.size >= self._volume_size or not volume.has_room(len(value))
            if not full or not volume.last_position:
                volume.append(batch.position, value, batch.runs)
                self._page_cache.written(volume.file, volume.size)
                return
            volume.flush_index()
            with self._metas.using(0) as meta:
                meta.list_volume(self._current, volume.ledgers())
        following = self._current + 1
        if not self._directory.volume(following).exists():
            create_environment(self._directory.volume(following), Volume.TABLES)
        with self._volumes.using(following) as volume:
            self._current = following
            volume.append(batch.position, value, batch.runs)

    def _checkpoint(self) -> None:
        try:
            with self._metas.using(0) as meta:
                meta.checkpoint(self._pending_rows, self._pending_mark)
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.PanicError):
                self._metas.drop(0)
            self.checkpoint_failure = failure(f"the checkpoint at {self._pending_mark} has to wait", error, self._path)
            return
        self._pending_rows = {}
        self._pending_mark = 0
        self.checkpoint_failure = None

    def _take(self, answer: Answer, ledger_id: int) -> bool:
        with self._volumes.using(self._current) as volume:
            if volume.take(answer, ledger_id):
                return True
        with self._metas.using(0) as meta:
            number = meta.volume_of(ledger_id, answer.next_entry)
        if number is None:
            return False
        with self._volumes.using(number) as volume:
            return volume.take(answer, ledger_id)
