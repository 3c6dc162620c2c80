"""Subscription expiration: the time without consumers after which a durable subscription is deleted.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/#configure-subscription-expiration-time.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy


def _read(minutes: int) -> int:
    return minutes * 60_000


SUBSCRIPTION_EXPIRATION: Final = Policy("subscription-expiration-time", _read)
"""Milliseconds; 0: subscriptions do not expire."""
