"""The live view of subscriptions: backlogs, their trend, and why they are not being consumed."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.stats.blocked_reason_text import TEXTS, BlockedReasonText
from pulsarbox.broker.stats.topic_samples import SubscriptionSample
from pulsarbox.broker.subscription.subscription import TYPE_NAMES, Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.server.live.view import LiveView, ViewColumn, ViewScope, kept

UNACKNOWLEDGED: Final = "unacknowledged"
"""The cause of a backlog that has been dispatched completely."""
_UNACKNOWLEDGED_TEXT: Final = "all messages are dispatched but not yet acknowledged"


def cause(sample: SubscriptionSample) -> BlockedReasonText | None:
    """Return why a backlog is not being consumed; None without a backlog."""
    if not sample.backlog:
        return None
    subscription = sample.subscription
    if not isinstance(subscription, Subscription):
        return BlockedReasonText(Reason.NO_CONSUMER, 0, TEXTS[Reason.NO_CONSUMER])
    why = subscription.blocked_reason()
    if why.reason == Reason.END_OF_LOG:
        return why._replace(reason=UNACKNOWLEDGED, text=_UNACKNOWLEDGED_TEXT)
    return why


class _Cause:
    """The columns of a backlog's cause, computed once per row."""

    def __init__(self) -> None:
        self._last: tuple[SubscriptionSample | None, Now | None, BlockedReasonText | None] = (None, None, None)

    def _of(self, sample: SubscriptionSample, now: Now) -> BlockedReasonText | None:
        if self._last[0] is not sample or self._last[1] is not now:
            self._last = sample, now, cause(sample)
        return self._last[2]

    def column(self, part: str) -> ViewColumn:
        """Return the column of one member of the cause."""
        take = attrgetter(part)

        def make(sample: SubscriptionSample, now: Now) -> Any:
            found = self._of(sample, now)
            return None if found is None else take(found)

        return ViewColumn(make)


_CAUSE: Final = _Cause()


def oldest(sample: SubscriptionSample, now: Now) -> float | None:
    """Return the age of the oldest unacknowledged message in seconds; None without one, or until it is read."""
    topic = sample.topic.topic
    begins = None if not isinstance(topic, PersistentTopic) else topic.core.ages.begins(sample, topic.reader, now)
    return None if begins is None else max(now.wall - begins, 0) / 1000


def _type(sample: SubscriptionSample) -> str | None:
    subscription = sample.subscription
    if subscription is None or (isinstance(subscription, Subscription) and not subscription.served):
        return None  # no consumer has determined the type yet
    return TYPE_NAMES[subscription.type]


def _delayed(sample: SubscriptionSample, now: Now) -> int | None:
    subscription = sample.subscription
    return subscription.delayed(now) if isinstance(subscription, Subscription) else None


COLUMNS: Final = {
    "topic": kept(attrgetter("topic.name")),
    "subscription": kept(attrgetter("name")),
    "type": kept(_type),
    "backlog": kept(attrgetter("backlog")),
    "change": kept(attrgetter("change")),
    "inRate": kept(attrgetter("in_rate")),
    "outRate": kept(attrgetter("out_rate")),
    "unacked": kept(attrgetter("unacked")),
    "consumers": kept(attrgetter("consumers")),
    "trend": ViewColumn(lambda sample, now: sample.trend),
    "oldest": ViewColumn(oldest),
    "cause": _CAUSE.column("reason"),
    "causeText": _CAUSE.column("text"),
    "causeSince": _CAUSE.column("since"),
    "drain": kept(attrgetter("drain")),
    "delayed": ViewColumn(_delayed),
    "loaded": kept(lambda sample: sample.subscription is not None),
}


def _things(broker: Broker, scope: ViewScope, now: Now) -> Iterator[SubscriptionSample | None]:
    for topic in broker.samples.every():
        if scope.holds(topic.namespace):
            yield from list(topic.subscriptions.values())
        else:
            yield None


SUBSCRIPTIONS: Final = LiveView(
    "subscriptions",
    COLUMNS,
    _things,
    sort="backlog",
    searched=lambda sample: (sample.topic.name, sample.name),
    refresh=lambda sample, now: sample.topic.refresh_one(sample, now.monotonic),
)
