"""Effectiveness of the tail cache, measured by the reads that it did not serve."""

from pulsarbox.broker.read_queue import Reads
from pulsarbox.broker.stats.rate_window import WINDOW_SECONDS, Meter
from pulsarbox.broker.tail_cache import TailCache
from pulsarbox.clock import Now


class CacheUse:
    """The tail cache of one box over the last minute."""

    def __init__(self, cache: TailCache, reads: Reads) -> None:
        self.cache = cache
        self._reads = reads
        self._meter: Meter | None = None

    def begin(self, now: Now) -> None:
        """Start counting."""
        self._meter = Meter(now.monotonic, 3)

    def _counters(self) -> tuple[int, int, int]:
        return self._reads.entries, self._reads.bytes, self.cache.evicted

    def look(self, now: Now) -> None:
        """See Meter.look."""
        assert self._meter is not None
        self._meter.look(self._counters(), now)

    def misses(self, now: Now) -> tuple[float, float]:
        """Return entries and bytes per second that were read because they were not in memory."""
        assert self._meter is not None
        entries, size, _ = self._meter.rates(self._counters(), now)
        return entries, size

    def evictions(self, now: Now) -> float:
        """Return the spans of entries evicted in the last minute."""
        assert self._meter is not None
        return self._meter.rates(self._counters(), now)[2] * WINDOW_SECONDS
