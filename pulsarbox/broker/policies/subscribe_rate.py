"""Subscribe rates: how often in a period one consumer may subscribe to a topic.

Sources: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/#set-subscribe-rate, SubscribeRate.normalize of
Pulsar 4.2: a rate that limits nothing says nothing, and the level below is asked.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings


class SubscribeRate(NamedTuple):
    """How often one consumer may subscribe in each period. 0: no limit."""

    times: int
    period_s: int


UNLIMITED: Final = SubscribeRate(0, 30)


def _read(value: dict[str, Any]) -> SubscribeRate | None:
    times, period_s = value.get("subscribeThrottlingRatePerConsumer", -1), value.get("ratePeriodInSecond", 30)
    return SubscribeRate(times, period_s) if times > 0 and period_s > 0 else None


def _of_broker(settings: Settings) -> SubscribeRate:
    return SubscribeRate(
        max(settings.subscribeThrottlingRatePerConsumer, 0), settings.subscribeRatePeriodPerConsumerInSecond
    )


SUBSCRIBE_RATE: Final = Policy(
    "subscribe-rate", "clusterSubscribeRate", "subscribeRate", _read, _of_broker, by_cluster=True
)
