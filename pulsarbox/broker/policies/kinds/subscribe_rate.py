"""Subscribe rates: how often per period a consumer may subscribe to a topic.

Sources: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/#set-subscribe-rate, SubscribeRate.normalize of
Pulsar 4.2: a rate that limits nothing does not set the policy.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy


class SubscribeRate(NamedTuple):
    """A limit on the subscribe requests of one consumer in each period. 0: no limit."""

    times: int
    period_s: int


UNLIMITED: Final = SubscribeRate(0, 30)


def _read(value: dict[str, Any]) -> SubscribeRate:
    times, period_s = value.get("subscribeThrottlingRatePerConsumer", -1), value.get("ratePeriodInSecond", 30)
    return SubscribeRate(max(times, 0), max(period_s, 1))


SUBSCRIBE_RATE: Final = Policy("subscribe-rate", _read)
