"""Statistics of commits: duration, latency, entries and entry sizes, at the cost of a few additions per commit.

All topics share the commits of the box, so their latencies apply to all topics. Entry sizes are sampled from one commit
every 50 ms.
"""

from bisect import bisect_left
from itertools import accumulate, islice
from typing import Final, Protocol, TypeVar

from pulsarbox.broker.stats.rate_window import WINDOW_SECONDS, RateWindow
from pulsarbox.clock import Now
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry

LATENCY_MS: Final = (0.5, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1000.0)
"""Upper bounds of Pulsar's write latency buckets in ms; one more bucket is for higher latencies."""
SIZES: Final = (128, 512, 1024, 2048, 4096, 16384, 102_400, 1_048_576)
"""Upper bounds of Pulsar's entry size buckets in bytes, likewise."""
FINE_MS: Final = tuple(sorted({*LATENCY_MS, *(round(0.05 * 1.25**i, 4) for i in range(58))}))
"""Bounds in ms, fine enough for quantiles, up to 17 s; they include Pulsar's."""

SAMPLE_SECONDS: Final = 0.05
SAMPLE_ENTRIES: Final = 256
"""Entries sampled per commit."""
SAMPLE_MEMORY: Final = 400
"""Maximum weight of a topic's size distribution, in entries; older ones fade."""


class SampledTopic(Protocol):
    """A topic whose entry sizes are sampled."""

    traffic: "Traffic"


T = TypeVar("T", bound=SampledTopic)


class CommitTimes:
    """Counters of the box's commits, and their latency distribution over the last minute."""

    def __init__(self, now: Now) -> None:
        """Start counting."""
        self.commits = 0
        self.failed = 0
        self.entries = 0
        self.bytes = 0
        self.seconds = 0.0
        self.by_commit = [0] * (len(FINE_MS) + 1)
        """Commits by their duration on disk."""
        self.by_entry = [0] * (len(FINE_MS) + 1)
        """Entries by the latency of the oldest entry in their commit, an upper bound of their own."""
        self.waited_ms = 0.0
        """Sum of these latencies over all entries."""
        self._meter: RateWindow | None = None
        """Created with the first sample."""
        self._since = now.monotonic
        self._sample_at = 0.0

    def committed(self, seconds: float, waited: float, entries: int, size: int) -> None:
        """Count a commit of ``entries`` that took ``seconds``; the oldest had waited ``waited`` seconds before it."""
        self.commits += 1
        self.entries += entries
        self.bytes += size
        self.seconds += seconds
        disk_ms = seconds * 1000
        self.by_commit[bisect_left(FINE_MS, disk_ms)] += 1
        if entries:
            latency_ms = disk_ms + waited * 1000
            self.by_entry[bisect_left(FINE_MS, latency_ms)] += entries
            self.waited_ms += latency_ms * entries

    def count_failure(self) -> None:
        """Count a commit that failed."""
        self.failed += 1

    def sample(self, appended: dict[T, list[Entry]], now: Now) -> None:
        """Sample the entry sizes of a commit if the last sample is old enough."""
        if now.monotonic < self._sample_at or not appended:
            return
        self._sample_at = now.monotonic + SAMPLE_SECONDS
        left = SAMPLE_ENTRIES
        for topic, entries in appended.items():
            topic.traffic.add_sizes([len(entry.body) for entry in islice(entries, left)])
            left -= len(entries)
            if left <= 0:
                break

    def _counters(self) -> tuple[int, ...]:
        return (round(self.waited_ms * 1000), *self.by_entry)

    def sample_rates(self, now: Now) -> None:
        """See RateWindow.sample."""
        if self._meter is None:
            self._meter = RateWindow(self._since, len(FINE_MS) + 2)
        self._meter.sample(self._counters(), now)

    def last_minute(self, now: Now) -> "Latencies":
        """Return the receipt latencies of the last minute."""
        self.sample_rates(now)
        assert self._meter is not None
        waited_us, *fine = (rate * WINDOW_SECONDS for rate in self._meter.rates(self._counters(), now))
        return Latencies(fine, waited_us / 1000)


