"""A file that is reread when it has changed."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

Stamp = tuple[int, int, int]
"""Modification time, size and inode of a file; one of them differs after a change."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the current stamp of a file; None if the file is not accessible."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class WatchedFile(Generic[T]):
    """The last valid value read from a file."""

    def __init__(self, path: Path | None, read: Callable[[], T]) -> None:
        """``path``: None if the value is not in a file and cannot change. Raises what ``read`` raises."""
        self._path = path
        self._read = read
        self._stamp = self._now()
        self.value = read()

    def reload_if_changed(self) -> bool:
        """Reread the file if it has changed, and return whether there is a new value.

        An invalid file is logged, and the previous value stays. Blocks on the disk: call it in a thread.
        """
        stamp = self._now()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self.value = self._read()
        except ValueError as error:
            log.warning("%s has changed and cannot be used, what it held before goes on: %s", self._path, error)
            return False
        log.info("%s has changed and is read again", self._path)
        return True

    def _now(self) -> Stamp | None:
        return stamp_of(self._path) if self._path is not None else None
