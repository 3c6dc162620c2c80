"""Inactive topics: which unused topics are deleted, and after how long.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-topics/ (inactive-topic-policies), and
brokerDeleteInactiveTopics* in broker.conf.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.kinds.retention import Retention
from pulsarbox.broker.policies.policy import Policy

CAUGHT_UP: Final = "delete_when_subscriptions_caught_up"
NO_SUBSCRIPTIONS: Final = "delete_when_no_subscriptions"


class InactiveTopic(NamedTuple):
    """Whether unused topics are deleted, which ones, and after how many milliseconds."""

    delete: bool
    mode: str
    after: int


LEAST_MS: Final = 1000
"""Minimum time without use before a topic counts as inactive."""


def _read(value: dict[str, Any]) -> InactiveTopic:
    mode = value.get("inactiveTopicDeleteMode")
    delete = bool(value.get("deleteWhileInactive")) and mode is not None  # as in Pulsar, which stores partial values
    seconds = value.get("maxInactiveDurationSeconds") or 0
    return InactiveTopic(delete, mode or NO_SUBSCRIPTIONS, max(seconds * 1000, LEAST_MS))


INACTIVE_TOPIC: Final = Policy("inactive-topic-policies", _read)


def delete_at(policy: InactiveTopic, retention: Retention, *, unused_since: int, empty: bool) -> int:
    """Return when a topic unused since ``unused_since`` is to be deleted (ms since 1970); 0: never. Pure.

    As in Pulsar, a topic with entries is also kept for its retention time, regardless of the retention size.
    """
    if not policy.delete or (not empty and retention.time_ms < 0):
        return 0
    return unused_since + (policy.after if empty else max(policy.after, retention.time_ms))
