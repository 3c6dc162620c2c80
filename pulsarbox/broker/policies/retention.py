"""Retention: how long what every subscription has acknowledged is kept.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#retention-policies.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings

UNLIMITED: Final = -1


class Retention(NamedTuple):
    """How long what is acknowledged is kept: until it is too old, or the topic too large. -1: no such limit."""

    time_ms: int
    size: int


DISABLED: Final = Retention(0, 0)
"""What is acknowledged is not kept."""


def _retention(minutes: int, megabytes: int) -> Retention:
    return Retention(
        minutes * 60_000 if minutes >= 0 else UNLIMITED,
        megabytes << 20 if megabytes >= 0 else UNLIMITED,
    )


def _read(value: dict[str, Any]) -> Retention:
    return _retention(value["retentionTimeInMinutes"], value["retentionSizeInMB"])


def _of_broker(settings: Settings) -> Retention:
    return _retention(settings.defaultRetentionTimeInMinutes, settings.defaultRetentionSizeInMB)


RETENTION: Final = Policy("retention", "retention_policies", "retentionPolicies", _read, _of_broker)
