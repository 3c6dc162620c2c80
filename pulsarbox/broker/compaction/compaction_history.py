"""Compaction statistics of topics since the box started, and the queue of pending compactions."""

from bisect import bisect_left
from collections import deque
from typing import Final, Protocol

from pulsarbox.clock import Now

LATENCY_MILLIS: Final = (0.5, 1, 5, 10, 20, 50, 100, 200, 1000)
"""Upper bounds of the write latency histogram in milliseconds, as in Pulsar; the last bucket is unbounded."""


class CompactionRecord:
    """Statistics of one topic, loaded or not. Times are milliseconds since 1970; 0 means never."""

    def __init__(self) -> None:
        self.last_removed = self.last_duration = self.succeeded_at = self.failed_at = 0
        """Removed messages and duration (ms) of the last compaction, and times of the last success and failure."""
        self.removed = self.succeeded = self.failed = self.duration = 0
        """Totals: removed messages, successes, failures and duration (ms)."""
        self.error = ""
        """Why the last compaction failed; empty if it succeeded."""
        self.latencies = [0] * (len(LATENCY_MILLIS) + 1)
        """Write latency histogram."""
        self.latency_sum = 0.0

    def ended(self, removed: int, millis: int, error: Exception | None, now: Now) -> None:
        """Record the end of a compaction."""
        self.last_duration = millis
        self.duration += millis
        self.error = "" if error is None else str(error) or type(error).__name__
        if error is None:
            self.last_removed = removed
            self.removed += removed
            self.succeeded += 1
            self.succeeded_at = now.wall
        else:
            self.failed += 1
            self.failed_at = now.wall

    def written(self, seconds: float) -> None:
        """Record a durable write that took this long."""
        self.latencies[bisect_left(LATENCY_MILLIS, seconds * 1000)] += 1
        self.latency_sum += seconds * 1000


class QueuedRun(Protocol):
    """A compaction that waits for its turn."""

    def begin(self, now: Now) -> None:
        """Start the compaction."""


class Compactions:
    """Runs one compaction at a time, which bounds its memory and its load on the box."""

    def __init__(self) -> None:
        self.records: dict[str, CompactionRecord] = {}
        """Statistics by topic, of topics compacted since the start."""
        self._running: QueuedRun | None = None
        self._waiting: deque[QueuedRun] = deque()

    def record(self, topic: str) -> CompactionRecord:
        """Return the statistics of a topic, created on first use."""
        return self.records.setdefault(topic, CompactionRecord())

    def enqueue(self, run: QueuedRun, now: Now) -> None:
        """Start a compaction when its turn comes."""
        self._waiting.append(run)
        if self._running is None:
            self._next(now)

    def ended(self, run: QueuedRun, now: Now) -> None:
        """Handle a compaction that has ended or was withdrawn."""
        if run is self._running:
            self._running = None
            self._next(now)
        else:
            self._waiting.remove(run)

    def _next(self, now: Now) -> None:
        if self._waiting:
            self._running = self._waiting.popleft()
            self._running.begin(now)
