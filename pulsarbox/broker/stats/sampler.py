"""What topics and subscriptions do right now: looked at from time to time, so that live views can order all of them.

Nobody on the way of a message knows of it. A pass looks at every topic in memory, some in a turn; how often depends on
how many there are and on whether anybody is watching, so that its share of a core is bounded. Rows that somebody sees
are looked at once more when they are made.
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
"""Things that are looked at a second while somebody is watching, at most; a thing is a topic or a subscription."""
UNWATCHED_A_SECOND: Final = 1000
WATCHED_SECONDS: Final = 15.0
"""How long after a request somebody counts as watching."""
PERIOD_SECONDS: Final = 1.0
"""How often a pass begins at most."""
FEW: Final = 250
"""Where there are no more things, 2 ms of a processor, an answer goes by a pass of its own: what was made just now is
in it."""
FRESH_SECONDS: Final = 0.25
"""Unless the last one was so short a while ago."""


class Samples:
    """All topics, as they were seen last."""

    def __init__(self, topics: "Topics", store: "Store", times: "CommitTimes") -> None:
        self._all = topics
        self.stored = StoredSamples(topics, store)
        """Those that are not in memory."""
        self.topics: dict[Topic, TopicSample] = {}
        """Those that are."""
        self.totals = Totals()
        """Of topics in memory; rates as of the last whole pass."""
        self.passes = 0
        """How many there were."""
        self.passed_at = Now(0.0, 0)
        """When the last one ended."""
        self._left: set[Topic] = set()
        """Those that have gone since the pass began."""
        self._pass: Iterator[None] | None = None
        self._watched_at = -WATCHED_SECONDS
        self._asked = False
        """Whether an answer is to be made for which there was no pass yet."""
        self._rates = Totals()
        """Of the pass that is under way."""
        self._passing_bytes = 0
        self._now = self.passed_at
        self.series = Series(("publishRate", "deliverRate", "backlog", "p99"))
        self.scopes = Scopes()
        self._waits = Waits()
        self._times = times
        topics.left = self._has_left

    def every(self) -> Iterator[TopicSample]:
        """All topics that are known, those that are not in memory too."""
        yield from list(self.topics.values())
        yield from list(self.stored.topics.values())

    def tick(self, now: Now) -> None:
        """A second has passed: keep what graphs are drawn of. ``step`` is to be called behind it."""
        totals = self.totals
        p99 = self._waits.quantile(self._times.by_entry, 0.99)
        self.stored.keep(now)
        backlog = float(totals.backlog + self.stored.totals.backlog) if self.stored.found else nan
        self.series.add(totals.publish_rate, totals.deliver_rate, backlog, p99)
        self.scopes.tick(now)

    def watch(self, now: Now) -> None:
        """Somebody is watching, and asks."""
        self._watched_at = now.monotonic
        self._asked = True
        self.stored.begin(now)

    def watched(self, now: Now) -> bool:
        """Whether somebody is."""
        return now.monotonic - self._watched_at < WATCHED_SECONDS

    def period(self, now: Now) -> float:
        """How often everything is looked at, in seconds."""
        things = len(self.topics) + self.totals.subscriptions
        return max(PERIOD_SECONDS, things / (WATCHED_A_SECOND if self.watched(now) else UNWATCHED_A_SECOND))

    def due(self, now: Now) -> bool:
        """Whether there is something to be looked at now."""
        if self._pass is not None or not self.passes:
            return True
        is_few = self._asked and len(self.topics) + self.totals.subscriptions <= FEW
        return now.monotonic - self.passed_at.monotonic >= (FRESH_SECONDS if is_few else self.period(now))

    def step(self, now: Now, at_once: int) -> bool:
        """Look at some topics, if it is time to; whether that is all for now."""
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
            more = sample.look(self._now.monotonic)
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
                self.stored.came(sample.name)
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
        """A topic is not in memory any more."""
        gone = self.topics.pop(topic, None)
        if gone is not None and gone.counted is not None:
            self.totals.uncount(gone)
        self._left.add(topic)
        self.stored.changed(str(topic.name))
