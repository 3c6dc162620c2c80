"""Backlog quotas: limits on the size and age of a topic's backlog, and the action when one is reached.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#backlog-quotas.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.protocol.policies.table import quota_name

UNLIMITED: Final = -1
SIZE: Final = "destination_storage"
AGE: Final = "message_age"


class Follows(StrEnum):
    """The action when a limit is reached, as named in the Admin API."""

    HOLD = "producer_request_hold"
    EXCEPTION = "producer_exception"
    EVICTION = "consumer_backlog_eviction"


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
        return Quota(
            limit(value), Follows(value.get("policy") or Follows.HOLD), bool(value.get("excludeDelayed", False))
        )

    return read


def _size(value: dict[str, Any]) -> int:
    given = [value[name] for name in ("limitSize", "limit") if value.get(name) is not None]
    return max(int(given[0]), UNLIMITED) if given else UNLIMITED


def _age(value: dict[str, Any]) -> int:
    seconds = int(value.get("limitTime") or UNLIMITED)
    return seconds * 1000 if seconds > 0 else UNLIMITED  # 0 is no limit either, as in Pulsar


BACKLOG_SIZE: Final = Policy(quota_name(SIZE), _reader(_size))
BACKLOG_AGE: Final = Policy(quota_name(AGE), _reader(_age))


def too_old_at(quota: Quota, oldest: int) -> int:
    """Return when a backlog reaches its age limit, given when the age of its oldest message begins; 0: never."""
    return oldest + quota.limit if quota.limit > 0 and oldest else 0
