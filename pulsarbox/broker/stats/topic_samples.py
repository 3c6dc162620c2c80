"""Samples of topics and their subscriptions, by which live views sort and display them."""

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from pulsarbox.broker.stats.current_rate import CurrentRate, Trend
from pulsarbox.broker.stats.drain_estimate import drain_time
from pulsarbox.broker.subscription.first_unacked import expiring
from pulsarbox.broker.subscription.offloaded_ledgers import LedgerRange, offloaded_bytes, ranges_of
from pulsarbox.names import OFFLOAD_SUBSCRIPTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsarbox.broker.subscription.consumer import AnySubscription
    from pulsarbox.broker.subscription.subscription import Subscription
    from pulsarbox.broker.topic.topic import Topic
    from pulsarbox.storage.cursor import ManagedCursor
    from pulsarbox.storage.ledger import ManagedLedger
    from pulsarbox.storage.recovery import StoredTopic

REFRESHED_MAX: Final = 20


class Letters(NamedTuple):
    """Contents of a dead letter topic. Times are ms since 1970, 0 for none."""

    messages: int
    first: int
    """When the oldest ledger was created; no message is older."""
    last: int
    """When the newest message was published."""
    kept: bool
    """Whether a subscription retains new messages."""
    left: int
    """Largest backlog of its subscriptions; all messages if it has none."""


