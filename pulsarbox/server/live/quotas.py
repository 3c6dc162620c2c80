"""The live view of quotas: every limit of the box, namespaces and loaded topics, with its usage and throttling."""

from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.limits.hold_times import WINDOW_MS
from pulsarbox.broker.limits.limiter import Limiter, LimitScope, time_of
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, BACKLOG_SIZE
from pulsarbox.broker.policies.kinds.counts import (
    MAX_CONSUMERS,
    MAX_CONSUMERS_PER_SUBSCRIPTION,
    MAX_PRODUCERS,
    MAX_SUBSCRIPTIONS,
    MAX_TOPICS,
)
from pulsarbox.broker.policies.kinds.dispatch_rate import DISPATCH_RATE, SUBSCRIPTION_DISPATCH_RATE
from pulsarbox.broker.policies.kinds.publish_rate import PUBLISH_RATE
from pulsarbox.broker.policies.kinds.subscribe_rate import SUBSCRIBE_RATE
from pulsarbox.broker.policies.kinds.unacked import MAX_UNACKED_PER_CONSUMER, MAX_UNACKED_PER_SUBSCRIPTION
from pulsarbox.broker.policies.precedence import Level
from pulsarbox.broker.stats.topic_samples import TopicSample
from pulsarbox.broker.subscription.consumer import AnySubscription
from pulsarbox.broker.subscription.subscription import ONE_ACTIVE, Subscription
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.names import parse_topic
from pulsarbox.server.live.quota_changes import THEN, Of, change_of
from pulsarbox.server.live.topics import oldest
from pulsarbox.server.live.view import LiveView, ViewColumn, kept
from pulsarbox.server.live.view import ViewScope as Part

MESSAGES: Final = "messages/s"
BYTES: Final = "bytes/s"


class QuotaRow(NamedTuple):
    """One limit."""

    broker: Broker
    scope: str
    """Its scope: broker, resource group, namespace, topic, subscription."""
    topic: str
    """Full topic name; empty for the box and for groups; ``tenant/namespace`` for a namespace."""
    name: str
    """Name of the subscription or of the group."""
    policy: str
    """Policy name as in commands; the setting for limits of the box, the field for those of a resource group."""
    unit: str
    level: str
    limit: float
    used: Callable[[Now], float | None]
    limiter: Limiter | None = None
    held: Callable[[Now], float | None] = lambda now: None
    holding: Callable[[Now], bool] | None = None
    then: str | None = None
    """The action of a backlog quota that is reached, as in commands: ``hold``, ``refuse``, ``evict``."""
    evictions: Callable[[], int] | None = None
    """Evictions by a backlog quota since the topic was loaded."""

    def holds(self, now: Now) -> bool:
        """Return whether the limit is throttling or blocking now."""
        if self.limiter is not None:
            return self.limiter.holds.holding
        if self.holding is not None:
            return self.holding(now)
        used = self.used(now)
        return used is not None and used >= self.limit

    def held_ms(self, now: Now) -> float | None:
        """Return for how many milliseconds of the last minute it did; None if not measured."""
        return self.limiter.holds.last_minute(time_of(now)) if self.limiter is not None else self.held(now)

    def share(self, now: Now) -> float | None:
        """Return the share of the limit in use; 1 is all of it."""
        used = self.used(now)
        return None if used is None or not self.limit else used / self.limit

    @property
    def subject(self) -> str:
        """The limited object, for display."""
        return " ".join(filter(None, (self.topic, self.name))) or "box"


def _limiter(
    broker: Broker, limiter: Limiter | None, policies: tuple[str, str], topic: str = "", name: str = ""
) -> Iterator[QuotaRow]:
    """Yield the limits of a limiter; ``policies`` are the names for messages and for bytes."""
    step = limiter.step if limiter is not None else None
    if limiter is None or step is None:
        return
    seconds = step.limit.period_ms / 1000
    for at, unit in enumerate((MESSAGES, BYTES)):
        if step.limit[at]:

            def used(now: Now, limiter: Limiter = limiter, at: int = at) -> float:
                return limiter.used(now)[at]

            limit = step.capacity[at] / seconds
            yield QuotaRow(
                broker, str(limiter.scope), topic, name, policies[at], unit, str(limiter.level), limit, used, limiter
            )


def _both(policy: str) -> tuple[str, str]:
    return policy, policy


