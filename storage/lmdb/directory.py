"""The data directory: made once, held by one process, checked before anything in it is mapped.

What only the process that holds it needs is imported where it is used: every command asks who holds a directory.
Only this file, private_files, narrowing, volume, volume_set, pool, meta, migration, reclaiming, lmdb_engine,
event_files and backup/ know of files, locks, threads.
"""

import contextlib
import fcntl
import json
import os
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.format import (
    FORMAT_COMPRESSED,
    FORMAT_VERSION,
    INSTANCE,
    LOCK,
    META,
    NEW_SUFFIX,
    OPERATOR,
    PACKED,
    PACKED_VOLUMES,
    RESTORING,
    RUNNING,
    VOLUMES,
)
from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory, opener

DATA_FILE = "data.mdb"

RESTORE_BACKUP = "restore a backup with `pulsarbox restore BACKUPS DIR`"
"""What to do where something is lost."""

_VERIFY_SECONDS_MAX = 600
_HOLD_SECONDS = 1.0
"""How long it is tried to take the directory: whoever looks into it from outside has its lock for an instant."""
_HOLD_PAUSE_SECONDS = 0.02
_FORMATS = (1, FORMAT_VERSION, FORMAT_COMPRESSED)
"""Those that are opened: version 1 is brought up to date."""

# Run in a child: touches every page that can be reached. A file that ends too early kills the child with SIGBUS.
_WALK = """
import sys, lmdb
env = lmdb.open(sys.argv[1], readonly=True, lock=False, create=False, max_dbs=16)
with env.begin() as txn:
    names = [bytes(key) for key in txn.cursor().iternext(keys=True, values=False)]
for name in names:
    table = env.open_db(name, create=False)
    with env.begin(db=table, buffers=True) as txn:
        for _, value in txn.cursor():
            sum(value[::4096])
"""

# LMDB's meta page, in the host's byte order: behind the page header of 16 (format 1) or 24 bytes (format 3).
_LMDB_MAGIC = 0xBEEFC0DE
_LMDB_HEADER_SIZES = {1: 16, 3: 24}
_META_PAGE = struct.Struct("=IIQQI92xQQ")
_META_READ = 256


class DirectoryHeld(PersistenceError):
    """Another process has the data directory open; ``pid`` is its process, 0 where that is not known."""

    def __init__(self, path: Path, pid: int) -> None:
        super().__init__(f"{path} is in use by process {pid or 'unknown'}")
        self.pid = pid


class EnvironmentDamaged(PersistenceError):
    """What should be an environment is none, or not all of it is there."""


