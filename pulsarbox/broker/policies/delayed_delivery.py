"""Whether messages may be delivered later than they are published.

Source: https://pulsar.apache.org/docs/4.2.x/concepts-messaging/#delayed-message-delivery.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy


class DelayedDelivery(NamedTuple):
    """Whether, how exactly, and how long at most."""

    active: bool
    tick_ms: int
    max_delay_ms: int
    """0: as long as the producer says."""


def _read(value: dict[str, Any]) -> DelayedDelivery:
    return DelayedDelivery(value["active"], value["tickTime"], value["maxDeliveryDelayInMillis"])


OF_BROKER: Final = DelayedDelivery(True, 1000, 0)
"""Pulsar's own values."""
DELAYED_DELIVERY: Final = Policy(
    "delayed-delivery", "delayed_delivery_policies", "delayedDelivery", _read, lambda settings: OF_BROKER
)
