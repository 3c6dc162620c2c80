"""Retention: how long what every subscription has acknowledged is kept.

What goes are whole ledgers, as in Pulsar. So that the result is what the policy says, a ledger is closed when it holds
an eighth of what is to be kept, and the one that grows goes too once all of it has had its time.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#retention-policies.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy

UNLIMITED: Final = -1


class Retention(NamedTuple):
    """How long what is acknowledged is kept: until it is too old, or the topic too large. -1: no such limit."""

    time_ms: int
    size: int


DISABLED: Final = Retention(0, 0)
"""What is acknowledged is not kept."""


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
    """At which size and age (ms) a ledger is closed."""

    size: int
    age: int


def ledger_bounds(retention: Retention, most: LedgerBounds) -> LedgerBounds:
    """The bounds of ledgers of which an eighth of the retention is one, within those of the settings. Pure."""
    size, age = most
    if retention.size > 0:
        size = min(size, max(retention.size // _SHARE, _LEAST_BYTES))
    if retention.time_ms > 0:
        age = min(age, max(retention.time_ms // _SHARE, _LEAST_MS))
    return LedgerBounds(size, age)


def last_ledger_goes_after(retention: Retention, least_ms: int) -> int:
    """How long after its last entry the ledger that grows need not be kept (ms); -1: it always is. Pure.

    ``least_ms``: how long it is left in any case, so that topics in use do not get a new one all the time.
    """
    if retention.time_ms == 0 or retention.size == 0:
        return least_ms
    return max(retention.time_ms, least_ms) if retention.time_ms > 0 else UNLIMITED
