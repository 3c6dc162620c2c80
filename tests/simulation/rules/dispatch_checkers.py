"""The rules of dispatch by subscription type (Exclusive, Failover, Shared) and limits."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from pulsarbox.broker.dispatch.multiple_consumers import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.broker.dispatch.single_active import SingleActiveDispatcher
from pulsarbox.broker.policies.kinds.unacked import MAX_UNACKED_PER_CONSUMER, MAX_UNACKED_PER_SUBSCRIPTION
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from pulsarbox.storage.record import Position
from tests.simulation.model.model import Model
from tests.simulation.model.standing import consumers_of
from tests.simulation.model.views import SHARED, ConnView, ConsumerView, EntryView, Request, SubView
from tests.simulation.rules.checker import Checker

EXCLUSIVE, FAILOVER = CommandSubscribe.Exclusive, CommandSubscribe.Failover


class OneActive(Checker):
    """An Exclusive subscription has one consumer; on Failover, the elected consumer receives all and is notified."""

    rule = "one-active"

    def subscribed(self, conn: ConnView, request: Request, sub: SubView | None) -> None:
        """See Checker."""
        if sub is not None and request.type == EXCLUSIVE:
            others = [c for other in self.model.conns.values() for c in other.consumers.values() if c.sub is sub]
            self.check(not others, "a second consumer of an Exclusive subscription:", sub.name)

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None or consumer.sub.type not in (EXCLUSIVE, FAILOVER):
            return
        core = consumer.core
        self.check(not consumer.subscription.awaits_failover, "delivered before the delay is over:", consumer.sub.name)
        right = self._active(consumer.sub, consumers_of(consumer.subscription))
        self.check(right is core, "delivered to one that is not active:", consumer.sub.name, core.name, position)
        if consumer.sub.type == FAILOVER:
            self.check(conn.notices.get(consumer.consumer_id, False), "delivered to one that was not told:", core.name)

    def turn(self) -> None:
        """See Checker."""
        for conn in self.model.conns.values():
            for consumer in conn.consumers.values():
                sub = consumer.sub
                core = self.model.subscription(sub)
                if sub.type != FAILOVER or core is None or core.awaits_failover:
                    continue
                if isinstance(core.dispatcher, SingleActiveDispatcher):
                    is_active = self._active(sub, core.dispatcher._consumers) is consumer.core
                    told = conn.notices.get(consumer.consumer_id)
                    self.check(told is is_active, "told", told, "but it is", is_active, sub.name, consumer.core.name)

    @staticmethod
    def _active(sub: SubView, consumers: list[Consumer]) -> Consumer:
        """Return the consumer to elect at the lowest priority level: by partition index, or by a hash ring of names."""
        first = sorted(consumers, key=lambda each: (each.priority_level, each.name))
        first = [each for each in first if each.priority_level == first[0].priority_level]
        topic, _, partition = sub.topic.name.rpartition("-partition-")
        if topic:
            return first[int(partition) % len(first)]
        return first[_on_the_ring(sub.topic.name, tuple(each.name for each in first))]


@lru_cache(maxsize=10_000)
def _on_the_ring(topic: str, names: tuple[str, ...]) -> int:
    """Return the index of the name whose point on the ring follows the topic's point."""
    place = key_hash(topic.encode())
    points = {key_hash(f"{name}{i}".encode()): number for number, name in enumerate(names) for i in range(100)}
    return points[min(points, key=lambda point: (point < place, point))]


class Turns(Checker):
    """Dispatch on a Shared subscription follows the priority levels.

    Consumers of equal priority receive entries as the subscription's mode chooses, each a bounded number at a time.
    """

    rule = "turns"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._overtaken: dict[Consumer, set[Consumer]] = {}
        """For each consumer, the others that were ready to receive ever since its last turn."""

    def parcel(self, consumer: ConsumerView, positions: list[Position]) -> None:
        """See Checker."""
        sub, settings = consumer.sub, self.model.box.settings
        if sub.type != SHARED:
            return
        core, topic = consumer.core, sub.topic
        self.check(len(positions) <= settings.dispatcherMaxRoundRobinBatchSize, "a turn of", len(positions), sub.name)
        if all(topic.entries[position].chunk_of for position in positions):
            self._forget(core)
            return  # chunks follow the chunks before them
        ready = {each for each in consumers_of(consumer.subscription) if each.ready and each is not core}
        above = [each.name for each in ready if each.priority_level < core.priority_level]
        self.check(not above, "priorities are ignored:", sub.name, core.name, above)
        equals = {each for each in ready if each.priority_level == core.priority_level}
        if topic.chunks and any(topic.entries[position].chunk_of for position in (*sub.left, *positions)):
            self._forget(core)
            return  # chunks of other messages may use up a turn
        how = settings.sharedConsumerSelection
        messages = sum(core.held[position].messages for position in positions)
        if how == "leastUnacked":
            self.check(all(e.unacked >= core.unacked - messages for e in equals), "not who has least:", core.name)
        elif how == "mostPermits":
            self.check(all(e.permits <= core.permits + messages for e in equals), "not who asks for most:", core.name)
        else:
            passed = self._overtaken.get(core, set()) & equals
            self.check(not passed, "two turns in a row:", sub.name, core.name, "before", [e.name for e in passed])
            for others in self._overtaken.values():
                others.discard(core)
            self._overtaken[core] = equals

    def _forget(self, consumer: Consumer) -> None:
        """Reset the known order of the consumers of this consumer's subscription."""
        self._overtaken = {
            each: others for each, others in self._overtaken.items() if each.subscription is not consumer.subscription
        }

    def outbox_taken(self, end: Any) -> None:
        """See Checker."""
        self.turn()

    def turn(self) -> None:
        """See Checker: a consumer that was not ready for a moment loses its place in the order."""
        self._overtaken = {
            consumer: {each for each in others if each.ready}
            for consumer, others in self._overtaken.items()
            if not consumer.closed
        }


