"""Auto-creation: whether clients create missing topics and subscriptions by using them.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-topics/, auto-creation of topics and subscriptions.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy


class AutoTopics(NamedTuple):
    """Whether topics are auto-created, and of which kind."""

    allowed: bool
    partitions: int
    """Number of partitions; 0 for a non-partitioned topic."""


def _read_topics(value: dict[str, Any]) -> AutoTopics:
    partitioned = value.get("topicType") == "partitioned"
    return AutoTopics(
        bool(value["allowAutoTopicCreation"]), value.get("defaultNumPartitions") or 1 if partitioned else 0
    )


def _read_subscriptions(value: dict[str, Any]) -> bool:
    return bool(value["allowAutoSubscriptionCreation"])


AUTO_TOPICS: Final = Policy("auto-topic-creation", _read_topics)
AUTO_SUBSCRIPTIONS: Final = Policy("auto-subscription-creation", _read_subscriptions)
