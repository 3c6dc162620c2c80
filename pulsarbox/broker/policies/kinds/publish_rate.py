"""Publish rates: messages and bytes per second that a topic accepts from all its producers.

Sources: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/#set-publish-rate, PublishRate.normalize of Pulsar
4.2: a rate that limits nothing does not set the policy.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings


class PublishRate(NamedTuple):
    """A limit on publishing per second. 0: no limit."""

    messages: int
    bytes: int

    @property
    def limits(self) -> bool:
        """Whether there is any limit."""
        return self.messages > 0 or self.bytes > 0


UNLIMITED: Final = PublishRate(0, 0)


def _read(value: dict[str, Any]) -> PublishRate:
    return PublishRate(
        max(value.get("publishThrottlingRateInMsg", -1), 0),
        max(value.get("publishThrottlingRateInByte", -1), 0),
    )


def of_box(settings: Settings) -> PublishRate:
    """Return the limit on the total publish rate of the box."""
    return PublishRate(
        max(settings.brokerPublisherThrottlingMaxMessageRate, 0),
        max(settings.brokerPublisherThrottlingMaxByteRate, 0),
    )


PUBLISH_RATE: Final = Policy("publish-rate", _read)
"""Limit of a topic or partition, shared by its producers."""