class DataDirectory:
    """A data directory that this process holds until ``close`` or its end, however it ends."""

    def __init__(self, path: Path) -> None:
        """Take the directory at ``path``, and make it where there is none.

        Raises DirectoryHeld where another process has it and keeps it for a second, PersistenceError where it is of
        an unknown format or cannot be used.
        """
        self.path = path
        self.meta = path / META
        self.volumes = path / VOLUMES
        self.packed = path / PACKED_VOLUMES
        try:
            if path.is_dir():
                from pulsarbox.storage.lmdb.permission_narrowing import narrow

                narrow(path)
            else:
                make_directory(path)
            self._lock = hold(path)
        except OSError as error:
            raise _unusable(path, error) from error
        try:
            self._fields = self._instance()
            make_directory(self.volumes)
            make_directory(self.packed)
            for name in (RUNNING, OPERATOR):
                (path / name).unlink(missing_ok=True)  # of a process that was killed
            for place in (path, self.volumes, self.packed):
                for leftover in place.glob("*" + NEW_SUFFIX):
                    _remove(leftover) if leftover.is_dir() else leftover.unlink()
            sync_directory(path)
        except OSError as error:
            os.close(self._lock)
            raise _unusable(path, error) from error
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def instance(self) -> str:
        """The directory's own id."""
        return str(self._fields["instance"])

    @property
    def format(self) -> int:
        """The version of its format."""
        return int(self._fields["format"])

    def set_format(self, version: int = FORMAT_VERSION) -> None:
        """Note that everything is of this format now, or may be. Raises OSError."""
        self._write_instance({**self._fields, "format": version})

    def volume(self, number: int) -> Path:
        """Where a volume is, or will be; packed ones have numbers from PACKED on."""
        return self.packed / f"{number - PACKED:08d}" if number >= PACKED else self.volumes / f"{number:08d}"

    def name(self, number: int) -> str:
        """What a volume is called in messages."""
        return str(self.volume(number).relative_to(self.path))

    def volume_numbers(self) -> list[int]:
        """The volumes of the log, oldest first."""
        return sorted(int(path.name) for path in self.volumes.iterdir() if path.name.isdigit())

    def packed_numbers(self) -> list[int]:
        """The packed volumes, by their numbers in the tables of meta."""
        return sorted(int(path.name) + PACKED for path in self.packed.iterdir() if path.name.isdigit())

    def remove(self, number: int) -> None:
        """Remove a volume that nothing speaks of any more. Raises OSError."""
        path = self.volume(number)
        if path.exists():
            _remove(path)
            sync_directory(path.parent)

    def close(self) -> None:
        """Let another process have it; again is no harm."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _instance(self) -> dict[str, Any]:
        if (self.path / RESTORING).exists():
            raise PersistenceError(unfinished_restore(self.path))
        path = self.path / INSTANCE
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return self._create_instance()
        try:
            fields: dict[str, Any] = json.loads(text)
            version, _ = fields["format"], str(fields["instance"])
        except (ValueError, KeyError, TypeError) as error:
            raise PersistenceError(f"{path} is damaged: {error!r}; {RESTORE_BACKUP}") from error
        if type(version) is not int or version not in _FORMATS:
            raise PersistenceError(
                f"{self.path} has format {version}, this version of pulsarbox reads format"
                f" {', '.join(map(str, _FORMATS))}"
            )
        return fields

    def _create_instance(self) -> dict[str, Any]:
        if self.meta.exists() or any(place.exists() and any(place.iterdir()) for place in (self.volumes, self.packed)):
            raise PersistenceError(f"{self.path} holds data, but its INSTANCE file is missing: {RESTORE_BACKUP}")
        import uuid

        fields = {"format": FORMAT_VERSION, "instance": str(uuid.uuid4())}
        self._write_instance(fields)
        sync_directory(self.path.parent)
        return fields

    def _write_instance(self, fields: dict[str, Any]) -> None:
        path = self.path / INSTANCE
        new = path.with_name(path.name + NEW_SUFFIX)
        with open(new, "w", opener=opener) as file:
            fields.setdefault("created", os.fstat(file.fileno()).st_mtime_ns // 1_000_000)
            json.dump(fields, file)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        sync_directory(self.path)
        self._fields = fields


def unfinished_restore(path: Path) -> str:
    """The error of a directory into which a backup is being restored, or was until that was interrupted."""
    return (
        f"{path} is incomplete: a backup is being restored into it, or its restoring was interrupted; run the"
        " `pulsarbox restore` command again"
    )


def is_made(path: Path) -> bool:
    """Whether there is a data directory at ``path``, of whatever format. Raises PersistenceError where it is another
    user's."""
    try:
        return (path / INSTANCE).exists()
    except OSError as error:
        raise _unusable(path, error) from error


