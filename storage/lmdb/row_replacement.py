"""Replacement of all rows of a checkpoint by those of another directory, in bounded memory.

A new environment is built beside the current one, with the same tables of volumes, and takes its place at once.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.lmdb.directory import DATA_FILE, sync_directory
from pulsarbox.storage.lmdb.environment import make_environment
from pulsarbox.storage.lmdb.meta_environment import TABLES, MetaEnvironment
from pulsarbox.storage.lmdb.volume_set import VolumeSet

_LOCK_FILE: Final = "lock.mdb"
_BYTES_AT_ONCE: Final = 4 << 20


def replace_rows(
    volumes: VolumeSet, rows: Iterable[tuple[bytes, bytes]], mark: int, dropped: Callable[[], tuple[int, ...]]
) -> tuple[int, ...]:
    """Replace the rows by others, which cover the log up to ``mark``; return the ledgers dropped with the former rows.

    ``dropped`` is called after the last row. No other thread may change the tables meanwhile. Raises PersistenceError,
    lmdb.Error, OSError; nothing has changed then.
    """
    path = volumes.directory.meta
    new = make_environment(path, TABLES)
    try:
        gone = _build(volumes, new, rows, mark, dropped)
        volumes.step("rows written")
        volumes.metas.replace(0, lambda: _swap(new, path))
    finally:
        shutil.rmtree(new, ignore_errors=True)
    volumes.step("rows replaced")
    return gone


def _build(
    volumes: VolumeSet,
    new: Path,
    rows: Iterable[tuple[bytes, bytes]],
    mark: int,
    dropped: Callable[[], tuple[int, ...]],
) -> tuple[int, ...]:
    meta = MetaEnvironment(new)
    try:
        with volumes.metas.using(0) as current:
            meta.copy_volumes(current)
        meta.add_rows(rows, _BYTES_AT_ONCE)
        gone = dropped()
        meta.checkpoint(Checkpoint(mark, {}, gone))
        return gone
    finally:
        meta.close()


def _swap(new: Path, path: Path) -> None:
    # Processes that read beside this one keep both files open. A lock file with readers of the former file must not be
    # used with the new one.
    (path / _LOCK_FILE).unlink(missing_ok=True)
    (new / DATA_FILE).replace(path / DATA_FILE)
    (path / _LOCK_FILE).unlink(missing_ok=True)
    sync_directory(path)