_BOX_DISPATCH: Final = ("dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte")
_GROUP_PUBLISH: Final = ("publishRateInMsgs", "publishRateInBytes")
_GROUP_DISPATCH: Final = ("dispatchRateInMsgs", "dispatchRateInBytes")
_BOX_PUBLISH: Final = ("brokerPublisherThrottlingMaxMessageRate", "brokerPublisherThrottlingMaxByteRate")


def _of_box(broker: Broker) -> Iterator[QuotaRow]:
    yield from _limiter(broker, broker.limits.publish, _BOX_PUBLISH)
    yield from _limiter(broker, broker.limits.dispatch, _BOX_DISPATCH)
    for name, group in broker.limits.groups.items():
        yield from _limiter(broker, group.publish, _GROUP_PUBLISH, name=name)
        yield from _limiter(broker, group.dispatch, _GROUP_DISPATCH, name=name)
    settings, level = broker.settings, str(Level.BROKER)
    if settings.brokerMaxConnections > 0:
        yield QuotaRow(
            broker, "broker", "", "", "brokerMaxConnections", "connections", level,
            settings.brokerMaxConnections, lambda now: len(broker.cnxs),
        )  # fmt: skip
    if settings.maxUnackedMessagesPerBroker > 0:
        unacked = broker.unacked
        yield QuotaRow(
            broker, "broker", "", "", "maxUnackedMessagesPerBroker", "messages", level,
            settings.maxUnackedMessagesPerBroker, lambda now: unacked.messages, holding=lambda now: unacked.blocked,
        )  # fmt: skip


def _of_namespaces(broker: Broker, names: Counter[str]) -> Iterator[QuotaRow]:
    """Yield the topic limits of namespaces; ``names`` counts the topics of each."""

    def counted(count: int) -> Callable[[Now], float]:
        return lambda now: count

    for namespace, count in names.items():
        policies = broker.policies.of(parse_topic(f"persistent://{namespace}/any"))
        limit, level = policies.found(MAX_TOPICS)
        if limit > 0:
            yield QuotaRow(
                broker, "namespace", namespace, "", MAX_TOPICS.name, "topics", str(level), limit, counted(count)
            )


def _of_topic(broker: Broker, sample: TopicSample, topic: Topic) -> Iterator[QuotaRow | None]:
    name, limits = sample.name, topic.limits
    yield from _limiter(broker, limits.publish_limiter, _both(PUBLISH_RATE.name), name)
    yield from _limiter(broker, limits.dispatch, _both(DISPATCH_RATE.name), name)
    subscribe = limits.subscribe
    if subscribe is not None and subscribe.rate.times > 0:
        yield QuotaRow(
            broker, "topic", name, "", SUBSCRIBE_RATE.name, f"times in {subscribe.rate.period_s} s",
            str(limits.subscribe_level), subscribe.rate.times, lambda now: subscribe.used,
        )  # fmt: skip
    if isinstance(topic, PersistentTopic):
        yield from _backlog(broker, sample, topic)
    if is_system(name):
        return
    counts = (
        (MAX_PRODUCERS, "producers", lambda now: len(topic.producers)),
        (MAX_CONSUMERS, "consumers", lambda now: sum(len(each.consumers) for each in topic.all_subscriptions())),
        (MAX_SUBSCRIPTIONS, "subscriptions", lambda now: len(sample.subscriptions)),
    )
    for policy, unit, used in counts:
        limit, level = topic.policies.found(policy)
        if limit > 0:
            yield QuotaRow(broker, "topic", name, "", policy.name, unit, str(level), limit, used)
    consumers = topic.policies.found(MAX_CONSUMERS_PER_SUBSCRIPTION)
    for subscription in list(topic.all_subscriptions()):
        yield None  # most have no limit, and there may be many
        yield from _of_subscription(broker, name, topic, subscription, consumers)


def _backlog(broker: Broker, sample: TopicSample, topic: PersistentTopic) -> Iterator[QuotaRow]:
    backlog = topic.backlog

    def held(now: Now) -> float:
        return backlog.holds.last_minute(time_of(now)) if backlog.holds is not None else 0

    def age(now: Now) -> float | None:
        return oldest(sample, now)

    if backlog.size.limit >= 0:
        yield QuotaRow(
            broker, "topic", sample.name, "", BACKLOG_SIZE.name, "bytes",
            str(topic.policies.found(BACKLOG_SIZE)[1]), backlog.size.limit, lambda now: backlog.used,
            held=held, holding=lambda now: backlog.blocked is backlog.size,
            then=THEN[backlog.size.follows], evictions=lambda: backlog.evictions,
        )  # fmt: skip
    if backlog.age.limit > 0:
        yield QuotaRow(
            broker, "topic", sample.name, "", BACKLOG_AGE.name, "s",
            str(topic.policies.found(BACKLOG_AGE)[1]), backlog.age.limit / 1000, age,
            held=held, holding=lambda now: backlog.blocked is backlog.age,
            then=THEN[backlog.age.follows], evictions=lambda: topic.expiry.evictions,
        )  # fmt: skip


