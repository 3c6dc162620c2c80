"""What topics and subscriptions do right now: looked at from time to time, so that live views can order all of them.

Nobody on the way of a message knows of it. A pass looks at every topic in memory, some in a turn; how often depends on
how many there are and on whether anybody is watching, so that its share of a core is bounded. Rows that somebody sees
are looked at once more when they are made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.pace import Pace, Trend
from pulsarbox.clock import Now

if TYPE_CHECKING:
    from pulsarbox.broker.any_subscription import AnySubscription
    from pulsarbox.broker.topic import Topic
    from pulsarbox.storage.cursor import ManagedCursor
    from pulsarbox.storage.ledger import ManagedLedger

WATCHED_A_SECOND: Final = 2500
"""Things that are looked at a second while somebody is watching, at most; a thing is a topic or a subscription."""
UNWATCHED_A_SECOND: Final = 1000
WATCHED_SECONDS: Final = 15.0
"""How long after a request somebody counts as watching."""
PERIOD_SECONDS: Final = 1.0
"""How often a pass begins at most."""
MANY_YEARS: Final = 3e9
"""Seconds; a backlog that takes longer will not be gone."""


class SubscriptionSample:
    """One subscription, as it was seen last. Without ``subscription``: of a topic that is not in memory."""

    __slots__ = (
        "_pace", "_trend", "backlog", "bytes_out", "cursor", "name", "oldest", "oldest_at", "subscription", "topic",
        "unacked",
    )  # fmt: skip

    def __init__(
        self,
        topic: "TopicSample",
        name: str,
        at: float,
        *,
        backlog: int = 0,
        subscription: "AnySubscription | None" = None,
        cursor: "ManagedCursor | None" = None,
    ) -> None:
        """``cursor``: of a stored one, what its backlog is known by."""
        self.topic = topic
        self.name = name
        self.subscription = subscription
        self.cursor = cursor
        self.backlog = backlog if cursor is None else cursor.backlog_messages
        """Messages, as ``unacked``."""
        self.unacked = 0
        out, self.bytes_out = (0, 0) if subscription is None else sent(subscription)
        self.oldest: tuple[tuple[int, int], int] | None = None
        """The place of its oldest unacknowledged entry and when that was published (ms since 1970), as far as known."""
        self.oldest_at = -1.0
        """When it was asked for last."""
        self._pace = Pace(at, out, self.backlog)
        self._trend = Trend(at, self.backlog)

    def look(self, at: float) -> int:
        """See what it does now; the bytes that it was sent since the last look."""
        subscription = self.subscription
        if subscription is None:
            return 0
        out, size = subscription.gone
        unacked = 0
        for consumer in subscription.consumers:
            out += consumer.messages_out
            size += consumer.bytes_out
            unacked += consumer.unacked
        backlog = 0 if self.cursor is None else self.cursor.backlog_messages
        self.backlog = backlog
        self.unacked = unacked
        more, self.bytes_out = size - self.bytes_out, size
        self._pace.look(at, out, backlog)
        self._trend.look(at, backlog)
        return more

    @property
    def out_rate(self) -> float:
        """Messages that were sent, a second."""
        return self._pace.first

    @property
    def in_rate(self) -> float:
        """Messages that were published to its topic, a second."""
        return self.topic.in_rate

    @property
    def change(self) -> float:
        """What the backlog grows by, in messages a second; negative where it falls."""
        return self._pace.second

    @property
    def drain(self) -> float | None:
        """Seconds until the backlog is gone, as it falls now; None where it does not."""
        return seconds_to_drain(self.backlog, self._pace.second)

    @property
    def trend(self) -> list[float]:
        """The backlog of the last minute or more."""
        return self._trend.values()

    def leave(self) -> None:
        """Its topic leaves the memory: it is what it was."""
        self.subscription = self.cursor = None
        self.unacked = 0
        self._pace = Pace(0.0, 0, 0)


def seconds_to_drain(backlog: int, change: float) -> float | None:
    """How long a backlog takes that grows by ``change`` a second; None for ever, 0 where there is none."""
    if not backlog:
        return 0.0
    if change >= 0 or backlog / -change > MANY_YEARS:
        return None
    return backlog / -change


def sent(subscription: "AnySubscription") -> tuple[int, int]:
    """Messages and bytes that a subscription was sent so far."""
    totals = subscription.gone
    for consumer in subscription.consumers:
        totals = consumer.added_to(totals)
    return totals


class TopicSample:
    """One topic, as it was seen last. Without ``topic``: one that is not in memory."""

    __slots__ = (
        "_ledger", "_ledgers", "_pace", "_published", "_trend", "backlog", "name", "namespace", "out_rate", "producers",
        "size", "subscriptions", "topic",
    )  # fmt: skip

    def __init__(self, name: str, namespace: str, at: float, topic: "Topic | None" = None) -> None:
        self.name = name
        self.namespace = namespace
        self.topic = topic
        self._ledger: ManagedLedger | None = getattr(topic, "ledger", None)
        self._ledgers = 0
        self.subscriptions: dict[str, SubscriptionSample] = {}
        self.backlog = 0
        """Messages, of all subscriptions."""
        self.size = 0
        """Bytes that are stored."""
        self.producers = 0
        self.out_rate = 0.0
        """Messages that all its subscriptions were sent, a second."""
        self._published = (0, 0) if topic is None else self._counters(topic)
        self._pace = Pace(at, *self._published)
        self._trend = Trend(at, 0.0)

    def _counters(self, topic: "Topic") -> tuple[int, int]:
        ledger = self._ledger
        if ledger is not None:
            return ledger.confirmed_messages, ledger.confirmed_bytes
        messages, size = topic.gone_in
        for producer in topic.producers:
            messages += producer.messages_in
            size += producer.bytes_in
        return messages, size

    def look(self, at: float) -> int:
        """See what it does now, and its subscriptions; the bytes that these were sent since the last look."""
        topic = self.topic
        if topic is None:
            return 0
        published = self._counters(topic)
        pace = self._pace
        pace.look(at, *published)
        self._trend.look(at, pace.first)
        ledger = self._ledger
        if ledger is not None and (published != self._published or len(ledger.ledgers) != self._ledgers):
            self._ledgers = len(ledger.ledgers)
            self.size = ledger.size
        self._published = published
        self.producers = len(topic.producers)
        return self._look_at_subscriptions(topic, at)

    def _look_at_subscriptions(self, topic: "Topic", at: float) -> int:
        mine = self.subscriptions
        backlog = more = count = 0
        out = 0.0
        for subscription in topic.all_subscriptions():
            count += 1
            sample = mine.get(subscription.name)
            if sample is None or sample.subscription is not subscription:
                cursor = getattr(subscription, "cursor", None)
                sample = SubscriptionSample(self, subscription.name, at, subscription=subscription, cursor=cursor)
                mine[subscription.name] = sample
            more += sample.look(at)
            backlog += sample.backlog
            out += sample.out_rate
        if count != len(mine):
            there = {each.name for each in topic.all_subscriptions()}
            for name in [name for name in mine if name not in there]:
                del mine[name]
        self.backlog = backlog
        self.out_rate = out
        return more

    @property
    def in_rate(self) -> float:
        """Messages that were published, a second."""
        return self._pace.first

    @property
    def bytes_in_rate(self) -> float:
        """Bytes that were published, a second."""
        return self._pace.second

    @property
    def trend(self) -> list[float]:
        """Messages published a second, of the last minute or more."""
        return self._trend.values()

    def leave(self) -> None:
        """It leaves the memory: from now on it is what it was."""
        self.topic = self._ledger = None
        self.producers = 0
        self.out_rate = 0.0
        self._pace = Pace(0.0, 0, 0)
        for each in self.subscriptions.values():
            each.leave()


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
    """All topics in memory, as they were seen last."""

    def __init__(self, topics: "Iterable[Topic]") -> None:
        self._all = topics
        self.topics: dict[Topic, TopicSample] = {}
        self.totals = Totals()
        """As of the last whole pass."""
        self.passes = 0
        """How many there were."""
        self.passed_at = Now(0.0, 0)
        """When the last one ended."""
        self.left: list[TopicSample] = []
        """Those that were found to have gone, since somebody looked: unloaded, or deleted."""
        self._pass: Iterator[None] | None = None
        self._watched_at = -WATCHED_SECONDS
        self._passing = Totals()
        self._passing_bytes = 0
        self._now = self.passed_at

    def watch(self, now: Now) -> None:
        """Somebody is watching."""
        self._watched_at = now.monotonic

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
        self.left += [sample for topic, sample in before.items() if topic not in found]
        self._end(found)

    def _end(self, found: "dict[Topic, TopicSample]") -> None:
        seconds = self._now.monotonic - self.passed_at.monotonic
        if self.passes and seconds > 0:
            self._passing.deliver_bytes = self._passing_bytes / seconds
        self.topics, self.totals = found, self._passing
        self.passes += 1
        self.passed_at = self._now
        self._pass = None
