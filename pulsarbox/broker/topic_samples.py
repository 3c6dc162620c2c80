"""One topic and its subscriptions, as they were seen last: what live views order and show them by."""

from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.broker.pace import Pace, Trend

if TYPE_CHECKING:
    from pulsarbox.broker.any_subscription import AnySubscription
    from pulsarbox.broker.topic import Topic
    from pulsarbox.storage.cursor import ManagedCursor
    from pulsarbox.storage.ledger import ManagedLedger

MANY_YEARS: Final = 3e9
"""Seconds; a backlog that takes longer will not be gone."""


class Letters(NamedTuple):
    """What a topic for dead letters holds. Times are ms since 1970, 0 for none."""

    messages: int
    first: int
    """When the oldest ledger that is kept was begun: no message is older."""
    last: int
    """When the newest message was published."""
    kept: bool
    """Whether a subscription keeps what comes."""


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
        "_ledger", "_ledgers", "_pace", "_published", "_trend", "backlog", "letters", "name", "namespace", "out_rate",
        "producers", "size", "subscriptions", "topic",
    )  # fmt: skip

    def __init__(self, name: str, namespace: str, at: float, topic: "Topic | None" = None) -> None:
        self.name = name
        self.namespace = namespace
        self.topic = topic
        self._ledger: ManagedLedger | None = getattr(topic, "ledger", None)
        self._ledgers = 0
        self.subscriptions: dict[str, SubscriptionSample] = {}
        self.letters: Letters | None = None
        """Of one that is not in memory and is for dead letters."""
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
