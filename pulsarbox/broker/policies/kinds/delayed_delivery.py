"""Delayed delivery: whether delivery times of messages are respected, and the maximum delay.

Source: https://pulsar.apache.org/docs/4.2.x/concepts-messaging/#delayed-message-delivery.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.errors import NotAllowed
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata


class DelayedDelivery(NamedTuple):
    """Whether delays are respected, their resolution, and the maximum delay."""

    active: bool
    tick_ms: int
    max_delay_ms: int
    """0: no limit."""


def _read(value: dict[str, Any]) -> DelayedDelivery:
    return DelayedDelivery(value["active"], value["tickTime"], value["maxDeliveryDelayInMillis"])


DELAYED_DELIVERY: Final = Policy("delayed-delivery", _read)


def check_delay(metadata: MessageMetadata, policies: TopicPolicies) -> None:
    """Raise NotAllowed if the delay of a message exceeds the maximum of its topic."""
    active, _, longest = policies.get(DELAYED_DELIVERY)
    if active and longest > 0 and metadata.deliver_at_time - metadata.publish_time > longest:
        raise NotAllowed(f"Exceeds max allowed delivery delay of {longest} milliseconds")
