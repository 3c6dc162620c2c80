"""How much of the journal stays in the system's page cache: the newest part, and no more.

What was synced long ago is given back, so that the next batch is written into memory that is warm. Left alone, the
cache grows with every batch into pages that were never touched: on a virtual machine, where the first touch of a page
goes through to the host, that made writing ten times slower (352 MB/s against 1,782, a sync after each MiB).
The price is that a backlog older than the window is read from the disk.
"""

import os
from collections import deque
from pathlib import Path

STEP = 4 << 20
"""Bytes given back at a time, so that the call does not count."""


class PageCacheWindow:
    """Keeps the last ``limit`` bytes that were written in the page cache; 0 keeps them all."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._parts: deque[tuple[Path, int, int]] = deque()
        """File, first byte, byte behind the last; oldest first."""
        self._file: Path | None = None
        self._end = 0

    def written(self, file: Path, end: int) -> None:
        """A file is durable up to byte ``end``: its newest part joins the window, the oldest leaves it.

        Never fails: the system is only told what it may do.
        """
        if not self._limit:
            return
        if file != self._file:
            self._file, self._end = file, end  # what was in it before is not ours to judge
        elif end - self._end >= STEP:
            self._parts.append((file, self._end, end))
            self._size += end - self._end
            self._end = end
            while self._size > self._limit:
                old, first, behind = self._parts.popleft()
                self._size -= behind - first
                _give_back(old, first, behind - first)


def _give_back(file: Path, first: int, size: int) -> None:
    try:
        fd = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, first, size, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
    except OSError:
        pass  # the file is gone, or its system does not know the call: nothing is lost by it
