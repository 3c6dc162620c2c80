"""Values of a topic, subscription, producer or consumer at one moment, from which the metrics are taken."""

from collections.abc import Sequence
from operator import add, attrgetter
from typing import Any, Final, NamedTuple, Self

from pulsarbox.broker.dead_letter.retention_warning import drops_dead_letters
from pulsarbox.broker.limits.limiter import LimitScope
from pulsarbox.broker.stats.commit_stats import LATENCY_MS, SIZES, Latencies, spread
from pulsarbox.broker.stats.rate_window import WINDOW_SECONDS
from pulsarbox.broker.subscription.consumer import AnySubscription, Consumer
from pulsarbox.broker.subscription.non_persistent import NonPersistentSubscription
from pulsarbox.broker.subscription.subscription import ONE_ACTIVE, Subscription
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.server.metrics.exposition import rounded

THROTTLED_BY = (LimitScope.SUBSCRIPTION, LimitScope.TOPIC, LimitScope.BROKER)

new_row: Final = tuple.__new__
"""A NamedTuple's own constructor takes three times as long, and a scrape calls it several times per topic."""

NO_LATENCIES = (0,) * (len(LATENCY_MS) + 1)
NO_SIZES = (0,) * (len(SIZES) + 1)


class ConsumerRow(NamedTuple):
    """A consumer. Rates are per second."""

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
        """Return the row; as in Pulsar, exclusive and failover consumers have no unacknowledged messages."""
        messages_out, bytes_out, given_back, acknowledged, entries_out = map(rounded, consumer.rates(now)[:5])
        row = (
            messages_out, bytes_out, given_back, acknowledged, entries_out, consumer.messages_out, consumer.bytes_out,
            0 if subscription.type in ONE_ACTIVE else consumer.unacked, int(consumer.blocked), consumer.permits,
            consumer.last_flow, consumer.last_sent, consumer.last_acked,
        )  # fmt: skip
        return new_row(cls, row)


class ProducerRow(NamedTuple):
    """A producer. Rates are per second."""

    messages_in: float
    bytes_in: float

    @property
    def mean_size(self) -> float:
        """Bytes per message."""
        return rounded(self.bytes_in / self.messages_in) if self.messages_in else 0.0


class SubscriptionRow(NamedTuple):
    """A subscription. Rates are per second, times in ms since 1970, 0 for never."""

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
    dropped: int
    """Messages dropped on a non-persistent topic."""
    rate_dropped: float
    backlog: int = 0
    """In entries. This field and all that follow are only for persistent subscriptions."""
    backlog_messages: int = 0
    backlog_bytes: int = 0
    again: int = 0
    """Entries waiting for redelivery."""
    delayed: int = 0
    """Entries of the backlog that are not due."""
    blocked: int = 0
    expired: int = 0
    rate_expired: float = 0.0
    last_expired: int = 0
    mark_moved: int = 0
    throttled: Sequence[tuple[str, int, int]] = ()
    """Number of throttled dispatches, by messages and by bytes, per scope; empty without limits."""
    ranges: int = 0
    """Acknowledged ranges after the mark-delete position."""
    dead_letters: int = 0
    """Messages moved by the box since the subscription was loaded."""
    standstill: str = ""
    """Why nothing is being dispatched; empty without a backlog."""
    standstill_seconds: float = 0.0

    @classmethod
    def of(cls, subscription: AnySubscription, consumers: list[ConsumerRow], now: Now) -> Self:
        """Return the row; ``consumers`` are the rows of all its consumers."""
        gone_messages, gone_bytes = subscription.removed
        rates, (messages, size, unacked), times = _together(consumers)
        row = (len(consumers), *rates, gone_messages + messages, gone_bytes + size, unacked, *times)
        if isinstance(subscription, NonPersistentSubscription):
            row = (*row, subscription.dropped, rounded(subscription.drop_rate(now)))
        else:
            row = (*row, 0, 0.0)
        cursor = _cursor_values(subscription, now) if isinstance(subscription, Subscription) else _NO_CURSOR
        return new_row(cls, row + cursor)


