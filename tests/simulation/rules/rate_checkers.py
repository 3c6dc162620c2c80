"""The rules of rates: dispatched messages, and receipts of published ones, over any period."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any

from pulsarbox.broker.limits.limiter import time_of
from pulsarbox.broker.policies.kinds.dispatch_rate import DISPATCH_RATE, SUBSCRIPTION_DISPATCH_RATE
from pulsarbox.broker.policies.kinds.publish_rate import PUBLISH_RATE
from pulsarbox.broker.policies.kinds.resource_group import RESOURCE_GROUP
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.storage.record import Position
from tests.simulation.box import BoxEnd
from tests.simulation.model.model import Model
from tests.simulation.model.views import KEY_SHARED, NOWHERE, ConsumerView, EntryView, Pending, ProducerView, TopicView
from tests.simulation.rules.checker import Checker

MOST_A_BATCH = 20
"""Messages: no batch of the workload has more."""


OnTop = Sequence[tuple[float, int]]
"""Bursts on top of a limit, oldest first: time (seconds) and amount."""
REMEMBERED = 100.0
"""Seconds for which bursts are remembered: longer than two periods and than most clock changes."""


class Bucket:
    """Amount that has passed, less the limit for the elapsed time.

    The periods of a limiter that refills in steps may begin at any instant. Before its last item, it passes less than
    the limit of two periods and of the elapsed time.
    """

    def __init__(self, at: float) -> None:
        self.level = 0.0
        self.at = at
        self.rule: tuple[object, ...] | None = None
        """The limit, its period, its start, and whether it is relative."""

    def changed(self, *rule: object) -> None:
        """Start a new limit: its periods may begin at any instant from now on, with the full amount available."""
        if self.rule is not None and self.rule != rule:
            self.level = 0.0
        self.rule = rule

    def fits(self, limit: int, at: float, slack: int, period: int = 1, on_top: OnTop = ()) -> bool:
        """Return whether another item may pass at this instant.

        A burst raises the limit of the period after its arrival, and counts for at most two periods.
        """
        over = at - 2 * period
        used = sum(count for came, count in on_top if self.at - 2 * period < came <= over)
        lately = sum(count for came, count in on_top if came > over)
        self.level = max(0.0, self.level - (at - self.at) * limit / period - used)
        self.at = at
        return self.level < 2 * limit + slack + lately


class Rates(Checker):
    """No rate is exceeded over any period, except by the last entry or read, whose excess is paid off."""

    rule = "rates"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._buckets: dict[Hashable, Bucket] = {}
        """Buckets by the object that owns the limiter in the core; a new object starts a new bucket."""
        self._receipts: list[tuple[ProducerView, Pending, int]] = []
        """Receipts of this turn, with their numbers of messages."""
        self._came: dict[str, tuple[deque[tuple[float, int]], deque[tuple[float, int]]]] = {}
        """Messages and bytes published by topic; they count once they are durable."""

    def _count(
        self,
        who: Hashable,
        count: int,
        limit: int,
        slack: int,
        name: str,
        *,
        period: int = 1,
        since: float = 0.0,
        on_top: OnTop | None = None,
    ) -> None:
        if limit <= 0:
            return
        now = time_of(self.model.world.now) / 1000
        bucket = self._buckets.setdefault(who, Bucket(now))
        bucket.changed(limit, period, since, on_top is not None)
        fits = bucket.fits(limit, now, slack, period, on_top or ())
        self.check(fits, name, "is limited to", limit, "in", period, "s, at", bucket.level)
        bucket.level += count

    def _since(self, topic: str, policy: Policy[Any]) -> float:
        book = self.model.book
        return 0.0 if book is None else book.held(topic, policy)[-1].since

    def came(self, topic: TopicView, entry: EntryView) -> None:
        """See Checker."""
        now = time_of(self.model.world.now) / 1000
        for counts, count in zip(self._sent_to(topic.name), (len(entry.keys), entry.size), strict=True):
            counts.append((now, count))
            while counts[0][0] < now - REMEMBERED:
                counts.popleft()

    def recovered_topic(self, topic: TopicView, ledgers: set[int]) -> None:
        """See Checker: bursts from before a start do not count."""
        self._came.pop(topic.name, None)

    def _sent_to(self, topic: str) -> tuple[deque[tuple[float, int]], deque[tuple[float, int]]]:
        return self._came.setdefault(topic, (deque(), deque()))

    def parcel(self, consumer: ConsumerView, positions: list[Position]) -> None:
        """See Checker."""
        settings, subscription = self.model.box.settings, consumer.subscription
        held = [consumer.core.held[position] for position in positions]
        by_entry = settings.dispatchThrottlingOnBatchMessageEnabled
        messages = len(held) if by_entry else sum(each.messages for each in held)
        size = sum(each.size for each in held)
        slack = 0
        if consumer.sub.type == KEY_SHARED:  # one read is dispatched in several parts
            slack = settings.dispatcherMaxReadBatchSize * (1 if by_entry else MOST_A_BATCH)
        name = f"{consumer.sub.topic.name} {consumer.sub.name}"
        broker, topic = self.model.box.broker, consumer.sub.topic.name
        self._count(broker, messages, settings.dispatchThrottlingRateInMsg, slack, "the box")
        self._count_group(topic, "dispatchRateInMsgs", messages, slack)
        for who, policy, what in (
            (subscription.stored, DISPATCH_RATE, topic),
            (subscription, SUBSCRIPTION_DISPATCH_RATE, name),
        ):
            rate = self.model.ruled(topic, policy)
            since = self._since(topic, policy)
            came = self._sent_to(topic) if rate.relative else (None, None)
            self._count(who, messages, rate.messages, slack, what, period=rate.period_s, since=since, on_top=came[0])
            if consumer.sub.type != KEY_SHARED:
                key, words = (who, "bytes"), f"{what} (bytes)"
                self._count(key, size, rate.bytes, 0, words, period=rate.period_s, since=since, on_top=came[1])

    def _count_group(self, topic: str, rate: str, count: int, slack: int) -> None:
        book = self.model.book
        group = self.model.ruled(topic, RESOURCE_GROUP) if book is not None else ""
        if book is not None and group:
            who = self.model.box.broker, group, rate
            since = book.group_since.get(group, 0.0)
            self._count(who, count, book.group(group).get(rate, 0), slack, f"group {group}", since=since)

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        if position is not None:
            self._receipts.append((producer, pending, 0 if position == NOWHERE else len(pending.keys)))

    def outbox_taken(self, end: BoxEnd) -> None:
        """See Checker: a closed producer gets all its receipts at once, and they do not count.

        The broker may not have notified the client yet, while more of its messages are being written.
        """
        self._receipts = [each for each in self._receipts if each[0].conn.end is not end or self._is_open(each[0], end)]

    @staticmethod
    def _is_open(producer: ProducerView, end: BoxEnd) -> bool:
        there = producer.conn.producers.get(producer.producer_id)
        served = producer.producer_id in end.cnx.producers
        return end.outbox.close_reason is None and there is producer and served

    def turn(self) -> None:
        """See Checker."""
        receipts, self._receipts = self._receipts, []
        for producer, pending, messages in receipts:
            name = producer.topic.name
            topic, limit = self.model.box.topic(name), self.model.ruled(name, PUBLISH_RATE).messages
            since = max(self._since(name, PUBLISH_RATE), self._since(name, RESOURCE_GROUP))
            if topic is not None and pending.at >= since:  # messages sent before the limit was set do not count
                self._count((topic, "receipts"), messages, limit, 0, f"publishing to {name}", since=since)
                self._count_group(name, "publishRateInMsgs", messages, 0)
