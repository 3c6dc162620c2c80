"""Read-only access to a data directory, whether or not a daemon holds it."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.compression.volume_usage import Usage
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import (
    COMPRESSED_KEY,
    COMPRESSED_ROW,
    CONTENT,
    DICTIONARY_HEAD,
    DICTIONARY_KEY,
    ENSEMBLE,
    INDEX_KEY,
    LOG_KEY,
    META,
    NEED,
    NEW_SUFFIX,
    PACKED,
    PARTS,
    RESERVE,
    RESTORING,
    STRETCH,
    is_log,
)
from pulsarbox.storage.lmdb.directory import (
    DATA_FILE,
    RESTORE_BACKUP,
    holder,
    read_identity,
    unfinished_restore,
    verify_environment,
)
from pulsarbox.storage.lmdb.meta_environment import VolumeContent

_FOLDERS = {"volumes": 0, "packed": PACKED}
_LOCK_FILE = "lock.mdb"
_TABLES_MAX = 16
_CHUNK_BYTES = 16 << 20
_CHUNK_ROWS = 256
_INDEXED = b"indexed"


class Vanished(PersistenceError):
    """An environment was packed or removed by the daemon since it was listed."""


class Box:
    """A data directory. ``live`` if a process holds it; ``pid`` is that process, 0 if unknown."""

    def __init__(self, path: Path) -> None:
        """Inspect the directory. Raises PersistenceError if it is no data directory, or its format cannot be read."""
        self.path = path
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise PersistenceError(f"{path} {what}: specify the data directory of a box (its dataDirectory setting)")
        if (path / RESTORING).exists():
            raise PersistenceError(unfinished_restore(path))
        try:
            self.identity = read_identity(path)
        except FileNotFoundError:
            what = f"holds data, but its INSTANCE file is missing: {RESTORE_BACKUP}"
            if not (path / META).exists():
                what = "is not a data directory: it has no INSTANCE file; specify the dataDirectory of a box"
            raise PersistenceError(f"{path} {what}") from None
        except OSError as error:
            raise PersistenceError(f"{path} cannot be read: {error.strerror}: run this as the box's user") from error
        self.live, self.pid = holder(path)
        self.is_member = (path / ENSEMBLE).exists()
        """Whether the box has more data directories, which have the batches and entries that are missing here."""

    def volumes(self) -> list[str]:
        """Return the existing volumes: packed ones, then those of the log, each oldest first."""
        names = [
            f"{folder}/{path.name}"
            for folder in ("packed", "volumes")
            for path in _listed(self.path / folder)
            if is_volume_name(path.name)
        ]
        return sorted(names)

    def disk_size(self, name: str) -> int:
        """Return the allocated bytes of a volume, 0 if it is gone."""
        total = 0
        for path in (self.path / name).glob("**/*"):
            with suppress(OSError):
                total += path.stat().st_blocks * 512
        return total

    def strangers(self) -> list[tuple[str, bool]]:
        """Return names that are not part of the format, and whether each is an unfinished file or directory."""
        paths = [path for path in _listed(self.path) if path.name not in PARTS and not is_log(path.name)]
        for folder in _FOLDERS:
            paths += [path for path in _listed(self.path / folder) if not is_volume_name(path.name)]
        return sorted((str(path.relative_to(self.path)), path.name.endswith(NEW_SUFFIX)) for path in paths)

    def is_gone(self, name: str) -> bool:
        """Return whether an environment is deleted, or being deleted by the daemon."""
        path = self.path / name
        return not path.exists() or (self.live and self.is_emptied(name))

    def is_emptied(self, name: str) -> bool:
        """Return whether the file of an environment is deleted, as after an interrupted removal."""
        return not (self.path / name / DATA_FILE).exists()

    def can_lock(self, name: str) -> bool:
        """Return whether a reader can register in an environment's LMDB lock file, visible to the daemon."""
        return os.access(self.path / name / _LOCK_FILE, os.R_OK | os.W_OK)

    def disk_used(self, name: str) -> int:
        """Return the disk usage of an environment in bytes; 0 if it is deleted."""
        return sum(_blocks(path) for path in _listed(self.path / name))

    def reserved(self) -> int:
        """Return the bytes of disk space reserved for non-message writes; 0 while they are in use."""
        return _blocks(self.path / RESERVE)

    def file_size(self, name: str) -> int:
        """Return the file size of an environment, holes included; 0 if it is deleted."""
        try:
            return (self.path / name / DATA_FILE).stat().st_size
        except OSError:
            return 0

    @contextmanager
    def open(self, name: str, growing: bool) -> Iterator["OpenEnvironment"]:
        """Open an environment; ``growing`` if a daemon may be writing it.

        Raises Vanished if it is deleted, PersistenceError if its file is damaged or cannot be read.
        """
        path = self.path / name
        if not path.exists():
            raise Vanished(f"{name} does not exist")
        try:
            verify_environment(path)
            env = open_readonly(path, lock=growing and self.live)
        except (lmdb.Error, OSError, PersistenceError) as error:
            if self.is_gone(name):
                raise Vanished(f"{name} no longer exists") from error
            raise PersistenceError(str(error)) from error
        try:
            yield OpenEnvironment(env)
        except lmdb.Error as error:
            raise PersistenceError(f"{path}: {error}") from error
        finally:
            env.close()


