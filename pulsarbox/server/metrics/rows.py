"""The values of a topic, subscription, producer or consumer at one moment: what the table's metrics are taken from."""

from collections.abc import Sequence
from operator import add
from typing import NamedTuple, Self

from pulsarbox.broker.any_subscription import AnySubscription
from pulsarbox.broker.commit_times import LATENCY_MS, SIZES, Latencies, spread
from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.limits.limiter import Scope
from pulsarbox.broker.meter import WINDOW_SECONDS
from pulsarbox.broker.producer import Producer
from pulsarbox.broker.subscription import ONE_ACTIVE, Subscription
from pulsarbox.broker.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.server.metrics.exposition import rounded

THROTTLED_BY = (Scope.SUBSCRIPTION, Scope.TOPIC, Scope.BROKER)

NO_LATENCIES = (0,) * (len(LATENCY_MS) + 1)
NO_SIZES = (0,) * (len(SIZES) + 1)


class ConsumerRow(NamedTuple):
    """A consumer. Rates are a second."""

    messages_out: float
    bytes_out: float
    given_back: float
    acknowledged: float
    entries_out: float
    total_messages_out: int
    total_bytes_out: int
    unacked: int
    blocked: int
    permits: int
    last_flow: int
    last_sent: int
    last_acked: int

    @classmethod
    def of(cls, consumer: Consumer, subscription: AnySubscription, now: Now) -> Self:
        """As Pulsar, nothing counts as unacknowledged where one consumer gets everything."""
        rates = consumer.rates(now)
        return cls(
            messages_out=rounded(rates.messages_out),
            bytes_out=rounded(rates.bytes_out),
            given_back=rounded(rates.given_back),
            acknowledged=rounded(rates.acknowledged),
            entries_out=rounded(rates.entries_out),
            total_messages_out=consumer.messages_out,
            total_bytes_out=consumer.bytes_out,
            unacked=0 if subscription.type in ONE_ACTIVE else consumer.unacked,
            blocked=int(consumer.blocked),
            permits=consumer.permits,
            last_flow=consumer.last_flow,
            last_sent=consumer.last_sent,
            last_acked=consumer.last_acked,
        )


class ProducerRow(NamedTuple):
    """A producer. Rates are a second."""

    messages_in: float
    bytes_in: float

    @property
    def mean_size(self) -> float:
        """Bytes of a message."""
        return rounded(self.bytes_in / self.messages_in) if self.messages_in else 0.0


