"""The rules of policies: precedence, deletion and retention, and admission.

They judge by the times and effects of publishes, acknowledgements and policy changes, not by the broker's code.
"""

from __future__ import annotations

from typing import Any, Final

from pulsarbox.broker.limits.limiter import time_of
from pulsarbox.broker.policies.kinds.auto_creation import AUTO_SUBSCRIPTIONS
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, BACKLOG_SIZE, Follows, Quota
from pulsarbox.broker.policies.kinds.counts import (
    MAX_CONSUMERS,
    MAX_CONSUMERS_PER_SUBSCRIPTION,
    MAX_PRODUCERS,
    MAX_SUBSCRIPTIONS,
)
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.retention import RETENTION, UNLIMITED
from pulsarbox.broker.policies.kinds.subscribe_rate import SUBSCRIBE_RATE
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.kinds.subscription_types import SUBSCRIPTION_TYPES
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, ServerError
from pulsarbox.storage.record import Position
from tests.simulation.actors.governor import RULED
from tests.simulation.model import unasked
from tests.simulation.model.model import Model
from tests.simulation.model.rulebook import Rulebook, Ruled
from tests.simulation.model.views import ConnView, ConsumerView, ProducerView, Request, SubView, TopicView
from tests.simulation.rules.checker import Checker
from tests.simulation.rules.flow_checkers import AtRest
from tests.simulation.rules.rate_checkers import Bucket

SLACK: Final = 4.0
"""Virtual seconds without any event within which the broker performs due work; reads alternate and may fail."""
A_MOMENT: Final = 5.0
"""Seconds for which an earlier policy value still counts, as unloaded topics and commits are observed late."""
NOTICED_MS: Final = 1500
"""Milliseconds within which a size quota without delayed messages notices newly due messages."""
SOME_BYTES: Final = 100_000
"""Bytes by which pending writes may enlarge a topic beyond its durable size."""


class OfTopics(AtRest):
    """Base of rules that inspect topics periodically, while no read is in progress and no deadline is due."""

    every = 9

    def turn(self) -> None:
        """See Checker."""
        if self.model.book is None or not self.at_rest():
            return
        for topic in self.model.topics.values():
            self.look_at(topic, self.model.book)

    def look_at(self, topic: TopicView, book: Rulebook) -> None:
        """Check one topic."""
        raise NotImplementedError

    def is_steady(self, topic: TopicView, *policies: Policy[Any], seconds: float = SLACK) -> bool:
        """Return whether the broker has had ``seconds`` to apply these policies."""
        model, book = self.model, self.model.book
        if book is None or not model.box.running:
            return False
        news = (model.world.moved_at, model.started_at, topic.rewound_at, model.box.disk.last_read_failure)
        since = model.world.monotonic - seconds
        quiet = since > max(news) and model.pledges.is_steady(topic, since)
        return quiet and all(book.steady(topic.name, policy) > seconds for policy in policies)


class LevelsHold(OfTopics):
    """The effective policy is the first set one of topic, global, namespace and broker policies, after a crash too."""

    rule = "levels"
    every = 20

    def look_at(self, topic: TopicView, book: Rulebook) -> None:
        """See OfTopics."""
        core = self.model.box.topic(topic.name)
        if core is None:
            return
        for policy in RULED:
            found, right = core.policies.found(policy), book.look_up(topic.name, policy)
            self.check(found == right, policy.name, "of", topic.name, "is", found, "should be", right)

    def started(self) -> None:
        """See Checker."""
        if self.model.book is not None:
            wrong = self.model.book.found(self.model.box.found.catalog)
            self.check(not wrong, "a restart does not find what was set:", wrong)


