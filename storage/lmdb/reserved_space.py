"""Reserved space: a file that occupies disk space to be released when the disk is full.

Messages never use it. Once the disk is full it is released, so that acknowledgements, deletions, checkpoints and the
removal of volumes, which free space, can be written. Messages are accepted again once the whole reserve is restored.
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
        """Allocate the space if necessary; return whether it is allocated."""
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
        """Release the space; return whether there was any."""
        with self._lock:
            was_held, self.held = self.held, False
            self._path.unlink(missing_ok=True)
            if was_held:
                sync_directory(self._path.parent)
            return was_held
