"""Hold back copying to a rate, so that the box keeps the disk."""

import time
from collections.abc import Callable
from typing import Final

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the bytes done so far, and the bytes in all as far as they are known."""

CHUNK: Final = 1 << 18
"""Bytes that are read at once."""
READ_WEIGHT: Final = 0.25
"""Of a byte that is only read: reading does not hold up the syncs of the journal, writing does."""
_BURST_SECONDS: Final = 0.1
"""After a pause, no more than this time's worth of bytes is made up for."""


class Pace:
    """Counts bytes, reports them, and sleeps as long as they are ahead of the rate."""

    def __init__(self, rate: int, progress: Progress, total: int = 0) -> None:
        """``rate`` is in bytes a second, 0 for no limit."""
        self._rate = rate
        self._progress = progress
        self.total = total
        self.done = 0
        self.what = ""
        self._due = time.monotonic()

    def __call__(self, size: int, weight: float = 1.0) -> None:
        """So many bytes were read or written; ``weight`` is what a byte counts for the rate."""
        self.done += size
        self._progress(self.what, self.done, max(self.total, self.done))
        if not self._rate:
            return
        now = time.monotonic()
        self._due = max(self._due, now - _BURST_SECONDS) + weight * size / self._rate
        if self._due > now:
            time.sleep(self._due - now)
