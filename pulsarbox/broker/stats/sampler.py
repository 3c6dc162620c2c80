"""Periodic sampling of all topics and subscriptions, so that live views can sort them by current values.

Sampling adds no work to the message path. A pass samples every topic in memory, some per turn. Its interval depends on
the number of topics and on whether a live view is open, which bounds the CPU use. Rows on display are sampled again
when they are rendered.
"""

from collections.abc import Iterator
from itertools import islice
from math import nan
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.stats.tenant_stats import Scopes
from pulsarbox.broker.stats.time_series import Series, Waits
from pulsarbox.broker.stats.topic_samples import TopicSample
from pulsarbox.broker.stats.topic_totals import Totals
from pulsarbox.broker.stats.unloaded_topic_stats import StoredSamples
from pulsarbox.clock import Now

if TYPE_CHECKING:
    from pulsarbox.broker.stats.commit_stats import CommitTimes
    from pulsarbox.broker.topic.registry import Topics
    from pulsarbox.broker.topic.topic import Topic
    from pulsarbox.storage.recovery import Store

WATCHED_A_SECOND: Final = 1500
"""Maximum number of topics and subscriptions sampled per second while a live view is open."""
UNWATCHED_A_SECOND: Final = 1000
WATCHED_SECONDS: Final = 15.0
"""How long after a request a live view counts as open."""
PERIOD_SECONDS: Final = 1.0
"""Minimum interval between passes."""
FEW: Final = 250
"""Up to this many topics and subscriptions (2 ms of CPU), each response gets its own pass, to include new ones."""
FRESH_SECONDS: Final = 0.25
"""A pass that is younger is not repeated for a response."""


class Sampler:
    """The latest samples of all topics."""

    def __init__(self, topics: "Topics", store: "Store", times: "CommitTimes") -> None:
        self._all = topics
        self.stored = StoredSamples(topics, store)
        """Samples of topics that are not in memory."""
        self.topics: dict[Topic, TopicSample] = {}
        """Samples of topics in memory."""
        self.totals = Totals()
        """Totals of topics in memory; rates as of the last complete pass."""
        self.passes = 0
        """Number of complete passes."""
        self.passed_at = Now(0.0, 0)
        """When the last pass ended."""
        self._left: set[Topic] = set()
        """Topics that left memory since the current pass began."""
        self._pass: Iterator[None] | None = None
        self._watched_at = -WATCHED_SECONDS
        self._asked = False
        """Whether a response waits for a pass."""
        self._rates = Totals()
        """Rates summed up by the current pass."""
        self._passing_bytes = 0
        self._now = self.passed_at
        self.series = Series(("publishRate", "deliverRate", "backlog", "p99"))
        self.scopes = Scopes()
        self._waits = Waits()
        self._times = times
        topics.left.add(self._has_left)

    def every(self) -> Iterator[TopicSample]:
        """Yield the samples of all known topics, in memory or not."""
        yield from list(self.topics.values())
        yield from list(self.stored.topics.values())

    def tick(self, now: Now) -> None:
        """Record the values for graphs; called once a second, before ``step``."""
        totals = self.totals
        p99 = self._waits.quantile(self._times.by_entry, 0.99)
        self.stored.sample(now)
        backlog = float(totals.backlog + self.stored.totals.backlog) if self.stored.found else nan
        self.series.add(totals.publish_rate, totals.deliver_rate, backlog, p99)
        self.scopes.tick(now)

    def watch(self, now: Now) -> None:
        """Record a request of a live view."""
        self._watched_at = now.monotonic
        self._asked = True
        self.stored.begin(now)

    def watched(self, now: Now) -> bool:
        """Return whether a live view is open."""
        return now.monotonic - self._watched_at < WATCHED_SECONDS

    def period(self, now: Now) -> float:
        """Return the interval between passes in seconds."""
        things = len(self.topics) + self.totals.subscriptions
        return max(PERIOD_SECONDS, things / (WATCHED_A_SECOND if self.watched(now) else UNWATCHED_A_SECOND))

    def due(self, now: Now) -> bool:
        """Return whether a pass is in progress or due."""
        if self._pass is not None or not self.passes:
            return True
        is_few = self._asked and len(self.topics) + self.totals.subscriptions <= FEW
        return now.monotonic - self.passed_at.monotonic >= (FRESH_SECONDS if is_few else self.period(now))

    def step(self, now: Now, at_once: int) -> bool:
        """Sample up to ``at_once`` topics if a pass is due; return whether none is left for now."""
        if self._pass is None:
            if not self.due(now):
                return True
            self._pass = self._looks(list(self._all))
            self._asked = False
            self._rates = Totals()
            self._passing_bytes = 0
            self._left.clear()
        self._now = now
        for _ in islice(self._pass, at_once):
            pass
        return self._pass is None

    def _looks(self, topics: "list[Topic]") -> Iterator[None]:
        before = self.topics
        found: dict[Topic, TopicSample] = {}
        for topic in topics:
            sample = before.get(topic) or TopicSample(str(topic.name), topic.name.namespace, self._now.monotonic, topic)
            more = sample.sample(self._now.monotonic)
            if more is not None or sample.counted is None:
                self._passing_bytes += more or 0
                self._rates.add_rates(sample)
                self.totals.count(sample)
            found[topic] = sample
            yield
        for topic in self._left:
            gone = found.pop(topic, None)
            if gone is not None and gone.counted is not None:
                self.totals.uncount(gone)
        for topic, sample in found.items():
            if topic not in before:
                self.stored.discard(sample.name)
        self._end(found)

    def _end(self, found: "dict[Topic, TopicSample]") -> None:
        seconds = self._now.monotonic - self.passed_at.monotonic
        totals, rates = self.totals, self._rates
        totals.publish_rate, totals.publish_bytes = rates.publish_rate, rates.publish_bytes
        totals.deliver_rate = rates.deliver_rate
        totals.deliver_bytes = self._passing_bytes / seconds if self.passes and seconds > 0 else 0.0
        self.topics = found
        self.passes += 1
        self.passed_at = self._now
        self._pass = None

    def _has_left(self, topic: "Topic") -> None:
        """Remove the sample of a topic that left memory."""
        gone = self.topics.pop(topic, None)
        if gone is not None and gone.counted is not None:
            self.totals.uncount(gone)
        self._left.add(topic)
        self.stored.changed(str(topic.name))
