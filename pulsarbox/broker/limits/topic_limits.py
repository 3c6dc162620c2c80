"""The limits of one topic: for its producers, its subscriptions, and subscribing."""

from collections.abc import Callable, Iterable
from typing import Protocol

from pulsarbox.broker.limits.box_limits import BoxLimits, ResourceGroupLimits, limit_of
from pulsarbox.broker.limits.dispatch_throttle import DispatchThrottle, ThrottledSource
from pulsarbox.broker.limits.limiter import Limiter, LimitScope, time_of
from pulsarbox.broker.limits.subscribe_throttle import SubscribeLimiter, Who
from pulsarbox.broker.limits.token_bucket import More
from pulsarbox.broker.policies.kinds.dispatch_rate import DISPATCH_RATE, DispatchRate
from pulsarbox.broker.policies.kinds.publish_rate import PUBLISH_RATE
from pulsarbox.broker.policies.kinds.resource_group import RESOURCE_GROUP
from pulsarbox.broker.policies.kinds.subscribe_rate import SUBSCRIBE_RATE
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.policies.precedence import Level
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import BEGINNING, Now


class ThrottledSubscription(Protocol):
    """A subscription whose dispatch is limited."""

    name: str
    throttle: DispatchThrottle

    def dispatch(self, now: Now) -> None:
        """Dispatch as much as possible."""


class HeldProducer(Protocol):
    """A producer whose receipts may be held."""

    def limits_changed(self, before: tuple[Limiter, ...], now: Now) -> None:
        """Apply changed publish rates; ``before`` are the previous limiters."""


class Members(Protocol):
    """The producers and subscriptions subject to a topic's limits."""

    def producers_now(self) -> Iterable[HeldProducer]:
        """Return the connected producers."""

    def throttled_subscriptions(self) -> Iterable[ThrottledSubscription]:
        """Return the subscriptions whose dispatch may be limited."""


class TopicLimits:
    """The limiters of a loaded topic. Callers read them afresh for each use, because they change."""

    __slots__ = (
        "_box", "_exempt", "_members", "_more", "_policies", "dispatch", "group", "publish", "publish_limited",
        "publish_limiter", "relative", "shared", "subscribe", "subscribe_level", "topic",
    )  # fmt: skip

    def __init__(self, box: BoxLimits, policies: TopicPolicies, members: Members, more: More | None) -> None:
        """``more`` counts published messages and bytes; None for non-persistent topics: no dispatch limits."""
        self._box = box
        self._policies = policies
        self._members = members
        self._more = more
        self.dispatch: Limiter | None = None
        """The topic's own limiter, once it has had one; likewise ``publish_limiter``."""
        self.publish_limiter: Limiter | None = None
        self.group: ResourceGroupLimits | None = None
        self.topic = str(policies.name)
        self.relative = False
        """Whether a dispatch rate of the topic or a subscription is relative to the publish rate."""
        self.subscribe: SubscribeLimiter | None = None
        self.subscribe_level = Level.BROKER
        self.publish: tuple[Limiter, ...] = ()
        """Limiters of its producers."""
        self.shared: tuple[Limiter, ...] = ()
        """Limiters that its subscriptions share."""
        self.publish_limited = 0
        """Number of receipts that had to wait."""
        self._exempt = is_system(str(policies.name))
        """System topics are not limited."""
        if not self._exempt:
            self.update(BEGINNING)
            policies.on_change(self.changed)

    def changed(self, now: Now) -> None:
        """Apply changed policies at once."""
        self.update(now)
        for subscription in self._members.throttled_subscriptions():
            before = subscription.throttle.limiters
            self.prepare(subscription.name, subscription.throttle, now)
            if before:
                subscription.dispatch(now)

    def update(self, now: Now) -> None:
        """Set the limiters from the current policies."""
        get = self._policies.found
        name = self._policies.get(RESOURCE_GROUP)
        self.group = self._box.group(name, now) if name else None
        self._update_publishing(now)
        rate, self.subscribe_level = get(SUBSCRIBE_RATE)
        if self.subscribe is None and rate.times > 0:
            self.subscribe = SubscribeLimiter()
        if self.subscribe is not None:
            self.subscribe.set(rate, time_of(now))
        if self._more is not None:
            rate_out, level = get(DISPATCH_RATE)
            self.relative = False
            self.dispatch = self._set(self.dispatch, LimitScope.TOPIC, rate_out, level, now)
            group = (self.group.dispatch,) if self.group is not None else ()
            own = (self.dispatch,) if self.dispatch is not None else ()
            self.shared = (self._box.dispatch, *group, *own)

    def _update_publishing(self, now: Now) -> None:
        rate, level = self._policies.found(PUBLISH_RATE)
        limit = limit_of(rate)
        before = self.publish
        if self.publish_limiter is None and limit is not None:
            self.publish_limiter = self._box.limiter(LimitScope.TOPIC, self.topic)
        chain = [self._box.publish]
        if self.group is not None:
            chain.append(self.group.publish)
        if self.publish_limiter is not None:
            self.publish_limiter.set(limit, level, now)
            chain.append(self.publish_limiter)
        self.publish = tuple(each for each in chain if each.step is not None)
        if before and self.publish != before:
            for producer in self._members.producers_now():
                producer.limits_changed(before, now)

    def _set(
        self, limiter: Limiter | None, scope: LimitScope, rate: DispatchRate, level: Level, now: Now, name: str = ""
    ) -> Limiter | None:
        limit = limit_of(rate)
        if limit is not None and rate.relative:
            self.relative = True
        if limiter is None:
            if limit is None:
                return None
            limiter = self._box.limiter(scope, name or self.topic)
        limiter.set(limit, level, now, self._more if rate.relative else None)
        return limiter

    def published(self, now: Now) -> None:
        """Count confirmed entries towards rates that are relative to the publish rate."""
        at = time_of(now)
        if self.dispatch is not None:
            self.dispatch.count(at)
        for subscription in self._members.throttled_subscriptions():
            own = subscription.throttle.own
            if own is not None:
                own.count(at)

    def throttle(self, name: str, source: ThrottledSource, dispatch: Callable[[Now], None]) -> DispatchThrottle:
        """Return the throttling of a newly loaded subscription; ``dispatch`` resumes it."""
        throttle = DispatchThrottle(self._box.rules, source, dispatch)
        if not self._exempt:
            self.prepare(name, throttle, BEGINNING)
        return throttle

    def prepare(self, name: str, throttle: DispatchThrottle, now: Now) -> None:
        """Set the limiters of a subscription from its policies."""
        rate, level = self._policies.subscription_rate(name)
        throttle.own = self._set(throttle.own, LimitScope.SUBSCRIPTION, rate, level, now, name)
        throttle.use(self.shared, now)

    def end(self) -> None:
        """Release the limiters of a deleted or unloaded topic."""
        for subscription in self._members.throttled_subscriptions():
            subscription.throttle.end(BEGINNING)

    def check_subscribe(self, who: Who, now: Now) -> None:
        """Check that a consumer may subscribe. Raises NotAllowed if it has done so too often."""
        if self.subscribe is not None:
            self.subscribe.check(who, time_of(now))
