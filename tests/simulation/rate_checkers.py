"""The rules of rates: what goes out to consumers, and what receipts say has come in, over any stretch of time."""

from __future__ import annotations

from collections.abc import Hashable

from pulsarbox.storage.record import Position
from tests.simulation.box import BoxEnd
from tests.simulation.checker import Checker
from tests.simulation.model import Model
from tests.simulation.views import KEY_SHARED, NOWHERE, ConsumerView, Pending, ProducerView

MOST_A_BATCH = 20
"""No message of the workload has more."""


class Bucket:
    """What went, less what the limit allows for the time since.

    A limiter that is filled up in steps lets go, before the last that it lets go, less than two periods and the time
    between allow: its periods may begin at any instant.
    """

    def __init__(self, at: float) -> None:
        self.level = 0.0
        self.at = at

    def fits(self, limit: int, at: float, slack: int) -> bool:
        """Whether something more may go at this instant."""
        self.level = max(0.0, self.level - (at - self.at) * limit)
        self.at = at
        return self.level < 2 * limit + slack


class Rates(Checker):
    """No rate is exceeded over any stretch of time, but for the last entry or read, which is paid off."""

    rule = "rates"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._buckets: dict[Hashable, Bucket] = {}
        """By what has a limiter of its own in the core: it starts anew with that."""
        self._receipts: list[tuple[ProducerView, int]] = []
        """Of this turn."""

    def _count(self, who: Hashable, count: int, limit: int, slack: int, name: str) -> None:
        if limit <= 0:
            return
        now = self.model.world.monotonic
        bucket = self._buckets.setdefault(who, Bucket(now))
        self.check(bucket.fits(limit, now, slack), name, "is limited to", limit, "a second, at", bucket.level)
        bucket.level += count

    def parcel(self, consumer: ConsumerView, positions: list[Position]) -> None:
        """See Checker."""
        settings, subscription = self.model.box.settings, consumer.subscription
        held = [consumer.core.held[position] for position in positions]
        by_entry = settings.dispatchThrottlingOnBatchMessageEnabled
        messages = len(held) if by_entry else sum(each.messages for each in held)
        size = sum(each.size for each in held)
        slack = 0
        if consumer.sub.type == KEY_SHARED:  # one read goes out in several parcels
            slack = settings.dispatcherMaxReadBatchSize * (1 if by_entry else MOST_A_BATCH)
        name = f"{consumer.sub.topic.name} {consumer.sub.name}"
        broker = self.model.box.broker
        self._count(broker, messages, settings.dispatchThrottlingRateInMsg, slack, "the box")
        of_topic, of_sub = subscription.topic, subscription
        self._count(of_topic, messages, settings.dispatchThrottlingRatePerTopicInMsg, slack, consumer.sub.topic.name)
        self._count(of_sub, messages, settings.dispatchThrottlingRatePerSubscriptionInMsg, slack, name)
        if consumer.sub.type != KEY_SHARED:
            limit = settings.dispatchThrottlingRatePerSubscriptionInByte
            self._count((of_sub, "bytes"), size, limit, 0, f"{name} (bytes)")

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        if position is not None:
            self._receipts.append((producer, 0 if position == NOWHERE else len(pending.keys)))

    def outbox_taken(self, end: BoxEnd) -> None:
        """See Checker: who has gone meanwhile has got all its receipts at once, and they do not count."""
        self._receipts = [each for each in self._receipts if each[0].conn.end is not end or self._is_open(each[0], end)]

    @staticmethod
    def _is_open(producer: ProducerView, end: BoxEnd) -> bool:
        there = producer.conn.producers.get(producer.producer_id)
        return end.outbox.close_reason is None and there is producer

    def turn(self) -> None:
        """See Checker."""
        receipts, self._receipts = self._receipts, []
        limit = self.model.box.settings.maxPublishRatePerTopicInMessages
        for producer, messages in receipts:
            topic = self.model.box.topic(producer.topic.name)
            if topic is not None:
                self._count((topic, "receipts"), messages, limit, 0, f"publishing to {producer.topic.name}")
