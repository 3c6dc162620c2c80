"""How long commits take, how much they carry, how large entries are: a few additions a commit, none a message.

All topics of the box share its commits, so one look at a commit speaks for all of them. Of sizes every 50 ms one commit
is looked into.
"""

from bisect import bisect_left
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.stats.rate_window import WINDOW_SECONDS, Meter
from pulsarbox.clock import Now
from pulsarbox.storage.ledger import ManagedLedger

if TYPE_CHECKING:
    from pulsarbox.broker.topic.topic import PersistentTopic
    from pulsarbox.storage.record import Entry

LATENCY_MS: Final = (0.5, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1000.0)
"""Upper bounds of Pulsar's buckets of write latency; one more bucket is for what is above."""
SIZES: Final = (128, 512, 1024, 2048, 4096, 16384, 102_400, 1_048_576)
"""The same of entry sizes, in bytes."""
FINE_MS: Final = tuple(sorted({*LATENCY_MS, *(round(0.05 * 1.25**i, 4) for i in range(58))}))
"""Bounds fine enough to tell quantiles by, up to 17 s; Pulsar's are among them."""

SAMPLE_SECONDS: Final = 0.05
SAMPLE_ENTRIES: Final = 256
"""Entries of one commit that are looked at."""
SAMPLE_MEMORY: Final = 400
"""Entries that a topic's distribution of sizes speaks for, at most: older ones fade."""


class CommitTimes:
    """The commits of one box, counted; and their distribution over the last minute."""

    def __init__(self) -> None:
        self.commits = 0
        self.failed = 0
        self.entries = 0
        self.bytes = 0
        self.seconds = 0.0
        self.by_commit = [0] * (len(FINE_MS) + 1)
        """Commits by what the disk took for them."""
        self.by_entry = [0] * (len(FINE_MS) + 1)
        """Entries by how long the oldest entry of their commit has waited for its receipt: none waited longer."""
        self.waited_ms = 0.0
        """Of all entries together."""
        self._meter: Meter | None = None
        """From the first look on."""
        self._since = 0.0
        self._sample_at = 0.0

    def begin(self, now: Now) -> None:
        """It is counted from now on."""
        self._since = now.monotonic

    def committed(self, seconds: float, waited: float, entries: int, size: int) -> None:
        """A commit of ``entries`` entries took ``seconds``; the oldest of them had ``waited`` seconds before it."""
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

    def sample(self, appended: "dict[PersistentTopic, list[Entry]]", now: Now) -> None:
        """Look into a commit for the sizes of its entries, where the last look is long enough ago."""
        if now.monotonic < self._sample_at or not appended:
            return
        self._sample_at = now.monotonic + SAMPLE_SECONDS
        left = SAMPLE_ENTRIES
        for topic, entries in appended.items():
            topic.traffic.saw([len(entry.body) for entry in islice(entries, left)])
            left -= len(entries)
            if left <= 0:
                break

    def _counters(self) -> tuple[int, ...]:
        return (round(self.waited_ms * 1000), *self.by_entry)

    def look(self, now: Now) -> None:
        """See Meter.look."""
        if self._meter is None:
            self._meter = Meter(self._since, len(FINE_MS) + 2)
        self._meter.look(self._counters(), now)

    def last_minute(self, now: Now) -> "Latencies":
        """How long entries of the last minute have waited for their receipts."""
        self.look(now)
        assert self._meter is not None
        waited_us, *fine = (rate * WINDOW_SECONDS for rate in self._meter.rates(self._counters(), now))
        return Latencies(fine, waited_us / 1000)


class Latencies:
    """A distribution of latencies."""

    def __init__(self, fine: list[float], total_ms: float) -> None:
        """``fine``: entries by ``FINE_MS``."""
        self._fine = fine
        self.entries = sum(fine)
        self.total_ms = total_ms
        upto = [0.0, *accumulate(fine)]
        ends = [*(FINE_MS.index(bound) + 1 for bound in LATENCY_MS), len(fine)]
        self.shares = tuple(upto[end] / self.entries if self.entries else 0.0 for end in ends)
        """Of all entries, what took no longer than each of ``LATENCY_MS``, and in the end 1 for all."""

    @property
    def mean_ms(self) -> float:
        """Milliseconds."""
        return self.total_ms / self.entries if self.entries else 0.0

    def quantile(self, share: float) -> float:
        """Milliseconds that this share of all entries did not exceed, up to the fineness of ``FINE_MS``; NaN where
        there were no entries."""
        if not self.entries:
            return float("nan")
        found = bisect_left(list(accumulate(self._fine)), share * self.entries * (1 - 1e-9))
        return FINE_MS[min(found, len(FINE_MS) - 1)]


class Traffic:
    """How many entries a topic gets, counted when somebody looks; and how large they are."""

    __slots__ = ("_before", "_ledger", "_meter", "_since", "_sizes")

    def __init__(self, ledger: ManagedLedger, since: float = 0.0) -> None:
        """``since``: seconds of the monotonic clock at which the ledger stands where it does."""
        self._ledger = ledger
        self._before = ledger.dropped_entries + ledger.confirmed_entries
        self._since = since
        self._meter: Meter | None = None
        """There is none for a topic to which nothing was published."""
        self._sizes: list[float] | None = None

    def begin(self, now: Now) -> None:
        """It is counted from now on."""
        self._since = now.monotonic

    def saw(self, sizes: list[int]) -> None:
        """Some of its entries have these sizes in bytes."""
        counts = self._sizes
        if counts is None:
            counts = self._sizes = [0.0] * (len(SIZES) + 1)
        for size in sizes:
            counts[bisect_left(SIZES, size)] += 1
        total = sum(counts)
        if total > SAMPLE_MEMORY:
            self._sizes = [count * (SAMPLE_MEMORY / 2 / total) for count in counts]

    def look(self, now: Now) -> None:
        """See Meter.look."""
        entries = self._entries()
        if self._meter is None:
            if not entries:
                self._since = now.monotonic
                return
            self._meter = Meter(self._since, 1)
        self._meter.look((entries,), now)

    def _entries(self) -> int:
        return self._ledger.dropped_entries + self._ledger.confirmed_entries - self._before

    def entries_a_second(self, now: Now) -> float:
        """Entries that were stored, over the last minute."""
        self.look(now)
        return self._meter.rates((self._entries(),), now)[0] if self._meter is not None else 0.0

    def size_shares(self, mean: float) -> tuple[float, ...]:
        """Of all entries, what is no larger than each of ``SIZES``, and in the end 1 for all.

        ``mean``: the mean size in bytes, by which all go as long as none was looked at.
        """
        counts = self._sizes
        if counts is None:
            counts = [0.0] * (len(SIZES) + 1)
            counts[bisect_left(SIZES, mean)] = 1.0
        total = sum(counts)
        return tuple(upto / total for upto in accumulate(counts))


def spread(count: int, shares: tuple[float, ...]) -> tuple[int, ...]:
    """``count`` things by a distribution, given as for ``Latencies.shares``; their sum is ``count`` where any are."""
    before, buckets = 0, []
    for share in shares:
        upto = round(count * share)
        buckets.append(upto - before)
        before = upto
    return tuple(buckets)
