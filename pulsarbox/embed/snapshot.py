"""What a box held at one instant, kept in a directory of its own until nobody wants it any more."""

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Final, Literal

Storage = Literal["memory", "disk"]


class Snapshot:
    """For ``PulsarBox.restore``: of this box or another one with the same storage, as often as wanted."""

    def __init__(self, storage: Storage) -> None:
        self.storage: Final = storage
        self.path: Final = scratch_directory(self)
        """Where it is kept: in the system's temporary directory, until ``close`` or the end of the program."""

    def close(self) -> None:
        """Remove it; again is no harm."""
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Snapshot of a box on {self.storage} in {self.path}>"


def scratch_directory(owner: object) -> Path:
    """A new directory that goes with its owner, or with the program; a forked child leaves it alone."""
    path = Path(tempfile.mkdtemp(prefix="pulsarbox-"))
    weakref.finalize(owner, _remove, path, os.getpid())
    return path


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
