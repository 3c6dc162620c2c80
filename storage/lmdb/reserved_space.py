"""Reserved space: a file that takes room on the disk so that there is some when the disk is full.

Messages never touch it. Once the disk is full it is given up, so that acknowledgements, deletions, checkpoints and
the removal of volumes can still be written: they make room again. Messages are taken again once it stands in full.
"""

import os
import threading
from pathlib import Path

from pulsarbox.storage.lmdb.directory import sync_directory
from pulsarbox.storage.lmdb.private_files import PRIVATE


class Reserve:
    """The file, of ``size`` bytes (0: none)."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self.held = False
        self._lock = threading.Lock()

    def hold(self) -> bool:
        """Take the room where it is not taken yet; whether it is there now."""
        if self.held or not self._size:
            return True
        with self._lock:
            return self._take()

    def _take(self) -> bool:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError:
            return False
        try:
            os.posix_fallocate(descriptor, 0, self._size)
            self.held = True
        except OSError:
            self._path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
        return self.held

    def release(self) -> bool:
        """Give the room up; whether there was any."""
        with self._lock:
            was_held, self.held = self.held, False
            self._path.unlink(missing_ok=True)
            if was_held:
                sync_directory(self._path.parent)
            return was_held