class Reasons(Checker):
    """Entries acknowledged by the broker are expired or evicted, no more than needed; so are deleted subscriptions."""

    rule = "reason"

    def let_go(self, sub: SubView, positions: list[Position]) -> None:
        """See Checker."""
        book, topic = self.model.book, sub.topic
        assert book is not None
        ttls = book.in_force(topic.name, MESSAGE_TTL)
        ages = book.in_force(topic.name, BACKLOG_AGE)
        sizes = [each for each in book.in_force(topic.name, BACKLOG_SIZE, A_MOMENT) if _evicts(each)]
        total = topic.entries[topic.order[-1]].through
        for position in positions:
            entry = topic.entries[position]
            expired = any(each.value and entry.begins + each.value <= each.wall for each in ttls)
            aged = any(
                _evicts(each) and unasked.ripens(entry, each.value) + _target(each) <= each.wall for each in ages
            )
            # Only together with the evicted entry does the rest of the log exceed nine tenths of the limit.
            behind = total - entry.through + entry.size
            if expired or aged or any(behind > _target(each) for each in sizes):
                continue
            now = self.model.world.now.wall
            self.check(False, "acknowledged by nobody, for no reason:", topic.name, sub.name, position,
                       f"of {entry.begins}, now {now}", behind, ttls[-1:], ages[-1:], sizes[-1:])  # fmt: skip

    def expired_subscription(self, sub: SubView) -> None:
        """See Checker."""
        book, since = self.model.book, sub.idle_since
        assert book is not None
        used = [c for conn in self.model.conns.values() for c in conn.consumers.values() if c.sub is sub]
        self.check(not used, "a subscription that is used is deleted:", sub.topic.name, sub.name)
        after = book.in_force(sub.topic.name, SUBSCRIPTION_EXPIRATION, A_MOMENT)
        due = any(each.value and since + each.value <= each.wall for each in after)
        self.check(due, "a subscription is deleted for no reason:", sub.topic.name, sub.name, since, after)


def _target(ruled: Ruled) -> int:
    """Return the bytes that an eviction leaves: nine tenths of the limit."""
    return int(ruled.value.limit) * 9 // 10


def _evicts(ruled: Ruled) -> bool:
    return ruled.value.limit >= 0 and ruled.value.follows is Follows.EVICTION


class Expired(OfTopics):
    """Expired entries are removed and no longer delivered; unused subscriptions are deleted."""

    rule = "expired"

    def look_at(self, topic: TopicView, book: Rulebook) -> None:
        """See OfTopics."""
        now, ttl, begins = self.model.world.now.wall, book.get(topic.name, MESSAGE_TTL), unasked.oldest(topic)
        if ttl and begins and begins + ttl + SLACK * 1000 < now and self.is_steady(topic, MESSAGE_TTL):
            self.check(False, "expired and still there:", topic.name, now - begins, "ms old, of", ttl)
        after = book.get(topic.name, SUBSCRIPTION_EXPIRATION)
        if after and self.is_steady(topic, SUBSCRIPTION_EXPIRATION):
            used = {id(c.sub) for conn in self.model.conns.values() for c in conn.consumers.values()}
            for sub in topic.subs.values():
                idle = (
                    sub.durable
                    and sub.answered
                    and id(sub) not in used
                    and self.model.started_wall < sub.idle_since < 2**62
                )
                late = idle and sub.idle_since + after + SLACK * 1000 < now
                self.check(not late, "not used for too long, and still there:", topic.name, sub.name,
                           sub.idle_since, after, now, self.model.box.topic(topic.name))  # fmt: skip

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        book = self.model.book
        if book is None or consumer is None or position not in consumer.sub.topic.entries:
            return
        topic, mark = consumer.sub.topic, unasked.slowest(consumer.sub.topic)
        if not consumer.sub.durable and (mark is None or position <= mark):
            return  # no durable subscription can lose it: readers receive it for as long as it is retained
        ttl, begins = book.get(topic.name, MESSAGE_TTL), topic.entries[position].begins
        if ttl and begins + ttl + SLACK * 1000 < self.model.world.now.wall and self.is_steady(topic, MESSAGE_TTL):
            self.check(False, "delivered after it has expired:", topic.name, consumer.sub.name, position)