class SubscriptionSample:
    """Sample of a subscription. Without ``subscription``, its topic is not in memory."""

    __slots__ = (
        "_pace", "_rests", "_trend", "backlog", "bytes_out", "cursor", "looking", "name", "oldest",
        "subscription", "topic", "unacked",
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
        """``cursor``: that of a persistent subscription, for its backlog."""
        self.topic = topic
        self.name = name
        self.subscription = subscription
        self.cursor = cursor
        self.backlog = backlog if cursor is None else cursor.backlog_messages
        """In messages, as is ``unacked``."""
        self.unacked = 0
        out, self.bytes_out = (0, 0) if subscription is None else sent(subscription)
        self.oldest: tuple[tuple[int, int], int | None] | None = None
        """Position of the oldest unacknowledged entry as last found, and when its age begins (ms since 1970; None if it
        cannot be read). See ``oldest_message_age``."""
        self.looking = False
        """Whether the oldest entry is being read."""
        self._pace = CurrentRate(at, out, self.backlog)
        self._rests = False
        """Whether nothing has changed for a while."""
        self._trend = Trend(at, self.backlog)

    def sample(self, at: float, since: float) -> int | None:
        """Sample it; return the bytes sent since the last sample, at ``since``. None if idle, which costs little."""
        subscription = self.subscription
        if subscription is None:
            return None
        out, size = subscription.removed
        unacked = 0
        for consumer in subscription.consumers:
            out += consumer.messages_out
            size += consumer.bytes_out
            unacked += consumer.unacked
        cursor = self.cursor
        backlog = 0 if cursor is None else cursor.backlog_messages
        if self._rests and backlog == self.backlog and size == self.bytes_out and unacked == self.unacked:
            return None
        self.backlog = backlog
        self.unacked = unacked
        more, self.bytes_out = size - self.bytes_out, size
        self._rests = not self._pace.sample(at, out, backlog, since if self._rests else None)
        self._trend.sample(at, backlog)
        return more

    @property
    def consumers(self) -> int:
        """Number of connected consumers."""
        return len(self.subscription.consumers) if self.subscription is not None else 0

    @property
    def out_rate(self) -> float:
        """Messages sent per second."""
        return self._pace.first

    @property
    def in_rate(self) -> float:
        """Messages published to its topic per second."""
        return self.topic.in_rate

    @property
    def change(self) -> float:
        """Growth of the backlog in messages per second; negative if it shrinks."""
        return self._pace.second

    @property
    def drain(self) -> float | None:
        """Seconds until the backlog is drained at the current rate; None if it does not shrink."""
        return drain_time(self.backlog, self._pace.second)

    @property
    def trend(self) -> list[float]:
        """Values of the backlog over the last minute or more."""
        return self._trend.values()


def sent(subscription: "AnySubscription") -> tuple[int, int]:
    """Return the messages and bytes sent to the consumers of a subscription so far."""
    totals = subscription.removed
    for consumer in subscription.consumers:
        totals = consumer.added_to(totals)
    return totals


class TopicSample:
    """Sample of a topic and its subscriptions. Without ``topic``, the topic is not in memory."""

    __slots__ = (
        "_holds", "_ledger", "_ledgers", "_looked_at", "_offloaded", "_pace", "_published", "_rests", "_trend",
        "backlog", "counted", "name", "namespace", "offloaded", "out_rate", "size", "stored_letters", "subscriptions",
        "topic", "unclaimed",
    )  # fmt: skip

    def __init__(self, name: str, namespace: str, at: float, topic: "Topic | None" = None) -> None:
        self.name = name
        self.namespace = namespace
        self.topic = topic
        self._ledger: ManagedLedger | None = getattr(topic, "ledger", None)
        self._ledgers = 0
        self.subscriptions: dict[str, SubscriptionSample] = {}
        self.stored_letters: Letters | None = None
        """Contents of a dead letter topic that is not in memory."""
        self.backlog = 0
        """Messages in the backlogs of all subscriptions."""
        self.size = 0
        """Bytes stored."""
        self.offloaded = 0
        """Bytes of them in ledgers that offloads have copied."""
        self._holds: dict[str, Subscription] = {}
        """The subscriptions that hold the topic for offloads, so that the others need not be searched for them."""
        self._offloaded: tuple[list[LedgerRange], int, int] = ([], 0, -1)
        """Ranges, number of ledgers and open ledger by which ``offloaded`` was computed."""
        self.out_rate = 0.0
        """Messages sent to all its subscriptions per second."""
        self._published = (0, 0) if topic is None else self._counters(topic)
        self._pace = CurrentRate(at, *self._published)
        self._trend = Trend(at, 0.0)
        self._rests = False
        self.unclaimed: int | None = None
        """Bytes sent as seen by samples between passes; None if those saw no change."""
        self._looked_at = at
        self.counted: tuple[int, ...] | None = None
        """The counts that are included in the totals; None before the first."""

    def _counters(self, topic: "Topic") -> tuple[int, int]:
        ledger = self._ledger
        if ledger is not None:
            return ledger.confirmed_messages, ledger.confirmed_bytes
        messages, size = topic.gone_in
        for producer in topic.producers:
            messages += producer.messages_in
            size += producer.bytes_in
        return messages, size

    def sample(self, at: float) -> int | None:
        """Sample it and its subscriptions; return the bytes sent since the last pass, None if idle."""
        more, unclaimed = self._sample(at), self.unclaimed
        self.unclaimed = None
        return more if unclaimed is None else unclaimed + (more or 0)

    def refresh(self, at: float) -> None:
        """Sample it between passes for display; topics with many subscriptions are only sampled by passes."""
        if len(self.subscriptions) <= REFRESHED_MAX:
            self._claim(self._sample(at))

    def refresh_one(self, subscription: SubscriptionSample, at: float) -> None:
        """Sample one of its subscriptions between passes for display."""
        self._claim(subscription.sample(at, self._looked_at))

    def _claim(self, more: int | None) -> None:
        """Keep the bytes seen between passes for the next pass."""
        if more is not None:
            self.unclaimed = more + (self.unclaimed or 0)

    def _sample(self, at: float) -> int | None:
        topic = self.topic
        if topic is None:
            return None
        since, self._looked_at = self._looked_at, at
        published, ledger = self._counters(topic), self._ledger
        rests = self._rests and published == self._published
        if not rests:
            self._rests = not self._pace.sample(at, *published, since if self._rests else None)
            self._trend.sample(at, self._pace.first)
        if ledger is not None and (published != self._published or len(ledger.ledgers) != self._ledgers):
            rests = False
            self._ledgers = len(ledger.ledgers)
            self.size = ledger.size
        self._published = published
        more = self._sample_subscriptions(topic, at, since)
        if ledger is not None and self._sample_offloaded(ledger):
            rests = False
        return None if rests and more is None else more or 0

    def _sample_offloaded(self, ledger: "ManagedLedger") -> bool:
        """Update ``offloaded``; return whether it has changed. The ledgers are summed up only if they have changed."""
        ranges = ranges_of(self._holds.values())
        known, before = (ranges, len(ledger.ledgers), ledger.current.ledger_id), self.offloaded
        if known != self._offloaded:
            self._offloaded, self.offloaded = known, offloaded_bytes(ledger, ranges)
        return self.offloaded != before

    def _sample_subscriptions(self, topic: "Topic", at: float, since: float) -> int | None:
        mine = self.subscriptions
        there: Mapping[str, AnySubscription] = topic.subscriptions  # type: ignore[attr-defined]  # of both kinds
        more: int | None = None
        if len(mine) != len(there):
            for name in [name for name in mine if name not in there]:
                del mine[name]
                self._holds.pop(name, None)
            more = 0
        for name, subscription in there.items():
            sample = mine.get(name)
            if sample is None or sample.subscription is not subscription:
                cursor = getattr(subscription, "cursor", None)
                sample = SubscriptionSample(self, name, at, subscription=subscription, cursor=cursor)
                mine[name] = sample
                if cursor is not None and name.startswith(OFFLOAD_SUBSCRIPTION):
                    self._holds[name] = cast("Subscription", subscription)
            size = sample.sample(at, since)
            if size is not None:
                more = size if more is None else more + size
        if more is not None:
            self.backlog = sum([each.backlog for each in mine.values()])
            self.out_rate = sum([each.out_rate for each in mine.values()])
        return more

    def counts(self) -> tuple[int, ...]:
        """Return its counts for the totals, in the order of ``topic_totals.COUNTS``."""
        letters = self.letters
        mine = self.subscriptions.values()
        return (
            1, len(mine), self.backlog, sum([each.unacked for each in mine]), self.size,
            letters.left if letters is not None else 0, self.offloaded,
        )  # fmt: skip

    @property
    def producers(self) -> int:
        """Number of connected producers."""
        return len(self.topic.producers) if self.topic is not None else 0

    @property
    def consumers(self) -> int:
        """Number of connected consumers of all its subscriptions."""
        topic = self.topic
        return 0 if topic is None else sum([len(each.consumers) for each in topic.all_subscriptions()])

    @property
    def letters(self) -> Letters | None:
        """Its contents if it is a dead letter topic, else None."""
        topic = self.topic
        if topic is None:
            return self.stored_letters
        stored = getattr(topic, "stored", None)
        return letters_of(stored) if stored is not None and topic.for_dead_letters else None  # type: ignore[attr-defined]

    @property
    def in_rate(self) -> float:
        """Messages published per second."""
        return self._pace.first

    @property
    def bytes_in_rate(self) -> float:
        """Bytes published per second."""
        return self._pace.second

    @property
    def trend(self) -> list[float]:
        """Values of the publish rate (messages per second) over the last minute or more."""
        return self._trend.values()


def letters_of(stored: "StoredTopic") -> Letters:
    """Return the contents of a dead letter topic."""
    ledger = stored.ledger
    first = next(iter(ledger.ledgers.values()), None)
    messages = stored.visible_messages()
    backlogs = [cursor.backlog_messages for cursor in expiring(stored)]
    left = max(backlogs, default=messages)
    return Letters(messages, first.created if messages and first else 0, ledger.last_publish_time, bool(backlogs), left)
