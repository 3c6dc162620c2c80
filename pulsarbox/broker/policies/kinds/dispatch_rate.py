"""Dispatch rates: how many messages and bytes go out a period, of a topic and of each of its subscriptions.

Sources: https://pulsar.apache.org/docs/4.2.x/concepts-throttling/, DispatchRateImpl.normalize of Pulsar 4.2: a rate
that limits neither messages nor bytes does not set the policy.
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


def read(value: dict[str, Any]) -> DispatchRate:
    """Return the rate that a value stands for."""
    return DispatchRate(
        max(value.get("dispatchThrottlingRateInMsg", -1), 0),
        max(value.get("dispatchThrottlingRateInByte", -1), 0),
        max(value.get("ratePeriodInSecond", 1), 1),
        bool(value.get("relativeToPublishRate", False)),
    )


def of_box(settings: Settings) -> DispatchRate:
    """Return the rate of everything that the box dispatches."""
    return DispatchRate(
        max(settings.dispatchThrottlingRateInMsg, 0), max(settings.dispatchThrottlingRateInByte, 0), relative=False
    )


DISPATCH_RATE: Final = Policy("dispatch-rate", read)
"""Of a topic (of each partition), shared by its subscriptions."""
SUBSCRIPTION_DISPATCH_RATE: Final = Policy("subscription-dispatch-rate", read)
"""Of each subscription of a topic (of each partition)."""