class Retained(OfTopics):
    """Retained ledgers stay readable; acknowledged ledgers beyond the retention limits are trimmed."""

    rule = "retained"

    def trimmed(self, topic: TopicView, ledger_id: int, positions: list[Position]) -> None:
        """See Checker."""
        book = self.model.book
        if book is None or not positions:
            return
        newest = topic.entries[positions[-1]].appended
        kept = sum(topic.entries[each].size for ids in topic.ledgers.values() for each in ids)
        for each in (rules := book.in_force(topic.name, RETENTION, A_MOMENT)):
            time_ms, size = each.value
            too_old = time_ms != UNLIMITED and newest + time_ms <= each.wall
            if too_old or (size != UNLIMITED and kept + SOME_BYTES >= size):
                return
        self.check(False, "trimmed within what is retained:", topic.name, ledger_id, newest, kept, rules)

    def look_at(self, topic: TopicView, book: Rulebook) -> None:
        """See OfTopics."""
        core = self.model.box.topic(topic.name)
        if core is None or not self.is_steady(topic, RETENTION):
            return
        infos = list(core.ledger.ledgers.values())
        mark = unasked.slowest(topic)
        first = infos[0]
        held = any(sub.durable for sub in topic.subs.values()) and (
            mark is None or mark < (first.ledger_id, first.entries - 1)
        )
        if len(infos) < 2 or held or first.confirmed < first.entries:
            return
        if mark is None and self.model.box.settings.unsubscribedRetentionTimeInMinutes:
            return  # possibly unsubscribed: judged by another rule
        if core.ledgers.trim_due and not core.ledger.closed_are_confirmed:
            return  # trimmed together with the entries being written
        time_ms, size = book.get(topic.name, RETENTION)
        too_old = time_ms != UNLIMITED and first.closed + time_ms + SLACK * 1000 < self.model.world.now.wall
        total = sum(topic.entries[each].size for ids in topic.ledgers.values() for each in ids)
        too_large = size != UNLIMITED and total - first.size >= size
        self.check(not too_old and not too_large, "beyond what is retained, and it stays:", topic.name, first.ledger_id,
                   (time_ms, size), total, too_old)  # fmt: skip


