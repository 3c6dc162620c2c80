"""Dispatch rates: messages and bytes per period dispatched from a topic and to each of its subscriptions.

Sources: https://pulsar.apache.org/docs/4.2.x/concepts-throttling/, DispatchRateImpl.normalize of Pulsar 4.2: a rate
that limits neither messages nor bytes does not set the policy.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings


class DispatchRate(NamedTuple):
    """A limit on dispatch in each period. 0: no limit."""

    messages: int
    bytes: int
    period_s: int = 1
    relative: bool = False
    """Whether the limit is in addition to the rate of published messages."""

    @property
    def limits(self) -> bool:
        """Whether there is any limit."""
        return self.messages > 0 or self.bytes > 0


UNLIMITED: Final = DispatchRate(0, 0)


def read(value: dict[str, Any]) -> DispatchRate:
    """Convert a JSON value to a rate."""
    return DispatchRate(
        max(value.get("dispatchThrottlingRateInMsg", -1), 0),
        max(value.get("dispatchThrottlingRateInByte", -1), 0),
        max(value.get("ratePeriodInSecond", 1), 1),
        bool(value.get("relativeToPublishRate", False)),
    )


def of_box(settings: Settings) -> DispatchRate:
    """Return the limit on the total dispatch rate of the box."""
    return DispatchRate(
        max(settings.dispatchThrottlingRateInMsg, 0), max(settings.dispatchThrottlingRateInByte, 0), relative=False
    )


DISPATCH_RATE: Final = Policy("dispatch-rate", read)
"""Limit of a topic or partition, shared by its subscriptions."""
SUBSCRIPTION_DISPATCH_RATE: Final = Policy("subscription-dispatch-rate", read)
"""Limit of each subscription of a topic or partition."""
