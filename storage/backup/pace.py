"""Rate limiting of copies, so that the box has priority on the disk."""

import time
from collections.abc import Callable
from typing import Final

Progress = Callable[[str, int, int], None]
"""Called with the current activity, the bytes done so far, and the total bytes as far as known."""

CHUNK: Final = 1 << 18
"""Bytes read at once."""
READ_WEIGHT: Final = 0.25
"""Weight of a byte that is only read: unlike writes, reads do not delay the syncs of the journal."""
_BURST_SECONDS: Final = 0.1
"""After a pause, at most this many seconds' worth of bytes may be caught up."""


class CopyPace:
    """Counts bytes, reports progress, and sleeps while ahead of the rate."""

    def __init__(self, rate: int, progress: Progress, total: int = 0) -> None:
        """``rate`` is in bytes per second, 0 for no limit."""
        self._rate = rate
        self._progress = progress
        self.total = total
        self.done = 0
        self.what = ""
        self._due = time.monotonic()

    def __call__(self, size: int, weight: float = 1.0) -> None:
        """Count bytes read or written; ``weight`` scales them for the rate."""
        self.done += size
        self._progress(self.what, self.done, max(self.total, self.done))
        if not self._rate:
            return
        now = time.monotonic()
        self._due = max(self._due, now - _BURST_SECONDS) + weight * size / self._rate
        if self._due > now:
            time.sleep(self._due - now)