class ChunksTogether(Checker):
    """On a Shared subscription, all chunks of a message are dispatched to one consumer while it is connected."""

    rule = "chunks"

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None or consumer.sub.type != SHARED or consumer.sub.seeks:
            return
        entry = consumer.sub.topic.entries.get(position)
        if entry is not None and entry.chunk_of:
            self._chunk(consumer.sub, consumer, entry)

    def _chunk(self, sub: SubView, consumer: ConsumerView, entry: EntryView) -> None:
        takers = sub.chunk_takers.setdefault(entry.chunk_of, set())
        takers -= {each for each in takers if not each.open}
        # The first chunk may be dispatched to any consumer. So may resent chunks, once all were dispatched.
        follows = entry.chunk_id > 0 and not entry.sent_again and entry.position not in sub.seen and bool(takers)
        self.check(not follows or consumer in takers, "chunks of a message go to several:", sub.name, entry.position)
        takers.add(consumer)


class UnackedLimits(Checker):
    """At the limit of unacknowledged messages, dispatch stops until the count drops to half the limit, then resumes."""

    rule = "unacked-limits"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._reached: set[Hashable] = set()
        """Consumers, dispatchers and brokers that have reached their limit, each with the limit and its start time."""

    def parcel(self, consumer: ConsumerView, positions: list[Position]) -> None:
        """See Checker."""
        sub, core = consumer.sub, consumer.core
        dispatcher = consumer.subscription.dispatcher
        if not isinstance(dispatcher, MultipleConsumersDispatcher):
            return
        settings, broker = self.model.box.settings, self.model.box.broker.unacked
        sent = sum(core.held[position].messages for position in positions)
        of_sub = dispatcher._unacked.messages
        more_than_share = of_sub - sent > broker.share
        self._step(core, core.unacked, sent, self._limit(sub, MAX_UNACKED_PER_CONSUMER), sub)
        self._step(dispatcher, of_sub, sent, self._limit(sub, MAX_UNACKED_PER_SUBSCRIPTION), sub)
        of_all = settings.maxUnackedMessagesPerBroker, 0.0
        self._step(broker, broker.messages, sent, of_all, sub, felt=more_than_share)

    def _limit(self, sub: SubView, policy: Policy[int]) -> tuple[int, float]:
        """Return the limit in force and its start; consumers that already exceed a new limit have reached it."""
        book, topic = self.model.book, sub.topic.name
        if book is None:
            return self.model.ruled(topic, policy), 0.0
        now = book.held(topic, policy)[-1]
        return now.value, now.since

    def _step(
        self, who: Hashable, after: int, sent: int, rule: tuple[int, float], sub: SubView, *, felt: bool = True
    ) -> None:
        limit, _ = rule
        if not limit:
            return
        before = after - sent
        reached = who, rule
        if before <= limit // 2:
            self._reached.discard(reached)
        over = (reached in self._reached or before >= limit) and felt
        self.check(not over, "sent over a limit of", limit, "unacknowledged:", before, sub.name, type(who).__name__)
        if after >= limit:
            self._reached.add(reached)

    def turn(self) -> None:
        """See Checker."""
        settings, broker = self.model.box.settings, self.model.box.broker.unacked
        half = settings.maxUnackedMessagesPerBroker // 2
        self.check(not broker.blocked or broker.messages > half, "the broker is held at", broker.messages)
        for topic in self.model.topics.values():
            box = self.model.box.topic(topic.name)
            of_sub = self.model.ruled(topic.name, MAX_UNACKED_PER_SUBSCRIPTION) // 2
            of_consumer = self.model.ruled(topic.name, MAX_UNACKED_PER_CONSUMER) // 2
            for sub in [] if box is None else box.subscriptions.values():
                dispatcher = sub.dispatcher
                if not isinstance(dispatcher, MultipleConsumersDispatcher):
                    continue
                unacked = dispatcher._unacked
                self.check(not unacked.blocked or unacked.messages > of_sub, sub.name, "is held at", unacked.messages)
                for consumer in dispatcher._consumers:
                    held = consumer.blocked and consumer.unacked <= of_consumer
                    self.check(not held, consumer.name, "is held at", consumer.unacked)
