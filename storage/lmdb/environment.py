"""LMDB environments of a data directory: their creation, verification and opening, and what their errors mean."""

import errno
import os
from pathlib import Path

import lmdb

from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.format import NEW_SUFFIX
from pulsarbox.storage.lmdb.directory import DATA_FILE, EnvironmentDamaged, sync_directory, verify_environment
from pulsarbox.storage.lmdb.private_files import PRIVATE, PRIVATE_DIRECTORY

_TABLES_MAX = 16
_READERS_MAX = 1024
"""Other processes may read concurrently: each of their threads takes a slot per environment."""
_FREE_MIN = 1 << 20
_LOCK_FILE = "lock.mdb"
_LOCK_BYTES = 8192
"""Of the lock file: the header, and the slots of more readers than a box usually has."""
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
    """Create an empty environment at ``path``, atomically and durably.

    Raises lmdb.Error and OSError.
    """
    publish_environment(make_environment(path, tables), path)


def make_environment(path: Path, tables: tuple[bytes, ...]) -> Path:
    """Create an empty environment to be published at ``path``; return its temporary path.

    Raises lmdb.Error and OSError.
    """
    new = path.with_name(path.name + NEW_SUFFIX)
    if new.exists():
        import shutil

        shutil.rmtree(new, ignore_errors=True)
    new.mkdir(PRIVATE_DIRECTORY)  # without parents: if they are gone, the data directory was removed or replaced
    _allocate_lock_file(new)
    env = lmdb.open(str(new), map_size=1 << 20, max_dbs=_TABLES_MAX, mode=PRIVATE_DIRECTORY)
    try:
        with env.begin(write=True) as txn:  # one sync for all of them
            for name in tables:
                env.open_db(name, txn=txn)
    finally:
        env.close()
    return new


def publish_environment(new: Path, path: Path) -> None:
    """Rename a closed environment to its final path, durably. Raises OSError."""
    sync_directory(new)
    new.rename(path)
    sync_directory(path.parent)


def open_environment(path: Path, map_size: int, *, sealed: bool = False, beside: bool = False) -> lmdb.Environment:
    """Verify and open an environment. Raises PersistenceError, lmdb.Error.

    A ``sealed`` one is never written again and is opened without locks. ``beside``: read only, while another process
    may be writing it.
    """
    verify_environment(path)
    if beside:
        # LMDB creates its lock file if missing.
        return lmdb.open(
            str(path), map_size=map_size, max_dbs=_TABLES_MAX, create=False, readonly=True, mode=PRIVATE_DIRECTORY
        )
    if sealed:
        return lmdb.open(str(path), map_size=map_size, max_dbs=_TABLES_MAX, create=False, readonly=True, lock=False)
    # LMDB syncs by default: data, then the meta page. Read-ahead stays enabled: values of the log span many pages, and
    # a backlog is read sequentially.
    _allocate_lock_file(path)
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


def _allocate_lock_file(path: Path) -> None:
    """Allocate the beginning of the lock file of an environment that is not open in this process. Raises OSError.

    LMDB writes to it through a map: without space for its blocks, SIGBUS would end the process.
    """
    descriptor = os.open(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        os.posix_fallocate(descriptor, 0, _LOCK_BYTES)
    finally:
        os.close(descriptor)


def failure(what: str, error: Exception, path: Path, size: int = 0) -> PersistenceError:
    """Convert an error of writing ``size`` bytes to ``path`` into one that can be reported to a client."""
    if isinstance(error, lmdb.MapFullError):
        return PersistenceError(f"{what}: the volume's map is full")
    code = getattr(error, "code", None) or getattr(error, "errno", None)
    full = isinstance(error, lmdb.DiskError) or code in (errno.ENOSPC, errno.EDQUOT)
    if code == errno.EIO:  # LMDB's error for a partial write, such as the last one before the disk is full
        import shutil

        full = shutil.disk_usage(path).free < size + _FREE_MIN
    return StoreFull(f"{what}: the disk is full") if full else PersistenceError(f"{what}: {error}")


def is_damage(error: BaseException) -> bool:
    """Return whether an error of opening or reading an environment means damage, rather than a transient failure."""
    code = getattr(error, "code", None) or getattr(error, "errno", None)
    return isinstance(error, _DAMAGE) and code not in _TRANSIENT


def disk_bytes(path: Path) -> int:
    """Return the disk usage of the environment at ``path`` in bytes; 0 if there is none."""
    try:
        return (path / DATA_FILE).stat().st_blocks * 512
    except FileNotFoundError:
        return 0
