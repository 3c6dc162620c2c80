"""Effectiveness of the tail cache, measured by the reads that it did not serve."""

from pulsarbox.broker.persistence.read_queue import ReadQueue
from pulsarbox.broker.persistence.tail_cache import TailCache
from pulsarbox.broker.stats.rate_window import WINDOW_SECONDS, RateWindow
from pulsarbox.clock import Now


class CacheHitRate:
    """The tail cache of one box over the last minute."""

    def __init__(self, cache: TailCache, reads: ReadQueue, now: Now) -> None:
        """Start counting."""
        self.cache = cache
        self._reads = reads
        self._meter = RateWindow(now.monotonic, 3)

    def _counters(self) -> tuple[int, int, int]:
        return self._reads.entries, self._reads.bytes, self.cache.evicted

    def sample(self, now: Now) -> None:
        """See RateWindow.sample."""
        self._meter.sample(self._counters(), now)

    def misses(self, now: Now) -> tuple[float, float]:
        """Return entries and bytes per second that were read because they were not in memory."""
        entries, size, _ = self._meter.rates(self._counters(), now)
        return entries, size

    def evictions(self, now: Now) -> float:
        """Return the spans of entries evicted in the last minute."""
        return self._meter.rates(self._counters(), now)[2] * WINDOW_SECONDS