def _together(consumers: list[ConsumerRow]) -> tuple[Sequence[float], Sequence[int], Sequence[int]]:
    """Sum consumers: the five rates, the counters up to ``unacked``, the three times."""
    if len(consumers) == 1:  # most subscriptions have one
        one = consumers[0]
        return one[:5], one[5:8], one[10:]
    columns = list(zip(*consumers, strict=True)) or [()] * len(ConsumerRow._fields)
    rates = [rounded(sum(column)) for column in columns[:5]]
    return rates, [sum(column) for column in columns[5:8]], [max(column, default=0) for column in columns[10:]]


_NO_CURSOR: Final = tuple(SubscriptionRow._field_defaults.values())


def _cursor_values(subscription: Subscription, now: Now) -> tuple[Any, ...]:
    """Return the fields from ``backlog`` on."""
    cursor, clearing, throttle = subscription.cursor, subscription.clearing, subscription.throttle
    backlog = cursor.backlog_entries
    throttled: Sequence[tuple[str, int, int]] = ()
    if throttle.limiters:
        messages, size = throttle.counts.messages, throttle.counts.bytes
        throttled = [(str(scope), messages[scope], size[scope]) for scope in THROTTLED_BY]
    reason, seconds = "", 0.0
    if backlog:
        why = subscription.blocked_reason()
        reason, seconds = why.reason, max(0.0, (now.wall - why.since) / 1000) if why.since else 0.0
    return (
        backlog, cursor.backlog_messages, cursor.backlog_bytes, subscription.waiting_again, subscription.delayed(now),
        int(subscription.blocked), clearing.expired, rounded(clearing.rate_expired(now)), clearing.last_expired,
        subscription.mark_moved, throttled, len(cursor.ranges),
        subscription.dead_letters.messages, reason, seconds,
    )  # fmt: skip


class TopicRow(NamedTuple):
    """A topic, or the sum of a namespace. Rates are per second; buckets count the last minute."""

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
    """Number of delayed receipts."""
    total_messages_in: int = 0
    total_bytes_in: int = 0
    storage: int = 0
    """In bytes. This field and all that follow are only for persistent topics."""
    backlog_bytes: int = 0
    quota: int = 0
    """Backlog quota in bytes, -1 for none; 0 for a non-persistent topic, as in Pulsar. Sums are meaningless."""
    quota_time: int = 0
    """Backlog quota in seconds."""
    backlog_age: int = 0
    """Age of the oldest message in seconds, -1 if there is none or it is unknown. Sums are meaningless."""
    delayed_index: int = 0
    """Bytes of the delayed index."""
    size_evictions: int = 0
    """Number of evictions by the size quota since the topic was loaded."""
    age_evictions: int = 0
    letters_lost: int = 0
    """1 for a dead-letter topic that retains none."""
    entries_in: float = 0.0
    entries_out: float = 0.0
    stored_bytes_out: float = 0.0
    """As ``bytes_out``, but 0 for a non-persistent topic."""
    latency_ms: float = 0.0
    """Sum over the entries of the last minute."""
    entry_bytes: int = 0
    """Sum over the entries of the last minute."""
    latencies: tuple[int, ...] = NO_LATENCIES
    """Entries by ``LATENCY_MS``."""
    sizes: tuple[int, ...] = NO_SIZES
    """Entries by ``SIZES``."""

    @property
    def mean_size(self) -> float:
        """Bytes per message."""
        return rounded(self.bytes_in / self.messages_in) if self.messages_in else 0.0

    @property
    def entries(self) -> int:
        """Entries stored in the last minute."""
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
        """Return the row; ``latencies`` are those of the box, whose commits all topics share."""
        gone_messages, gone_bytes = topic.gone_out
        messages_in, bytes_in = _added([each[:2] for each in producers], 2)
        consumers, messages_out, bytes_out, acknowledged, sent, size, backlog, again, delayed, entries_out = _added(
            [_summed(each) for each in subscriptions], 10
        )
        row = (
            1, len(producers), len(subscriptions), consumers, messages_in, bytes_in, messages_out, bytes_out,
            acknowledged, gone_messages + sent, gone_bytes + size, backlog, again, delayed,
            topic.limits.publish_limited,
        )  # fmt: skip
        if isinstance(topic, PersistentTopic):
            return new_row(cls, row + _stored_values(topic, bytes_in, bytes_out, entries_out, latencies, now))
        total_messages_in = topic.gone_in[0] + sum([producer.messages_in for producer in topic.producers])
        total_bytes_in = topic.gone_in[1] + sum([producer.bytes_in for producer in topic.producers])
        return new_row(cls, (*row, total_messages_in, total_bytes_in, *_NOT_STORED))

    def plus(self, other: "TopicRow") -> "TopicRow":
        """Return the sum of two rows."""
        numbers = map(add, self[:-2], other[:-2])
        buckets = (tuple(map(add, mine, theirs)) for mine, theirs in zip(self[-2:], other[-2:], strict=True))
        return TopicRow._make([*numbers, *buckets])


