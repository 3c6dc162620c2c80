"""Backlog quotas: how large and how old a topic's backlog may become, and what follows then.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#backlog-quotas.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings

UNLIMITED: Final = -1
SIZE: Final = "destination_storage"
AGE: Final = "message_age"


class Follows(StrEnum):
    """What follows when a limit is reached, as the Admin API calls it."""

    HOLD = "producer_request_hold"
    EXCEPTION = "producer_exception"
    EVICTION = "consumer_backlog_eviction"


class Quota(NamedTuple):
    """A limit in bytes or milliseconds, -1 for none; what follows; whether what is not due yet counts."""

    limit: int
    follows: Follows
    exclude_delayed: bool = False

    @property
    def target(self) -> int:
        """How much an eviction leaves: nine tenths of the limit, as in Pulsar."""
        return self.limit * 9 // 10


def _reader(kind: str, limit: Callable[[dict[str, Any]], int]) -> Callable[[dict[str, Any]], Quota | None]:
    def read(quotas: dict[str, Any]) -> Quota | None:
        value = quotas.get(kind)
        if value is None:
            return None
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


def _size_of_broker(settings: Settings) -> Quota:
    size = settings.backlogQuotaDefaultLimitBytes
    if settings.backlogQuotaDefaultLimitGB > 0:
        size = int(settings.backlogQuotaDefaultLimitGB * (1 << 30))
    return Quota(size, Follows(settings.backlogQuotaDefaultRetentionPolicy))


def _age_of_broker(settings: Settings) -> Quota:
    seconds = settings.backlogQuotaDefaultLimitSecond
    limit = seconds * 1000 if seconds > 0 else UNLIMITED
    return Quota(limit, Follows(settings.backlogQuotaDefaultRetentionPolicy))


BACKLOG_SIZE: Final = Policy(
    "backlog-quota", "backlog_quota_map", "backLogQuotaMap", _reader(SIZE, _size), _size_of_broker
)
BACKLOG_AGE: Final = Policy("backlog-quota", "backlog_quota_map", "backLogQuotaMap", _reader(AGE, _age), _age_of_broker)
"""The two kinds of quota stand in one map, and each has its own level."""


def too_old_at(quota: Quota, oldest: int) -> int:
    """When a backlog whose oldest message begins to age at ``oldest`` reaches its limit (ms since 1970); 0: never."""
    return oldest + quota.limit if quota.limit > 0 and oldest else 0
