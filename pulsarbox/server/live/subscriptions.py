"""The live view of subscriptions: backlogs, what becomes of them, and why they stand."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.dispatch.standstill import Reason
from pulsarbox.broker.subscription import TYPE_NAMES, Subscription
from pulsarbox.broker.topic_samples import SubscriptionSample
from pulsarbox.broker.why import TEXTS, Why
from pulsarbox.clock import Now
from pulsarbox.server.live.view import Column, Scope, View, kept

UNACKNOWLEDGED: Final = "unacknowledged"
"""The cause of a backlog of which everything is sent."""
_UNACKNOWLEDGED_TEXT: Final = "everything is sent; the consumers have not acknowledged it"


def cause(sample: SubscriptionSample) -> Why | None:
    """Why a backlog stands; None where there is none, or where nothing is stored."""
    if not sample.backlog:
        return None
    subscription = sample.subscription
    if not isinstance(subscription, Subscription):
        return Why(Reason.NO_CONSUMER, 0, TEXTS[Reason.NO_CONSUMER])
    why = subscription.why()
    if why.reason == Reason.END_OF_LOG:
        return why._replace(reason=UNACKNOWLEDGED, text=_UNACKNOWLEDGED_TEXT)
    return why


def _cause(part: str) -> Column:
    take = attrgetter(part)

    def make(sample: SubscriptionSample, now: Now) -> Any:
        found = cause(sample)
        return None if found is None else take(found)

    return Column(make)


def _type(sample: SubscriptionSample) -> str | None:
    subscription = sample.subscription
    if subscription is None or (isinstance(subscription, Subscription) and not subscription.served):
        return None  # nobody has been here yet who would have said
    return TYPE_NAMES[subscription.type]


def _consumers(sample: SubscriptionSample) -> int:
    return len(sample.subscription.consumers) if sample.subscription is not None else 0


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
    "consumers": kept(_consumers),
    "trend": Column(lambda sample, now: sample.trend),
    "cause": _cause("reason"),
    "causeText": _cause("text"),
    "causeSince": _cause("since"),
    "drain": kept(attrgetter("drain")),
    "delayed": Column(_delayed),
    "loaded": kept(lambda sample: sample.subscription is not None),
}


def _things(broker: Broker, scope: Scope, now: Now) -> Iterator[SubscriptionSample]:
    for topic in broker.samples.every():
        if scope.holds(topic.namespace):
            yield from list(topic.subscriptions.values())


SUBSCRIPTIONS: Final = View(
    "subscriptions",
    COLUMNS,
    _things,
    sort="backlog",
    searched=lambda sample: (sample.topic.name, sample.name),
    refresh=lambda sample, now: sample.look(now.monotonic),
)
