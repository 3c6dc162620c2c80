"""What topics and subscriptions do right now: looked at from time to time, so that live views can order all of them.

Nobody on the way of a message knows of it. A pass looks at every topic in memory, some in a turn; how often depends on
how many there are and on whether anybody is watching, so that its share of a core is bounded. Rows that somebody sees
are looked at once more when they are made.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.stored_samples import StoredSamples
from pulsarbox.broker.topic_samples import TopicSample
from pulsarbox.clock import Now

if TYPE_CHECKING:
    from pulsarbox.broker.topic import Topic
    from pulsarbox.broker.topics import Topics
    from pulsarbox.storage.recovery import Store

WATCHED_A_SECOND: Final = 2500
"""Things that are looked at a second while somebody is watching, at most; a thing is a topic or a subscription."""
UNWATCHED_A_SECOND: Final = 1000
WATCHED_SECONDS: Final = 15.0
"""How long after a request somebody counts as watching."""
PERIOD_SECONDS: Final = 1.0
"""How often a pass begins at most."""


@dataclass(slots=True)
class Totals:
    """Of many topics together. Rates are a second."""

    topics: int = 0
    subscriptions: int = 0
    producers: int = 0
    consumers: int = 0
    backlog: int = 0
    unacked: int = 0
    size: int = 0
    publish_rate: float = 0.0
    publish_bytes: float = 0.0
    deliver_rate: float = 0.0
    deliver_bytes: float = 0.0

    def add(self, topic: TopicSample) -> None:
        """One topic more."""
        self.topics += 1
        self.subscriptions += len(topic.subscriptions)
        self.producers += topic.producers
        self.backlog += topic.backlog
        self.size += topic.size
        self.publish_rate += topic.in_rate
        self.publish_bytes += topic.bytes_in_rate
        self.deliver_rate += topic.out_rate
        for each in topic.subscriptions.values():
            self.unacked += each.unacked
            if each.subscription is not None:
                self.consumers += len(each.subscription.consumers)


class Samples:
    """All topics, as they were seen last."""

    def __init__(self, topics: "Topics", store: "Store") -> None:
        self._all = topics
        self.stored = StoredSamples(topics, store)
        """Those that are not in memory."""
        self.topics: dict[Topic, TopicSample] = {}
        """Those that are."""
        self.totals = Totals()
        """As of the last whole pass."""
        self.passes = 0
        """How many there were."""
        self.passed_at = Now(0.0, 0)
        """When the last one ended."""
        self._left: set[Topic] = set()
        """Those that have gone since the pass began."""
        self._pass: Iterator[None] | None = None
        self._watched_at = -WATCHED_SECONDS
        self._passing = Totals()
        self._passing_bytes = 0
        self._now = self.passed_at
        topics.left = self._has_left

    def every(self) -> Iterator[TopicSample]:
        """All topics that are known, those that are not in memory too."""
        yield from list(self.topics.values())
        yield from list(self.stored.topics.values())

    def watch(self, now: Now) -> None:
        """Somebody is watching."""
        self._watched_at = now.monotonic
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
        return now.monotonic - self.passed_at.monotonic >= self.period(now)

    def step(self, now: Now, at_once: int) -> bool:
        """Look at some topics, if it is time to; whether that is all for now."""
        if self._pass is None:
            if not self.due(now):
                return True
            self._pass = self._looks(list(self._all))
            self._passing = Totals()
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
            self._passing_bytes += sample.look(self._now.monotonic)
            self._passing.add(sample)
            found[topic] = sample
            yield
        for topic in self._left:
            found.pop(topic, None)
        for topic, sample in found.items():
            if topic not in before:
                self.stored.came(sample.name)
        self._end(found)

    def _end(self, found: "dict[Topic, TopicSample]") -> None:
        seconds = self._now.monotonic - self.passed_at.monotonic
        if self.passes and seconds > 0:
            self._passing.deliver_bytes = self._passing_bytes / seconds
        self.topics, self.totals = found, self._passing
        self.passes += 1
        self.passed_at = self._now
        self._pass = None

    def _has_left(self, topic: "Topic") -> None:
        """A topic is not in memory any more."""
        self.topics.pop(topic, None)
        self._left.add(topic)
        self.stored.changed(str(topic.name))