class SubscriptionRow(NamedTuple):
    """A subscription. Rates are a second, times ms since 1970, 0 for never."""

    consumers: int
    messages_out: float
    bytes_out: float
    given_back: float
    acknowledged: float
    entries_out: float
    total_messages_out: int
    total_bytes_out: int
    unacked: int
    last_flow: int
    last_sent: int
    last_acked: int
    backlog: int = 0
    """Entries; of one that is stored, as all that follows."""
    backlog_messages: int = 0
    backlog_bytes: int = 0
    again: int = 0
    """Entries that wait to be sent again."""
    delayed: int = 0
    """Entries of the backlog that are not due."""
    blocked: int = 0
    expired: int = 0
    rate_expired: float = 0.0
    last_expired: int = 0
    mark_moved: int = 0
    throttled: Sequence[tuple[str, int, int]] = ()
    """How often a limit cut what would have been sent, in messages and in bytes, by whose limit; where there is one."""
    ranges: int = 0
    """Acknowledged stretches behind the mark-delete."""
    standstill: str = ""
    """Why nothing is being sent; empty where nothing is left to send."""
    standstill_seconds: float = 0.0

    @classmethod
    def of(cls, subscription: AnySubscription, consumers: list[ConsumerRow], now: Now) -> Self:
        """``consumers``: the rows of all that it has."""
        gone_messages, gone_bytes = subscription.gone
        row = cls(
            consumers=len(consumers),
            messages_out=rounded(sum([each.messages_out for each in consumers])),
            bytes_out=rounded(sum([each.bytes_out for each in consumers])),
            given_back=rounded(sum([each.given_back for each in consumers])),
            acknowledged=rounded(sum([each.acknowledged for each in consumers])),
            entries_out=rounded(sum([each.entries_out for each in consumers])),
            total_messages_out=gone_messages + sum([each.total_messages_out for each in consumers]),
            total_bytes_out=gone_bytes + sum([each.total_bytes_out for each in consumers]),
            unacked=sum([each.unacked for each in consumers]),
            last_flow=max([each.last_flow for each in consumers], default=0),
            last_sent=max([each.last_sent for each in consumers], default=0),
            last_acked=max([each.last_acked for each in consumers], default=0),
        )
        return row._with_cursor(subscription, now) if isinstance(subscription, Subscription) else row

    def _with_cursor(self, subscription: Subscription, now: Now) -> Self:
        cursor, clearing = subscription.cursor, subscription.clearing
        row = self._replace(
            backlog=cursor.backlog_entries,
            backlog_messages=cursor.backlog_messages,
            backlog_bytes=cursor.backlog_bytes,
            again=subscription.waiting_again,
            delayed=subscription.delayed(now),
            blocked=int(subscription.blocked),
            expired=clearing.expired,
            rate_expired=rounded(clearing.rate_expired(now)),
            last_expired=clearing.last_expired,
            mark_moved=subscription.mark_moved,
            ranges=len(cursor.ranges),
        )
        throttle = subscription.throttle
        if throttle.limiters:
            messages, size = throttle.counts.messages, throttle.counts.bytes
            row = row._replace(
                throttled=[(str(scope), messages[scope], size[scope]) for scope in THROTTLED_BY],
            )
        if not row.backlog:
            return row
        why = subscription.why()
        seconds = max(0.0, (now.wall - why.since) / 1000) if why.since else 0.0
        return row._replace(standstill=why.reason, standstill_seconds=seconds)