class Quotas(OfTopics):
    """A hold or reject quota admits nothing beyond it, an eviction quota evicts; held producers resume at once."""

    rule = "quotas"

    def _is_full(self, topic: TopicView, book: Rulebook, more: int = 0) -> bool:
        quota = book.get(topic.name, BACKLOG_SIZE)
        return bool(quota.limit >= 0 and self._used(topic, quota) + more >= quota.limit)

    def _used(self, topic: TopicView, quota: Quota, late_ms: int = 0) -> int:
        """Return the bytes that count, including delayed messages that fell due more than ``late_ms`` ago."""
        return unasked.backlog(topic, self.model.world.now.wall - late_ms if quota.exclude_delayed else None)

    def _is_old(self, topic: TopicView, book: Rulebook, slack_ms: float = 0) -> bool:
        quota = book.get(topic.name, BACKLOG_AGE)
        begins = unasked.oldest_for(topic, quota, unsure=not slack_ms)
        return bool(quota.limit > 0 and begins and begins + quota.limit + slack_ms <= self.model.world.now.wall)

    def stored(self, topic: TopicView, position: Position) -> None:
        """See Checker: the entry was accepted below the limit, and the backlog can only have shrunk since."""
        book, mark = self.model.book, unasked.slowest(topic)
        if book is None or mark is None or not topic.order or not self.is_steady(topic, BACKLOG_SIZE):
            return
        quota = book.get(topic.name, BACKLOG_SIZE)
        used = self._used(topic, quota, NOTICED_MS)
        if quota.limit >= 0 and quota.follows is not Follows.EVICTION:
            self.check(used < quota.limit, "taken beyond the quota:", topic.name, position, used, quota)

    def named(self, request: Request, name: str) -> None:
        """See Checker."""
        book, topic = self.model.book, self.model.topic(request.topic)
        if book is None or not self.is_steady(topic, BACKLOG_SIZE, BACKLOG_AGE):
            return
        for full, policy in (
            (self._is_full(topic, book), BACKLOG_SIZE),
            (self._is_old(topic, book, SLACK * 1000), BACKLOG_AGE),
        ):
            quota = book.get(topic.name, policy)
            blocked = full and quota.follows is not Follows.EVICTION
            # The reply may predate the full backlog: the producer is then closed next.
            if blocked and topic.full_since and self.model.world.monotonic - topic.full_since > SLACK:
                self.check(False, "a producer comes beyond the quota:", topic.name, name, quota)

    def refused(self, request: Request, error: int, text: str) -> None:
        """See Checker."""
        book = self.model.book
        follows = _REFUSALS.get(error)
        if book is None or request.kind != "PRODUCER" or follows is None:
            return
        topic = self.model.topic(request.topic)
        core = self.model.box.topic(topic.name)
        pending = core.ledger.total_bytes - core.ledger.confirmed_bytes if core is not None else 0
        if unasked.slowest(topic) is None and any(sub.durable for sub in topic.subs.values()):
            return
        size, age = book.get(topic.name, BACKLOG_SIZE), book.get(topic.name, BACKLOG_AGE)
        by_size = size.follows is follows and self._is_full(topic, book, pending)
        by_age = age.follows is follows and self._is_old(topic, book)
        self.check(by_size or by_age, "refused for no reason:", topic.name, text, size, age, unasked.backlog(topic))

    def look_at(self, topic: TopicView, book: Rulebook) -> None:
        """See OfTopics."""
        size, age = book.get(topic.name, BACKLOG_SIZE), book.get(topic.name, BACKLOG_AGE)
        full, old = self._is_full(topic, book), self._is_old(topic, book)
        stays_full = full and self._used(topic, size, NOTICED_MS) >= size.limit
        commits = self.model.box.broker.commits
        if full or old:
            topic.full_since = topic.full_since or self.model.world.monotonic
        else:
            topic.full_since = 0.0
        idle = commits.in_flight is None and not commits.open.batch
        if stays_full and size.follows is Follows.EVICTION and idle and self.is_steady(topic, BACKLOG_SIZE):
            self.check(False, "nothing is evicted:", topic.name, unasked.backlog(topic), size)
        if age.follows is Follows.EVICTION and self._is_old(topic, book, SLACK * 1000):
            late = self.is_steady(topic, BACKLOG_AGE)
            self.check(not late, "too old, and not evicted:", topic.name, unasked.oldest(topic), age)
        self._held(topic, hold=(full and size.follows is Follows.HOLD) or (old and age.follows is Follows.HOLD))

    def _held(self, topic: TopicView, *, hold: bool) -> None:
        world = self.model.world
        waiting = any(
            request.held and not request.given_up and request.topic == topic.name
            for conn in self.model.conns.values()
            for request in conn.requests.values()
        )
        if hold or not waiting:
            topic.free_since = 0.0
            return
        topic.free_since = topic.free_since or world.monotonic
        free = world.monotonic - max(topic.free_since, self.model.box.disk.last_read_failure)
        self.check(free < SLACK, "a producer is held, and nothing holds it:", topic.name, free, "s")


_REFUSALS: Final[dict[int, Follows]] = {
    ServerError.ProducerBlockedQuotaExceededError: Follows.HOLD,
    ServerError.ProducerBlockedQuotaExceededException: Follows.EXCEPTION,
}


