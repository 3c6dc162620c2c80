"""What the limiters of a topic and of its subscriptions say of themselves: for statistics and for people."""

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
    """One limiter that holds, as it is now."""

    limits: str
    """What it limits: DISPATCH, PUBLISH or SUBSCRIBE (there: times of one consumer, where it says messages)."""
    scope: str
    """Who shares it: see Scope."""
    name: str
    """Of the resource group, topic or subscription; empty for the box."""
    setBy: str  # noqa: N815  # the names are those of the JSON that is made of it
    """Who has set it: topic, namespace, broker, or a resource group."""
    periodSeconds: int  # noqa: N815
    messagesLimit: int  # noqa: N815
    """A period, with what comes on top of it; 0: any number."""
    messagesUsed: int  # noqa: N815
    """Of this period, with what earlier ones took too many; 0 where messages are not limited."""
    bytesLimit: int  # noqa: N815
    bytesUsed: int  # noqa: N815
    nextPeriodMillis: int  # noqa: N815
    """Until something may go again, where it is used up; else 0."""
    waiting: int
    """Subscriptions or producers that wait for it."""
    heldMillisLastMinute: int  # noqa: N815
    """For how long of the last minute it held something back."""


def topic_report(limits: TopicLimits, now: Now) -> list[LimiterReport]:
    """The limiters that a topic has for all who use it: for its producers, its subscriptions together, and for each
    that subscribes."""
    found = [*_reports(PUBLISH, limits.publish, now), *_reports(DISPATCH, limits.shared, now)]
    subscribe = limits.subscribe
    if subscribe is not None and subscribe.rate.times > 0:
        times, period_s = subscribe.rate
        level = str(limits.subscribe_level)
        topic = limits.topic
        found.append(LimiterReport(SUBSCRIBE, "consumer", topic, level, period_s, times, subscribe.used, 0, 0, 0, 0, 0))
    return found


def subscription_report(throttle: DispatchThrottle, now: Now) -> list[LimiterReport]:
    """The limiters of one subscription, those that it shares with others among them."""
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
