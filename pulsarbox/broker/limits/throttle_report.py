"""Reports on the limiters of a topic and its subscriptions, for statistics and diagnostics."""

from collections.abc import Iterator
from typing import NamedTuple

from pulsarbox.broker.limits.dispatch_throttle import DispatchThrottle
from pulsarbox.broker.limits.limiter import Limiter, time_of
from pulsarbox.broker.limits.topic_limits import TopicLimits
from pulsarbox.clock import Now

DISPATCH = "dispatch"
PUBLISH = "publish"
SUBSCRIBE = "subscribe"


class LimiterReport(NamedTuple):
    """The current state of one limiter in effect."""

    limits: str
    """DISPATCH, PUBLISH or SUBSCRIBE; for SUBSCRIBE, the message fields count one consumer's attempts."""
    scope: str
    """See Scope."""
    name: str
    """Name of the resource group, topic or subscription; empty for the box."""
    setBy: str  # noqa: N815  # the names are those of the JSON that is made of it
    """Level that set the limit: topic, namespace, broker or resource group."""
    periodSeconds: int  # noqa: N815
    messagesLimit: int  # noqa: N815
    """Per period, including the relative part; 0 means unlimited."""
    messagesUsed: int  # noqa: N815
    """In this period, including debt of earlier ones; 0 if messages are unlimited."""
    bytesLimit: int  # noqa: N815
    bytesUsed: int  # noqa: N815
    nextPeriodMillis: int  # noqa: N815
    """Time until the next period with an allowance if used up, else 0."""
    waiting: int
    """Number of waiting subscriptions or producers."""
    heldMillisLastMinute: int  # noqa: N815
    """Milliseconds of the last minute during which something waited."""


def topic_report(limits: TopicLimits, now: Now) -> list[LimiterReport]:
    """Return a topic's limiters for producers, for all subscriptions together, and for subscribing."""
    found = [*_reports(PUBLISH, limits.publish, now), *_reports(DISPATCH, limits.shared, now)]
    subscribe = limits.subscribe
    if subscribe is not None and subscribe.rate.times > 0:
        times, period_s = subscribe.rate
        level = str(limits.subscribe_level)
        topic = limits.topic
        found.append(LimiterReport(SUBSCRIBE, "consumer", topic, level, period_s, times, subscribe.used, 0, 0, 0, 0, 0))
    return found


def subscription_report(throttle: DispatchThrottle, now: Now) -> list[LimiterReport]:
    """Return the limiters of one subscription, including shared ones."""
    return list(_reports(DISPATCH, throttle.limiters, now))


def _reports(limits: str, limiters: tuple[Limiter, ...], now: Now) -> Iterator[LimiterReport]:
    at = time_of(now)
    for limiter in limiters:
        step = limiter.step
        if step is None:
            continue
        step.refill(at)
        messages, size = step.capacity
        yield LimiterReport(
            limits=limits,
            scope=str(limiter.scope),
            name=limiter.name,
            setBy=str(limiter.level),
            periodSeconds=step.limit.period_ms // 1000,
            messagesLimit=messages if step.limit.messages else 0,
            messagesUsed=messages - step.left_messages if step.limit.messages else 0,
            bytesLimit=size if step.limit.bytes else 0,
            bytesUsed=size - step.left_bytes if step.limit.bytes else 0,
            nextPeriodMillis=max(step.free_at() - at, 0) if step.used_up else 0,
            waiting=limiter.waiting,
            heldMillisLastMinute=limiter.holds.last_minute(at),
        )