class Admitted(Checker):
    """No topic exceeds its limits of clients, and no client is rejected below them."""

    rule = "admitted"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._buckets: dict[object, Bucket] = {}

    def named(self, request: Request, name: str) -> None:
        """See Checker."""
        if self.model.book is None:
            return
        topic = self.model.topic(request.topic)
        limit = self.model.book.get(topic.name, MAX_PRODUCERS)
        present = {producer.name for producer in self._producers(topic)} - {name}
        steady = self.model.book.steady(topic.name, MAX_PRODUCERS) > SLACK
        self.check(not limit or not steady or len(present) < limit, "a producer too many:", topic.name, present, limit)

    def _producers(self, topic: TopicView) -> list[ProducerView]:
        return [p for conn in self.model.conns.values() for p in conn.producers.values() if p.topic is topic]

    def _consumers(self, topic: TopicView) -> list[ConsumerView]:
        return [c for conn in self.model.conns.values() for c in conn.consumers.values() if c.sub.topic is topic]

    def subscribed(self, conn: ConnView, request: Request, sub: SubView | None) -> None:
        """See Checker."""
        book = self.model.book
        if book is None or sub is None:
            return
        topic = sub.topic.name

        def steady(policy: Policy[Any]) -> bool:
            return book.steady(topic, policy) > SLACK

        consumers = self._consumers(sub.topic)
        limit = book.get(topic, MAX_CONSUMERS)
        few = not limit or not steady(MAX_CONSUMERS) or len(consumers) < limit
        self.check(few, "a consumer too many:", topic, len(consumers), limit)
        limit = book.get(topic, MAX_CONSUMERS_PER_SUBSCRIPTION)
        of_sub = [each for each in consumers if each.sub is sub]
        many = limit and steady(MAX_CONSUMERS_PER_SUBSCRIPTION) and len(of_sub) >= limit
        exclusive = request.type == CommandSubscribe.Exclusive
        self.check(not many or exclusive, "a consumer too many of", topic, sub.name, len(of_sub), limit)
        kind = CommandSubscribe.SubType.Name(CommandSubscribe.SubType.ValueType(request.type))
        wrong = steady(SUBSCRIPTION_TYPES) and kind not in book.get(topic, SUBSCRIPTION_TYPES)
        self.check(not wrong, "a type that is turned off:", topic, sub.name, kind)
        self._count(conn, request, sub.topic)

    def _count(self, conn: ConnView, request: Request, topic: TopicView) -> None:
        """Count the admitted consumers for the subscribe rate."""
        world, core, book = self.model.world, self.model.box.topic(topic.name), self.model.book
        assert book is not None
        rate = book.get(topic.name, SUBSCRIBE_RATE)
        if rate.times <= 0 or core is None:
            return
        since = book.held(topic.name, SUBSCRIBE_RATE)[-1].since
        who = core, conn, request.object_id, since
        bucket = self._buckets.setdefault(who, Bucket(0.0))
        fits = bucket.fits(rate.times, time_of(world.now) / 1000, 0, rate.period_s)
        self.check(fits, "subscribes too often:", topic.name, rate)
        bucket.level += 1

    def made(self, sub: SubView) -> None:
        """See Checker."""
        book = self.model.book
        if book is None or not sub.durable:
            return
        topic = sub.topic
        limit, there = book.get(topic.name, MAX_SUBSCRIPTIONS), len(topic.subs)
        many = limit and there > limit and book.steady(topic.name, MAX_SUBSCRIPTIONS) > SLACK
        self.check(not many, "a subscription too many:", topic.name, list(topic.subs), limit)
        allowed = book.get(topic.name, AUTO_SUBSCRIPTIONS) or book.steady(topic.name, AUTO_SUBSCRIPTIONS) < SLACK
        self.check(allowed, "a client makes a subscription that it may not:", topic.name, sub.name)

    def refused(self, request: Request, error: int, text: str) -> None:
        """See Checker."""
        book = self.model.book
        topic = self.model.topics.get(request.topic)
        if book is None or topic is None:
            return
        core = self.model.box.topic(topic.name)
        if not isinstance(core, PersistentTopic):
            return
        limit = next((book.get(topic.name, policy) for words, policy in _LIMITS if words in text), -1)
        self.check(limit != 0, "refused without a limit:", topic.name, request.kind, text)
        if "max producers" in text:
            self.check(len(core.producers) >= limit, "refused below the limit:", topic.name, len(core.producers), limit)


_LIMITS: Final = (
    ("reached max producers limit", MAX_PRODUCERS),
    ("Topic reached max consumers limit", MAX_CONSUMERS),
    ("Subscription reached max consumers limit", MAX_CONSUMERS_PER_SUBSCRIPTION),
    ("maximum number of subscriptions", MAX_SUBSCRIPTIONS),
)


POLICY_CHECKERS: Final[tuple[type[Checker], ...]] = (
    LevelsHold,
    Reasons,
    Retained,
    Expired,
    Quotas,
    Admitted,
)
