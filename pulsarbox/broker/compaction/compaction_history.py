"""What is remembered of the compactions of each topic since the box was started, and whose turn it is."""

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING, Final

from pulsarbox.clock import Now

if TYPE_CHECKING:
    from pulsarbox.broker.compaction.compaction_run import Run

LATENCY_MILLIS: Final = (0.5, 1, 5, 10, 20, 50, 100, 200, 1000)
"""Upper bounds of what writes of compactions are counted by, as in Pulsar; one more is beyond."""


class Record:
    """Of one topic, in memory or not. Times are milliseconds since 1970; 0 for never."""

    def __init__(self) -> None:
        self.last_removed = self.last_duration = self.succeeded_at = self.failed_at = 0
        """Of the last one: messages that were not kept, and how many ms it took; when one succeeded or failed last."""
        self.removed = self.succeeded = self.failed = self.duration = 0
        """Of all: messages, how many there were, and ms."""
        self.error = ""
        """Why the last one failed; empty where it did not."""
        self.latencies = [0] * (len(LATENCY_MILLIS) + 1)
        """How often a write took so long."""
        self.latency_sum = 0.0

    def ended(self, removed: int, millis: int, error: Exception | None, now: Now) -> None:
        """A compaction has ended."""
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
        """A write was durable after so long."""
        self.latencies[bisect_left(LATENCY_MILLIS, seconds * 1000)] += 1
        self.latency_sum += seconds * 1000


class Compactions:
    """One runs at a time, the others wait: what one needs in memory is bounded, so is what it takes of the box."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        """By topic, of those that were compacted since the start."""
        self._running: Run | None = None
        self._waiting: deque[Run] = deque()

    def record(self, topic: str) -> Record:
        """What is known of a topic's compactions, from its first on."""
        return self.records.setdefault(topic, Record())

    def enqueue(self, run: "Run", now: Now) -> None:
        """Begin a compaction when it is its turn."""
        self._waiting.append(run)
        if self._running is None:
            self._next(now)

    def ended(self, run: "Run", now: Now) -> None:
        """A compaction has ended, or will not begin."""
        if run is self._running:
            self._running = None
            self._next(now)
        else:
            self._waiting.remove(run)

    def _next(self, now: Now) -> None:
        if self._waiting:
            self._running = self._waiting.popleft()
            self._running.begin(now)
