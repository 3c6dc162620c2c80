"""Dispatch rates: how many messages and bytes go out a period, of a topic and of each of its subscriptions.

Sources: https://pulsar.apache.org/docs/4.2.x/concepts-throttling/, DispatchRateImpl.normalize of Pulsar 4.2: a rate
that limits neither messages nor bytes says nothing, and the level below is asked.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings


class DispatchRate(NamedTuple):
    """A limit of what goes out in each period. 0: no such limit."""

    messages: int
    bytes: int
    period_s: int = 1
    relative: bool = False
    """What is published comes on top, as it comes in."""

    @property
    def limits(self) -> bool:
        """Whether there is any limit."""
        return self.messages > 0 or self.bytes > 0


UNLIMITED: Final = DispatchRate(0, 0)


def read(value: dict[str, Any]) -> DispatchRate | None:
    """The rate that a stored value stands for, None where it limits nothing."""
    rate = DispatchRate(
        max(value.get("dispatchThrottlingRateInMsg", -1), 0),
        max(value.get("dispatchThrottlingRateInByte", -1), 0),
        max(value.get("ratePeriodInSecond", 1), 1),
        bool(value.get("relativeToPublishRate", False)),
    )
    return rate if rate.limits else None


def of_box(settings: Settings) -> DispatchRate:
    """What holds for everything that the box dispatches."""
    return _made(settings.dispatchThrottlingRateInMsg, settings.dispatchThrottlingRateInByte, relative=False)


def _of_topics(settings: Settings) -> DispatchRate:
    return _made(
        settings.dispatchThrottlingRatePerTopicInMsg,
        settings.dispatchThrottlingRatePerTopicInByte,
        relative=settings.dispatchThrottlingRateRelativeToPublishRate,
    )


def _of_subscriptions(settings: Settings) -> DispatchRate:
    return _made(
        settings.dispatchThrottlingRatePerSubscriptionInMsg,
        settings.dispatchThrottlingRatePerSubscriptionInByte,
        relative=settings.dispatchThrottlingRateRelativeToPublishRate,
    )


def _made(messages: int, size: int, *, relative: bool) -> DispatchRate:
    return DispatchRate(max(messages, 0), max(size, 0), relative=relative)


def _read_each(value: dict[str, dict[str, Any]]) -> dict[str, DispatchRate]:
    rates = {name: read(policies.get("dispatchRate") or {}) for name, policies in value.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}


DISPATCH_RATE: Final = Policy("dispatch-rate", "topicDispatchRate", "dispatchRate", read, _of_topics, by_cluster=True)
"""Of a topic (of each partition), shared by its subscriptions."""
SUBSCRIPTION_DISPATCH_RATE: Final = Policy(
    "subscription-dispatch-rate",
    "subscriptionDispatchRate",
    "subscriptionDispatchRate",
    read,
    _of_subscriptions,
    by_cluster=True,
)
"""Of each subscription of a topic (of each partition)."""
ONE_SUBSCRIPTION_DISPATCH_RATE: Final[Policy[dict[str, DispatchRate]]] = Policy(
    "one-subscription-dispatch-rate", "", "subscriptionPolicies", _read_each, lambda settings: {}
)
"""Of single subscriptions, by name: wins over what holds for all of a topic."""