_summed: Final = attrgetter(
    "consumers", "messages_out", "bytes_out", "acknowledged", "total_messages_out", "total_bytes_out", "backlog",
    "again", "delayed", "entries_out",
)  # fmt: skip
"""The values that a topic sums over its subscriptions."""


def _added(rows: list[tuple[Any, ...]], width: int) -> Sequence[Any]:
    """Sum each column of rows with ``width`` columns."""
    if len(rows) == 1:
        return rows[0]
    return [rounded(sum(column)) for column in zip(*rows, strict=True)] or [0] * width


_NOT_STORED: Final = tuple(TopicRow._field_defaults.values())[3:]


def _stored_values(
    topic: PersistentTopic, bytes_in: float, bytes_out: float, entries_out: float, latencies: Latencies, now: Now
) -> tuple[Any, ...]:
    """Return the fields from ``total_messages_in`` on."""
    ledger, oldest, backlog = topic.ledger, topic.expiry.request_oldest(now), topic.backlog
    end = ledger.confirmed_bytes
    slowest = min([each.cursor.mark_bytes for each in topic.subscriptions.values()], default=end)
    entries_in = topic.traffic.entries_a_second(now)
    recent: tuple[Any, ...] = (0.0, 0, NO_LATENCIES, NO_SIZES)
    if entries_in:
        count = round(entries_in * WINDOW_SECONDS)
        sizes = spread(count, topic.traffic.size_shares(bytes_in / entries_in))
        waited, size = rounded(count * latencies.mean_ms), round(bytes_in * WINDOW_SECONDS)
        recent = (waited, size, spread(count, latencies.shares), sizes)
    return (
        ledger.confirmed_messages, end, ledger.size, ledger.bytes_behind(slowest), backlog.size.limit,
        backlog.age.limit // 1000 if backlog.age.limit > 0 else -1,
        max(now.wall - oldest.begins, 0) // 1000 if oldest is not None else -1,
        topic.stored.delays.size, backlog.evictions, topic.expiry.evictions, int(drops_dead_letters(topic)),
        rounded(entries_in), rounded(entries_out), bytes_out, *recent,
    )  # fmt: skip


class TopicMetrics(NamedTuple):
    """All rows of one topic."""

    topic: TopicRow
    producers: list[tuple[AttachedProducer, ProducerRow]]
    subscriptions: list[tuple[AnySubscription, SubscriptionRow, list[ConsumerRow]]]


def look(topic: Topic, latencies: Latencies, now: Now) -> TopicMetrics:
    """Return the current values of a topic. ``latencies`` are those of the box, whose commits all topics share."""
    producers = [(each, ProducerRow(*map(rounded, each.rates(now)[:2]))) for each in topic.producers]
    subscriptions = []
    for each in topic.all_subscriptions():
        consumers = [ConsumerRow.of(consumer, each, now) for consumer in each.consumers]
        subscriptions.append((each, SubscriptionRow.of(each, consumers, now), consumers))
    row = TopicRow.of(topic, [row for _, row in producers], [row for _, row, _ in subscriptions], latencies, now)
    return TopicMetrics(row, producers, subscriptions)
