"""Subscription expiration: after how long without consumers a durable subscription is deleted.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/#configure-subscription-expiration-time.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings


def _read(minutes: int) -> int | None:
    return minutes * 60_000 if minutes >= 0 else None  # below 0 a level says nothing, as in Pulsar


def _of_broker(settings: Settings) -> int:
    return settings.subscriptionExpirationTimeMinutes * 60_000


SUBSCRIPTION_EXPIRATION: Final = Policy(
    "subscription-expiration-time",
    "subscription_expiration_time_minutes",
    "subscriptionExpirationTimeInMinutes",
    _read,
    _of_broker,
)
"""Milliseconds; 0: subscriptions do not expire."""