class Latencies:
    """A distribution of latencies."""

    def __init__(self, fine: list[float], total_ms: float) -> None:
        """``fine``: histogram of entries with the bounds ``FINE_MS``."""
        self._fine = fine
        self.entries = sum(fine)
        self.total_ms = total_ms
        upto = [0.0, *accumulate(fine)]
        ends = [*(FINE_MS.index(bound) + 1 for bound in LATENCY_MS), len(fine)]
        self.shares = tuple(upto[end] / self.entries if self.entries else 0.0 for end in ends)
        """Cumulative share of entries up to each of ``LATENCY_MS``, then 1 for all."""

    @property
    def mean_ms(self) -> float:
        """Mean latency in ms."""
        return self.total_ms / self.entries if self.entries else 0.0

    def quantile(self, share: float) -> float:
        """Return the latency quantile in ms, with the resolution of ``FINE_MS``; NaN without entries."""
        if not self.entries:
            return float("nan")
        found = bisect_left(list(accumulate(self._fine)), share * self.entries * (1 - 1e-9))
        return FINE_MS[min(found, len(FINE_MS) - 1)]


class Traffic:
    """Rate and sizes of the entries of a topic."""

    __slots__ = ("_before", "_ledger", "_meter", "_since", "_sizes")

    def __init__(self, ledger: ManagedLedger, since: float = 0.0) -> None:
        """``since``: the time of the ledger's current state (monotonic seconds)."""
        self._ledger = ledger
        self._before = ledger.dropped_entries + ledger.confirmed_entries
        self._since = since
        self._meter: RateWindow | None = None
        """None until an entry is published."""
        self._sizes: list[float] | None = None

    def begin(self, now: Now) -> None:
        """Start counting."""
        self._since = now.monotonic

    def add_sizes(self, sizes: list[int]) -> None:
        """Add sampled entry sizes in bytes."""
        counts = self._sizes
        if counts is None:
            counts = self._sizes = [0.0] * (len(SIZES) + 1)
        for size in sizes:
            counts[bisect_left(SIZES, size)] += 1
        total = sum(counts)
        if total > SAMPLE_MEMORY:
            self._sizes = [count * (SAMPLE_MEMORY / 2 / total) for count in counts]

    def sample(self, now: Now) -> None:
        """See RateWindow.sample."""
        entries = self._entries()
        if self._meter is None:
            if not entries:
                self._since = now.monotonic
                return
            self._meter = RateWindow(self._since, 1)
        self._meter.sample((entries,), now)

    def _entries(self) -> int:
        return self._ledger.dropped_entries + self._ledger.confirmed_entries - self._before

    def entries_a_second(self, now: Now) -> float:
        """Return the entries stored per second over the last minute."""
        self.sample(now)
        return self._meter.rates((self._entries(),), now)[0] if self._meter is not None else 0.0

    def size_shares(self, mean: float) -> tuple[float, ...]:
        """Return the cumulative share of entries up to each of ``SIZES``, then 1 for all.

        ``mean``: the mean size in bytes, assumed for all entries until some are sampled.
        """
        counts = self._sizes
        if counts is None:
            counts = [0.0] * (len(SIZES) + 1)
            counts[bisect_left(SIZES, mean)] = 1.0
        total = sum(counts)
        return tuple(upto / total for upto in accumulate(counts))


def spread(count: int, shares: tuple[float, ...]) -> tuple[int, ...]:
    """Distribute ``count`` over buckets by cumulative shares, as in ``Latencies.shares``; the sum is ``count``."""
    before, buckets = 0, []
    for share in shares:
        upto = round(count * share)
        buckets.append(upto - before)
        before = upto
    return tuple(buckets)
