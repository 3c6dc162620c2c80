"""The data directory: created once, locked by one process, verified before any of it is mapped.

Modules that only the owning process needs are imported where they are used, because every command checks for an owner.
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
from typing import NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.format import (
    FORMAT,
    INSTANCE,
    LOCK,
    META,
    NEW_SUFFIX,
    OPERATOR,
    PACKED,
    PACKED_VOLUMES,
    READABLE_FORMATS,
    RESTORING,
    RUNNING,
    VOLUMES,
)
from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory, opener

DATA_FILE = "data.mdb"

RESTORE_BACKUP = "restore a backup with `pulsarbox restore BACKUPS DIR`"
"""Advice in errors about lost data."""

_VERIFY_SECONDS_MAX = 600
_HOLD_SECONDS = 1.0
"""How long to retry the lock: a process that inspects the directory holds it for an instant."""
_HOLD_PAUSE_SECONDS = 0.02

# Run in a child process: reads every reachable page. A truncated file kills the child with SIGBUS.
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

# LMDB's meta page, in host byte order, after the page header of 16 (format 1) or 24 bytes (format 3).
_LMDB_MAGIC = 0xBEEFC0DE
_LMDB_HEADER_SIZES = {1: 16, 3: 24}
_META_PAGE = struct.Struct("=IIQQI92xQQ")
_META_READ = 256


class BoxIdentity(NamedTuple):
    """The contents of an INSTANCE file."""

    instance: str
    format: int
    created: int
    """Milliseconds since 1970."""
    lineage: tuple[str, ...] = ()
    """The ids of the boxes that it was restored from, oldest first."""


class DirectoryHeld(PersistenceError):
    """Another process has the data directory open: process ``pid``, 0 if unknown."""

    def __init__(self, path: Path, pid: int) -> None:
        super().__init__(f"{path} is in use by process {pid or 'unknown'}")
        self.path = path
        self.pid = pid


class EnvironmentDamaged(PersistenceError):
    """The file is not an LMDB environment, or is truncated."""


class DataDirectory:
    """A data directory, locked by this process until ``close`` or until the process ends in any way."""

    def __init__(self, path: Path) -> None:
        """Lock the directory at ``path``; create it if it is missing.

        Raises DirectoryHeld if another process holds the lock for a second, PersistenceError if its format cannot be
        read or the directory cannot be used.
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
            self.instance = self._find_or_create_instance()
            """The id of the directory."""
            make_directory(self.volumes)
            make_directory(self.packed)
            for name in (RUNNING, OPERATOR):
                (path / name).unlink(missing_ok=True)  # left by a killed process
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

    def adopt_instance(self, instance: str) -> None:
        """Give the directory, which is empty, the id of the box that it joins. Raises OSError."""
        if instance != self.instance:
            write_instance(self.path, instance)
            self.instance = instance

    def volume(self, number: int) -> Path:
        """Return the path of a volume, existing or not; packed ones have numbers from PACKED on."""
        return self.packed / f"{number - PACKED:08d}" if number >= PACKED else self.volumes / f"{number:08d}"

    def name(self, number: int) -> str:
        """Return the name of a volume in messages."""
        return str(self.volume(number).relative_to(self.path))

    def volume_numbers(self) -> list[int]:
        """Return the numbers of the log volumes, oldest first."""
        return sorted(int(path.name) for path in self.volumes.iterdir() if path.name.isdigit())

    def packed_numbers(self) -> list[int]:
        """Return the numbers of the packed volumes, as in the tables of meta."""
        return sorted(int(path.name) + PACKED for path in self.packed.iterdir() if path.name.isdigit())

    def remove(self, number: int) -> None:
        """Remove an unreferenced volume. Raises OSError."""
        path = self.volume(number)
        if path.exists():
            _remove(path)
            sync_directory(path.parent)

    def close(self) -> None:
        """Release the lock; idempotent."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _find_or_create_instance(self) -> str:
        if (self.path / RESTORING).exists():
            raise PersistenceError(unfinished_restore(self.path))
        try:
            return read_identity(self.path).instance
        except FileNotFoundError:
            return self._create_instance()

    def _create_instance(self) -> str:
        if self.meta.exists() or any(place.exists() and any(place.iterdir()) for place in (self.volumes, self.packed)):
            raise PersistenceError(f"{self.path} holds data, but its INSTANCE file is missing: {RESTORE_BACKUP}")
        import uuid

        instance = str(uuid.uuid4())
        write_instance(self.path, instance)
        sync_directory(self.path.parent)
        return instance


def write_instance(path: Path, instance: str) -> None:
    """Write the INSTANCE file of a new data directory, durably. Raises OSError."""
    fields = {"format": FORMAT, "instance": instance, "created": time.time_ns() // 1_000_000}
    write_durably(path / INSTANCE, json.dumps(fields).encode())


def read_identity(path: Path) -> BoxIdentity:
    """Read the INSTANCE file of the data directory at ``path``.

    Raises FileNotFoundError if it has none, OSError, and PersistenceError if the file is damaged or its format cannot
    be read.
    """
    try:
        fields = json.loads((path / INSTANCE).read_bytes())
        number = fields["format"]
        if type(number) is int and number in READABLE_FORMATS:
            lineage = tuple(str(each) for each in fields.get("lineage", ()))
            return BoxIdentity(str(fields["instance"]), number, int(fields["created"]), lineage)
    except (ValueError, KeyError, TypeError) as error:
        raise PersistenceError(f"{path / INSTANCE} is damaged: {error!r}; {RESTORE_BACKUP}") from error
    raise PersistenceError(
        f"{path} has format {number!r}, but this version of pulsarbox reads format {FORMAT}: open it with the version"
        " that wrote it, or specify another data directory"
    )


def unfinished_restore(path: Path) -> str:
    """Return the error message for a directory whose restore from a backup is running or was interrupted."""
    return (
        f"{path} is incomplete: a backup is being restored into it, or a restore was interrupted; run the"
        " `pulsarbox restore` command again"
    )


def is_made(path: Path, name: str = INSTANCE) -> bool:
    """Return whether ``path`` has a data directory of any format, or another file of one.

    Raises PersistenceError if it is another user's.
    """
    try:
        return (path / name).exists()
    except OSError as error:
        raise _unusable(path, error) from error


def holder(path: Path) -> tuple[bool, int]:
    """Return whether a process holds the data directory at ``path``, and its pid (0 if unknown).

    For processes other than the daemon: tries the lock for an instant, and writes nothing. Raises PersistenceError if
    the directory is another user's.
    """
    try:
        descriptor = os.open(path / LOCK, os.O_RDONLY)
    except PermissionError as error:
        raise PersistenceError(f"{path} cannot be read: {error.strerror}: run this as the box's user") from error
    except OSError:
        return False, 0
    try:
        # A shared lock. A daemon that starts at this instant retries.
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
    """Lock a directory inside the block, so that no daemon starts there. Raises DirectoryHeld, OSError."""
    descriptor = hold(path)
    try:
        yield
    finally:
        os.close(descriptor)


def hold(path: Path) -> int:
    """Lock a directory for this process; return the locked descriptor. Raises DirectoryHeld, OSError."""
    # The kernel releases the lock with the last descriptor of the open file, however the process ends.
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
    """Lock an open file exclusively. Raises BlockingIOError if another process keeps the lock."""
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
    """Make the entries of a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file atomically and durably, readable by its owner only. Raises OSError."""
    new = path.with_name(path.name + NEW_SUFFIX)
    with open(new, "wb", opener=opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    sync_directory(path.parent)


def verify_environment(path: Path) -> None:
    """Verify that mapping the LMDB environment at ``path`` cannot end in SIGBUS. Raises PersistenceError.

    LMDB trusts its file: a page beyond the end of a truncated file is a bus error, not an error code. The current meta
    page names the last page; a file that includes it cannot be too short, and two reads of 256 bytes verify that. A
    shorter file is not always damaged, since LMDB need not write pages that a transaction allocated and freed. For such
    files, and for unknown versions of the meta pages, a child process reads everything reachable; its exit status is
    the verdict.
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
        wanted = "" if needed is None else f", expected {needed}"
        raise EnvironmentDamaged(f"{file} is damaged or truncated: {size} bytes{wanted}; {reason}")