class OpenEnvironment:
    """An open environment. Each chunk of rows has a separate short transaction, so that no page is pinned."""

    def __init__(self, env: lmdb.Environment) -> None:
        self._env = env
        self._snapshot: lmdb.Transaction[bytes] | None = None
        with env.begin() as txn:
            names = [bytes(key) for key in txn.cursor().iternext(keys=True, values=False)]
        self._tables = {name: env.open_db(name, create=False) for name in names}

    @property
    def size(self) -> int:
        """Bytes up to the last page in use."""
        return int(self._env.info()["last_pgno"] + 1) * int(self._env.stat()["psize"])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything inside the block from one consistent snapshot."""
        with self._env.begin() as self._snapshot:
            yield
        self._snapshot = None

    def copy(self, descriptor: int) -> None:
        """Write a compact copy of the environment, or of the current snapshot, to a descriptor. Raises lmdb.Error."""
        self._env.copyfd(descriptor, compact=True, txn=self._snapshot)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def tables(self) -> set[bytes]:
        """Return the names of the tables."""
        return set(self._tables)

    def number(self, table: bytes, key: bytes) -> int:
        """Return a number in a table, 0 if it is missing."""
        with self._begin() as txn:
            value = txn.get(key, db=self._table(table))
        return 0 if value is None else int(LOG_KEY.unpack(value)[0])

    def extent(self) -> tuple[int, int]:
        """Return the first and the last position of the log, 0 if it is empty."""
        with self._begin() as txn, txn.cursor(db=self._table(b"log")) as cursor:
            if not cursor.first():
                return 0, 0
            first = cursor.key()
            cursor.last()
            return int(LOG_KEY.unpack(first)[0]), int(LOG_KEY.unpack(cursor.key())[0])

    def value(self, table: bytes, key: bytes) -> bytes | None:
        """Return a value in a table, or None."""
        with self._begin() as txn:
            return txn.get(key, db=self._table(table))

    @property
    def indexed(self) -> int:
        """The position up to which the index covers the log."""
        return self.number(b"mark", _INDEXED)

    def batch(self, position: int) -> bytes | None:
        """Return the value of one batch, or None if the log does not have it."""
        with self._begin() as txn:
            return txn.get(LOG_KEY.pack(position), db=self._table(b"log"))

    def chunks(self, table: bytes, first: bytes = b"") -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield the rows of a table from a key on, in chunks."""
        db = self._table(table)
        after: bytes | None = None
        while True:
            rows: list[tuple[bytes, bytes]] = []
            size = 0
            with self._begin() as txn, txn.cursor(db=db) as cursor:
                found = cursor.set_range(first if after is None else after) if first or after else cursor.first()
                if found and after is not None and cursor.key() == after:
                    found = cursor.next()
                while found and len(rows) < _CHUNK_ROWS and size < _CHUNK_BYTES:
                    rows.append(cursor.item())
                    size += len(rows[-1][1])
                    found = cursor.next()
            if not rows:
                return
            if after is not None and rows[0][0] <= after:
                raise PersistenceError(f"the keys of table {table.decode()} are not in order")
            yield rows
            after = rows[-1][0]

    def rows(self, table: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield all rows of a table."""
        for chunk in self.chunks(table):
            yield from chunk

    @contextmanager
    def _begin(self) -> Iterator["lmdb.Transaction[bytes]"]:
        try:
            if self._snapshot is not None:
                yield self._snapshot
            else:
                with self._env.begin() as txn:
                    yield txn
        except lmdb.Error as error:
            raise PersistenceError(str(error)) from error

    def _table(self, name: bytes) -> "lmdb._Database":
        if name not in self._tables:
            raise PersistenceError(f"its table {name.decode()} is missing")
        return self._tables[name]


class MetaTables(NamedTuple):
    """The tables of the meta environment except the rows, all as of one instant."""

    mark: int
    sealed: int
    stretches: list[VolumeRun]
    contents: dict[int, VolumeContent]
    dropped: set[int]
    compressed: dict[tuple[int, int, bytes, int], Usage]
    """By volume, ledger, tag and dictionary."""
    needs: dict[tuple[bytes, int], str]
    """Names of codecs, by tag and dictionary."""
    dictionaries: dict[int, int]
    """The size of each dictionary in bytes."""


def no_tables() -> MetaTables:
    """Return the tables of an environment that is not read yet."""
    return MetaTables(0, 0, [], {}, set(), {}, {}, {})


def read_tables(meta: OpenEnvironment) -> MetaTables:
    """Read the tables of the meta environment. Raises PersistenceError if they cannot be decoded."""
    mark, sealed = meta.number(b"mark", b"position"), meta.number(b"mark", b"sealed")
    stretches: list[VolumeRun] = []
    try:
        for key, value in meta.rows(b"volumes"):
            ledger_id, first = INDEX_KEY.unpack(key)
            stretches.append(VolumeRun(ledger_id, first, *STRETCH.unpack(value)))
        contents = {
            LOG_KEY.unpack(key)[0]: VolumeContent(*CONTENT.unpack(value)) for key, value in meta.rows(b"contents")
        }
        dropped = {LOG_KEY.unpack(key)[0] for key, _ in meta.rows(b"dropped")}
        compressed = {
            COMPRESSED_KEY.unpack(key): Usage(*COMPRESSED_ROW.unpack(value)) for key, value in meta.rows(b"compressed")
        }
        needs = {NEED.unpack(key)[:2]: name.decode() for key, name in meta.rows(b"needs")}
        dictionaries = {
            DICTIONARY_KEY.unpack(key)[0]: len(value) - DICTIONARY_HEAD.size
            for key, value in meta.rows(b"dictionaries")
        }
    except (ValueError, struct.error) as error:
        raise PersistenceError(f"a table of meta is damaged: {error}") from error
    return MetaTables(mark, sealed, stretches, contents, dropped, compressed, needs, dictionaries)


def is_volume_name(name: str) -> bool:
    """Return whether a directory of this name is a volume."""
    return name.isascii() and name.isdigit()


def number_of(name: str) -> int:
    """Return the number of a volume in the tables of meta."""
    folder, _, digits = name.partition("/")
    return int(digits) + _FOLDERS[folder]


def name_of(number: int) -> str:
    """Return the name of the volume with this number in the tables of meta."""
    return f"packed/{number - PACKED:08d}" if number >= PACKED else f"volumes/{number:08d}"


def open_readonly(path: Path, lock: bool) -> lmdb.Environment:
    """Open an environment that another process may be writing; ``lock`` registers a reader visible to the writer.

    Falls back to no lock if this user may not write the lock file. Raises lmdb.Error.
    """
    # A map of size 0 takes the writer's map size, so that the file may grow while it is read.
    if lock and (path / _LOCK_FILE).exists():
        try:
            return lmdb.open(str(path), readonly=True, create=False, map_size=0, max_dbs=_TABLES_MAX, lock=True)
        except (lmdb.ReadonlyError, lmdb.LockError):
            pass
        except lmdb.Error as error:
            if "ermission denied" not in str(error):
                raise
    return lmdb.open(str(path), readonly=True, create=False, map_size=0, max_dbs=_TABLES_MAX, lock=False)


def _listed(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PersistenceError(f"{path} cannot be read: {error.strerror}: run this as the box's user") from error


def _blocks(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0