class TopicRow(NamedTuple):
    """A topic, or all of a namespace. Rates are a second; what is counted by buckets is of the last minute."""

    topics: int
    producers: int
    subscriptions: int
    consumers: int
    messages_in: float
    bytes_in: float
    messages_out: float
    bytes_out: float
    acknowledged: float
    total_messages_out: int
    total_bytes_out: int
    backlog: int
    again: int
    delayed: int
    publish_limited: int = 0
    """How many receipts had to wait."""
    total_messages_in: int = 0
    total_bytes_in: int = 0
    storage: int = 0
    """Bytes; of what is stored, as all that follows."""
    backlog_bytes: int = 0
    quota: int = 0
    """The backlog's limit in bytes, -1 for none; 0 of a topic that stores nothing, as Pulsar. No sum means anything."""
    quota_time: int = 0
    """The same in seconds."""
    backlog_age: int = 0
    """Seconds of its oldest message, -1 where there is none or it is not known. No sum means anything."""
    delayed_index: int = 0
    """Bytes of the table of delays."""
    size_evictions: int = 0
    """Times that a backlog was cut because it was too large, since the topic came into memory."""
    age_evictions: int = 0
    entries_in: float = 0.0
    entries_out: float = 0.0
    stored_bytes_out: float = 0.0
    """As ``bytes_out``, but 0 of a topic that stores nothing."""
    latency_ms: float = 0.0
    """Sum over the entries of the last minute."""
    entry_bytes: int = 0
    """The same."""
    latencies: tuple[int, ...] = NO_LATENCIES
    """Entries by ``LATENCY_MS``."""
    sizes: tuple[int, ...] = NO_SIZES
    """Entries by ``SIZES``."""

    @property
    def mean_size(self) -> float:
        """Bytes of a message."""
        return rounded(self.bytes_in / self.messages_in) if self.messages_in else 0.0

    @property
    def entries(self) -> int:
        """Stored in the last minute."""
        return sum(self.latencies)

    @classmethod
    def of(
        cls,
        topic: Topic,
        producers: list[ProducerRow],
        subscriptions: list[SubscriptionRow],
        latencies: Latencies,
        now: Now,
    ) -> Self:
        """``latencies``: those of the box, whose commits all topics share."""
        messages_in = rounded(sum([each.messages_in for each in producers]))
        bytes_in = rounded(sum([each.bytes_in for each in producers]))
        gone_messages, gone_bytes = topic.gone_out
        row = cls(
            topics=1,
            producers=len(producers),
            subscriptions=len(subscriptions),
            consumers=sum([each.consumers for each in subscriptions]),
            messages_in=messages_in,
            bytes_in=bytes_in,
            messages_out=rounded(sum([each.messages_out for each in subscriptions])),
            bytes_out=rounded(sum([each.bytes_out for each in subscriptions])),
            acknowledged=rounded(sum([each.acknowledged for each in subscriptions])),
            total_messages_out=gone_messages + sum([each.total_messages_out for each in subscriptions]),
            total_bytes_out=gone_bytes + sum([each.total_bytes_out for each in subscriptions]),
            backlog=sum([each.backlog for each in subscriptions]),
            again=sum([each.again for each in subscriptions]),
            delayed=sum([each.delayed for each in subscriptions]),
            publish_limited=topic.limits.publish_limited,
        )
        if isinstance(topic, PersistentTopic):
            return row._stored(topic, sum([each.entries_out for each in subscriptions]), latencies, now)
        return row._replace(
            total_messages_in=topic.gone_in[0] + sum([producer.messages_in for producer in topic.producers]),
            total_bytes_in=topic.gone_in[1] + sum([producer.bytes_in for producer in topic.producers]),
        )

    def _stored(self, topic: PersistentTopic, entries_out: float, latencies: Latencies, now: Now) -> Self:
        ledger, oldest = topic.ledger, topic.expiry.tell_oldest(now)
        slowest = min([s.cursor.mark_bytes for s in topic.subscriptions.values()], default=ledger.confirmed_bytes)
        row = self._replace(
            total_messages_in=ledger.confirmed_messages,
            total_bytes_in=ledger.confirmed_bytes,
            storage=ledger.size,
            backlog_bytes=ledger.bytes_behind(slowest),
            quota=topic.backlog.size.limit,
            quota_time=topic.backlog.age.limit // 1000 if topic.backlog.age.limit > 0 else -1,
            backlog_age=max(now.wall - oldest.begins, 0) // 1000 if oldest is not None else -1,
            delayed_index=topic.stored.delays.size,
            size_evictions=topic.backlog.evictions,
            age_evictions=topic.expiry.evictions,
            entries_out=rounded(entries_out),
            stored_bytes_out=self.bytes_out,
        )
        entries_in = topic.traffic.entries_a_second(now)
        if not entries_in:
            return row
        count = round(entries_in * WINDOW_SECONDS)
        return row._replace(
            entries_in=rounded(entries_in),
            latency_ms=rounded(count * latencies.mean_ms),
            entry_bytes=round(self.bytes_in * WINDOW_SECONDS),
            latencies=spread(count, latencies.shares),
            sizes=spread(count, topic.traffic.size_shares(self.bytes_in / entries_in)),
        )

    def plus(self, other: "TopicRow") -> "TopicRow":
        """Both together."""
        numbers = map(add, self[:-2], other[:-2])
        buckets = (tuple(map(add, mine, theirs)) for mine, theirs in zip(self[-2:], other[-2:], strict=True))
        return TopicRow._make([*numbers, *buckets])


class Look(NamedTuple):
    """All rows of one topic."""

    topic: TopicRow
    producers: list[tuple[Producer, ProducerRow]]
    subscriptions: list[tuple[AnySubscription, SubscriptionRow, list[ConsumerRow]]]


def look(topic: Topic, latencies: Latencies, now: Now) -> Look:
    """The values that a topic has now. ``latencies``: those of the box, whose commits all topics share."""
    producers = [(each, ProducerRow(*map(rounded, each.rates(now)))) for each in topic.producers]
    subscriptions = []
    for each in topic.all_subscriptions():
        consumers = [ConsumerRow.of(consumer, each, now) for consumer in each.consumers]
        subscriptions.append((each, SubscriptionRow.of(each, consumers, now), consumers))
    row = TopicRow.of(topic, [row for _, row in producers], [row for _, row, _ in subscriptions], latencies, now)
    return Look(row, producers, subscriptions)
