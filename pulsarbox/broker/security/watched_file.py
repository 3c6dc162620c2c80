"""A file that is read again when it has changed."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

Stamp = tuple[int, int, int]
"""What changes with a file: when it was written, how long it is, which one it is."""


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file as it is now; None where it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class WatchedFile(Generic[T]):
    """What stands in a file, as it was when it was last right."""

    def __init__(self, path: Path | None, read: Callable[[], T]) -> None:
        """``path``: None where it is no file and cannot change. Raises what ``read`` raises."""
        self._path = path
        self._read = read
        self._stamp = self._now()
        self.value = read()

    def look(self) -> None:
        """Read it again if it has changed. One that is not right any more is a line of the log, and changes nothing."""
        stamp = self._now()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.value = self._read()
        except ValueError as error:
            log.warning("%s has changed and cannot be used, what it held before goes on: %s", self._path, error)
        else:
            log.info("%s has changed and is read again", self._path)

    def _now(self) -> Stamp | None:
        return stamp_of(self._path) if self._path is not None else None
