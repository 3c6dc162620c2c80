"""The live view of topics: publish and dispatch rates, backlog and storage."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.stats.topic_samples import TopicSample
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.server.live.view import LiveView, ViewColumn, ViewScope, kept


def oldest(sample: TopicSample, now: Now) -> float | None:
    """Return the age of the oldest message in the backlog in seconds; None without one, or until it is read."""
    topic = sample.topic
    if not isinstance(topic, PersistentTopic):
        return None
    found = topic.expiry.request_oldest(now)
    return None if found is None else max(now.wall - found.begins, 0) / 1000


def quota(sample: TopicSample, now: Now) -> float | None:
    """Return the used share of the backlog quota, of size or age, whichever is greater; None without one."""
    topic = sample.topic
    if not isinstance(topic, PersistentTopic):
        return None
    backlog, shares = topic.backlog, []
    if backlog.size.limit > 0:
        shares.append(backlog.used / backlog.size.limit)
    if backlog.age.limit > 0:
        age = oldest(sample, now)
        shares.append(0.0 if age is None else age * 1000 / backlog.age.limit)
    return max(shares, default=None)


def things(broker: Broker, scope: ViewScope, now: Now) -> Iterator[TopicSample | None]:
    """Return all topics in scope."""
    return (topic if scope.holds(topic.namespace) else None for topic in broker.samples.every())


COLUMNS: Final = {
    "topic": kept(attrgetter("name")),
    "publishRate": kept(attrgetter("in_rate")),
    "deliverRate": kept(attrgetter("out_rate")),
    "publishBytes": kept(attrgetter("bytes_in_rate")),
    "backlog": kept(attrgetter("backlog")),
    "size": kept(attrgetter("size")),
    "producers": kept(attrgetter("producers")),
    "consumers": kept(attrgetter("consumers")),
    "subscriptions": kept(lambda sample: len(sample.subscriptions)),
    "oldest": ViewColumn(oldest),
    "trend": ViewColumn(lambda sample, now: sample.trend),
    "quota": ViewColumn(quota),
    "loaded": kept(lambda sample: sample.topic is not None),
}

TOPICS: Final = LiveView(
    "topics",
    COLUMNS,
    things,
    sort="publishRate",
    searched=lambda sample: (sample.name,),
    refresh=lambda sample, now: sample.refresh(now.monotonic),
)
