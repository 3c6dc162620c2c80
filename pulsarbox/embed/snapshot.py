"""Snapshots of a box's data, in temporary directories."""

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Final, Literal

Storage = Literal["memory", "disk"]


class Snapshot:
    """A snapshot for ``PulsarBox.restore``, on this box or another one with the same storage, any number of times."""

    def __init__(self, storage: Storage) -> None:
        self.storage: Final = storage
        self.path: Final = scratch_directory(self)
        """Directory of the snapshot, in the system's temporary directory, until ``close`` or the end of the program."""

    def close(self) -> None:
        """Remove the snapshot; idempotent."""
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Snapshot of a box on {self.storage} in {self.path}>"


def scratch_directory(owner: object) -> Path:
    """Create a temporary directory that is removed with its owner or at exit, but not by a forked child."""
    path = Path(tempfile.mkdtemp(prefix="pulsarbox-"))
    weakref.finalize(owner, _remove, path, os.getpid())
    return path


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
