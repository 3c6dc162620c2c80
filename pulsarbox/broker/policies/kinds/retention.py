"""Retention: how long acknowledged messages are kept.

As in Pulsar, whole ledgers are dropped. To approximate the policy, a ledger is closed at an eighth of the retention
size or time, and the current one is dropped as well once the retention of all its entries has ended.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#retention-policies.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.protocol.policies.shapes import NO_LIMIT

UNLIMITED: Final = NO_LIMIT


class Retention(NamedTuple):
    """Limits on acknowledged messages: their age in ms, and the size of the topic in bytes. -1: no limit."""

    time_ms: int
    size: int

    @property
    def keeps(self) -> bool:
        """Whether acknowledged messages are kept: neither limit is 0."""
        return bool(self.time_ms and self.size)


DISABLED: Final = Retention(0, 0)
"""Acknowledged messages are not kept."""


def _read(value: dict[str, Any]) -> Retention:
    minutes, megabytes = value["retentionTimeInMinutes"], value["retentionSizeInMB"]
    return Retention(
        minutes * 60_000 if minutes >= 0 else UNLIMITED,
        megabytes << 20 if megabytes >= 0 else UNLIMITED,
    )


RETENTION: Final = Policy("retention", _read)

_SHARE: Final = 8
_LEAST_BYTES: Final = 1 << 20
_LEAST_MS: Final = 60_000


class LedgerBounds(NamedTuple):
    """Size (bytes) and age (ms) at which a ledger is closed."""

    size: int
    age: int


def ledger_bounds(retention: Retention, most: LedgerBounds) -> LedgerBounds:
    """Return bounds of an eighth of the retention, within those of the settings. Pure."""
    size, age = most
    if retention.size > 0:
        size = min(size, max(retention.size // _SHARE, _LEAST_BYTES))
    if retention.time_ms > 0:
        age = min(age, max(retention.time_ms // _SHARE, _LEAST_MS))
    return LedgerBounds(size, age)


def current_ledger_retention(retention: Retention, least_ms: int) -> int:
    """Return how long after its last entry the current ledger must be kept (ms); -1: always. Pure.

    ``least_ms``: the minimum, so that topics in use do not get a new ledger all the time.
    """
    if not retention.keeps:
        return least_ms
    return max(retention.time_ms, least_ms) if retention.time_ms > 0 else UNLIMITED