def _unusable(path: Path, error: OSError) -> PersistenceError:
    where = f": {error.filename}" if error.filename and Path(error.filename) != path else ""
    why = "it is not a directory" if isinstance(error, FileExistsError) else error.strerror or str(error)
    return PersistenceError(f"the data directory {path} cannot be used: {why}{where}; choose another with --data-dir")


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)


def _size_needed(file: Path) -> int | None:
    """Return the file size required by the newer meta page of an LMDB file; None if unknown.

    Raises PersistenceError if the file does not contain both meta pages.
    """
    newest: tuple[int, int] | None = None
    page_size = at = 0
    with file.open("rb") as data:
        for _ in range(2):
            data.seek(at)
            page = data.read(_META_READ)
            meta = _meta_page(page)
            if meta is None:
                raise EnvironmentDamaged(f"{file} is damaged or truncated: its meta pages are missing")
            version, page_size, last_page, txn = meta
            if version not in _LMDB_HEADER_SIZES or not 256 <= page_size <= 65536:
                return None
            if newest is None or txn > newest[0]:
                newest = txn, (last_page + 1) * page_size
            at = page_size
    assert newest is not None
    return max(newest[1], 2 * page_size)


def _meta_page(page: bytes) -> tuple[int, int, int, int] | None:
    """Return LMDB format, page size, last page and transaction of a meta page."""
    for header_size in _LMDB_HEADER_SIZES.values():
        with contextlib.suppress(struct.error):
            magic, version, _, _, page_size, last_page, txn = _META_PAGE.unpack_from(page, header_size)
            if magic == _LMDB_MAGIC:
                return version, page_size, last_page, txn
    return None
