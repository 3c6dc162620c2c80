"""Backlog quotas: limits on the size and age of a topic's backlog, and the action when one is reached.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#backlog-quotas.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.protocol.policies.policy_values import (
    AGE_QUOTA,
    QUOTA_ACTIONS,
    SIZE_QUOTA,
    quota_action,
    quota_seconds,
    quota_size,
)
from pulsarbox.protocol.policies.shapes import NO_LIMIT

UNLIMITED: Final = NO_LIMIT


class Follows(StrEnum):
    """The action when a limit is reached, as named in the Admin API."""

    HOLD = QUOTA_ACTIONS["hold"]
    EXCEPTION = QUOTA_ACTIONS["refuse"]
    EVICTION = QUOTA_ACTIONS["evict"]


class Quota(NamedTuple):
    """A limit in bytes or ms (-1: none), its action, and whether delayed messages are excluded until they are due."""

    limit: int
    follows: Follows
    exclude_delayed: bool = False

    @property
    def target(self) -> int:
        """The backlog left by an eviction: 90 % of the limit, as in Pulsar."""
        return self.limit * 9 // 10


def _reader(limit: Callable[[dict[str, Any]], int]) -> Callable[[dict[str, Any]], Quota]:
    def read(value: dict[str, Any]) -> Quota:
        return Quota(limit(value), Follows(quota_action(value)), bool(value.get("excludeDelayed", False)))

    return read


def _age(value: dict[str, Any]) -> int:
    seconds = quota_seconds(value)
    return seconds * 1000 if seconds > 0 else UNLIMITED


BACKLOG_SIZE: Final = Policy(SIZE_QUOTA, _reader(quota_size))
BACKLOG_AGE: Final = Policy(AGE_QUOTA, _reader(_age))


def too_old_at(quota: Quota, oldest: int) -> int:
    """Return when a backlog reaches its age limit, given when the age of its oldest message begins; 0: never."""
    return oldest + quota.limit if quota.limit > 0 and oldest else 0