def holder(path: Path) -> tuple[bool, int]:
    """Whether a process holds the data directory at ``path``, and its pid: 0 where that is not known.

    For others than the daemon: the lock is tried for an instant, and given back. Nothing is written. Raises
    PersistenceError where the directory is another user's.
    """
    try:
        descriptor = os.open(path / LOCK, os.O_RDONLY)
    except PermissionError as error:
        raise PersistenceError(f"{path} cannot be read: {error.strerror}: run this as the box's user") from error
    except OSError:
        return False, 0
    try:
        # A shared lock. A daemon that starts in this very instant tries again.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).strip()
        return True, int(text) if text.isdigit() else 0
    except OSError:
        return False, 0
    else:
        return False, 0
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Hold a directory inside the block, so that no box starts there. Raises DirectoryHeld, OSError."""
    descriptor = hold(path)
    try:
        yield
    finally:
        os.close(descriptor)


def hold(path: Path) -> int:
    """Take the lock of a directory for this process; the descriptor that keeps it. Raises DirectoryHeld, OSError."""
    # The kernel lets go of the lock when the last descriptor of the open file is closed: at any end of the process.
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        _lock(lock)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
    except BlockingIOError:
        text = os.pread(lock, 32, 0).strip()
        os.close(lock)
        raise DirectoryHeld(path, int(text) if text.isdigit() else 0) from None
    except OSError:
        os.close(lock)
        raise
    return lock


def _lock(descriptor: int) -> None:
    """Take the lock of an open file for this process alone. Raises BlockingIOError where another one keeps it."""
    end = time.monotonic() + _HOLD_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
        time.sleep(_HOLD_PAUSE_SECONDS)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file that is there as a whole or not at all, readable by its owner only. Raises OSError."""
    new = path.with_name(path.name + NEW_SUFFIX)
    with open(new, "wb", opener=opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    sync_directory(path.parent)


def verify_environment(path: Path) -> None:
    """Make sure that mapping the LMDB environment at ``path`` cannot end in SIGBUS. Raises PersistenceError.

    LMDB trusts its file: a page behind the end of a truncated one is a bus error, not an error code. The current
    meta page says which page is the last; a file that reaches to its end cannot be too short, and that is known
    from two reads of 256 bytes. A shorter file is not always damaged (LMDB need not write pages that a transaction
    took and gave back): then, and where the meta pages are of a version unknown here, a child process reads
    everything that can be reached, and how it ends is the verdict.
    """
    file = path / DATA_FILE
    try:
        size = file.stat().st_size
        needed = _size_needed(file)
    except FileNotFoundError as error:
        raise EnvironmentDamaged(f"{file} is missing") from error
    except OSError as error:
        raise PersistenceError(f"{file} cannot be read: {error}") from error
    if needed is not None and size >= needed:
        return
    import subprocess

    command = [sys.executable, "-c", _WALK, str(path)]
    try:
        child = subprocess.run(command, capture_output=True, timeout=_VERIFY_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired as error:
        raise PersistenceError(f"{file} could not be verified in {_VERIFY_SECONDS_MAX} s") from error
    if child.returncode:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"reading it ended with signal {-child.returncode}"
        wanted = "" if needed is None else f" where {needed} are expected"
        raise EnvironmentDamaged(f"{file} is damaged or truncated: {size} bytes{wanted}; {reason}")


def _unusable(path: Path, error: OSError) -> PersistenceError:
    where = f": {error.filename}" if error.filename and Path(error.filename) != path else ""
    why = "it is no directory" if isinstance(error, FileExistsError) else error.strerror or str(error)
    return PersistenceError(f"the data directory {path} cannot be used: {why}{where}; choose another with --data-dir")


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)


def _size_needed(file: Path) -> int | None:
    """The bytes that the newest of the two meta pages of an LMDB file speaks for; None where that is not known.

    Raises PersistenceError where the file does not even hold its meta pages.
    """
    newest: tuple[int, int] | None = None
    page_size = at = 0
    with file.open("rb") as data:
        for _ in range(2):
            data.seek(at)
            page = data.read(_META_READ)
            meta = _meta_page(page)
            if meta is None:
                raise EnvironmentDamaged(f"{file} is damaged or truncated: its meta pages are not there")
            version, page_size, last_page, txn = meta
            if version not in _LMDB_HEADER_SIZES or not 256 <= page_size <= 65536:
                return None
            if newest is None or txn > newest[0]:
                newest = txn, (last_page + 1) * page_size
            at = page_size
    assert newest is not None
    return max(newest[1], 2 * page_size)


def _meta_page(page: bytes) -> tuple[int, int, int, int] | None:
    """LMDB format, page size, last page and transaction of a meta page."""
    for header_size in _LMDB_HEADER_SIZES.values():
        with contextlib.suppress(struct.error):
            magic, version, _, _, page_size, last_page, txn = _META_PAGE.unpack_from(page, header_size)
            if magic == _LMDB_MAGIC:
                return version, page_size, last_page, txn
    return None
