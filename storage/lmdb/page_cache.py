"""Bounds the journal's share of the page cache to its newest part.

Older synced data is evicted, so that the next batch is written into recently used memory. Otherwise the cache grows
with every batch into pages never touched before: on a virtual machine, whose host must back each new page, that made
writing slower by a factor of five (352 MB/s against 1,782, with a sync after each MiB).

The price is that a backlog older than the window is read from disk.
"""

import os
from collections import deque
from pathlib import Path

STEP = 4 << 20
"""Bytes evicted at a time, so that the cost of the call is negligible."""


class PageCacheWindow:
    """Keeps the last ``limit`` bytes written in the page cache; 0 for no limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._parts: deque[tuple[Path, int, int]] = deque()
        """File, first byte, end (exclusive); oldest first."""
        self._file: Path | None = None
        self._end = 0

    def written(self, file: Path, end: int) -> None:
        """Add the newest part of a file, durable up to byte ``end``, to the window, and evict the oldest.

        Never fails: the calls are hints to the operating system.
        """
        if not self._limit:
            return
        if file != self._file:
            self._file, self._end = file, end  # earlier content of the file is outside of the window
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
        pass  # the file is deleted, or its file system lacks the call: harmless