def _of_subscription(
    broker: Broker, name: str, topic: Topic, subscription: AnySubscription, most: tuple[int, Level]
) -> Iterator[QuotaRow]:
    """``most``: the maximum number of consumers, and the level that defines it."""
    own = subscription.name
    limit, level = most
    if limit > 0:
        yield QuotaRow(
            broker, "subscription", name, own, MAX_CONSUMERS_PER_SUBSCRIPTION.name, "consumers", str(level), limit,
            lambda now: len(subscription.consumers),
        )  # fmt: skip
    if not isinstance(subscription, Subscription):
        return
    if subscription.throttle.own is not None:
        yield from _limiter(broker, subscription.throttle.own, _both(SUBSCRIPTION_DISPATCH_RATE.name), name, own)
    if subscription.type not in ONE_ACTIVE and subscription.consumers:
        yield from _unacked(broker, name, topic, subscription)


def _unacked(
    broker: Broker, name: str, topic: PersistentTopic | Topic, subscription: Subscription
) -> Iterator[QuotaRow]:
    def held(now: Now) -> float:
        """Return the duration of the current blocking only: earlier ones are not recorded."""
        why = subscription.blocked_reason()
        return min(max(now.wall - why.since, 0), WINDOW_MS) if why.reason == Reason.UNACKED_LIMIT and why.since else 0

    def most(now: Now) -> int:
        return max((each.unacked for each in subscription.consumers), default=0)

    def together(now: Now) -> int:
        return sum(each.unacked for each in subscription.consumers)

    for policy, used, holding in (
        (MAX_UNACKED_PER_CONSUMER, most, lambda now: any(each.blocked for each in subscription.consumers)),
        (MAX_UNACKED_PER_SUBSCRIPTION, together, lambda now: subscription.blocked),
    ):
        limit, level = topic.policies.found(policy)
        if limit > 0:
            yield QuotaRow(
                broker, "subscription", name, subscription.name, policy.name, "messages", str(level), limit, used,
                held=held, holding=holding,
            )  # fmt: skip


def things(broker: Broker, part: Part, now: Now) -> Iterator[QuotaRow | None]:
    """Yield all limits."""
    if not part.prefix:
        yield from _of_box(broker)
    names: Counter[str] = Counter()
    for sample in broker.samples.every():
        yield None
        if not part.holds(sample.namespace):
            continue
        if not is_system(sample.name):
            names[sample.namespace] += 1
        if sample.topic is not None:
            yield from _of_topic(broker, sample, sample.topic)
    yield from _of_namespaces(broker, names)


def _change(quota: QuotaRow, now: Now) -> dict[str, Any] | None:
    of = Of(quota.policy, quota.level, quota.topic, quota.name, quota.unit)
    found = change_of(quota.broker, of)
    return None if found is None else found._asdict()


COLUMNS: Final = {
    "scope": kept(attrgetter("scope")),
    "subject": kept(attrgetter("subject")),
    "topic": kept(lambda quota: quota.topic or None),
    "subscription": kept(lambda quota: quota.name if quota.scope == LimitScope.SUBSCRIPTION else None),
    "policy": kept(attrgetter("policy")),
    "used": ViewColumn(lambda quota, now: quota.used(now)),
    "limit": kept(attrgetter("limit")),
    "unit": kept(attrgetter("unit")),
    "share": ViewColumn(lambda quota, now: quota.share(now)),
    "level": kept(attrgetter("level")),
    "held": ViewColumn(lambda quota, now: quota.held_ms(now)),
    "holding": ViewColumn(lambda quota, now: quota.holds(now)),
    "then": kept(attrgetter("then")),
    "evictions": kept(lambda quota: quota.evictions() if quota.evictions is not None else None),
    "waiting": kept(lambda quota: quota.limiter.waiting if quota.limiter is not None else None),
    "change": ViewColumn(_change, named=True),
}

QUOTAS: Final = LiveView(
    "quotas", COLUMNS, things, sort="share", searched=lambda quota: (quota.topic, quota.name, quota.policy)
)
