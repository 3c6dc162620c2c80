"""Whether clients make the topics and subscriptions that they name and that do not exist.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-topics/, auto-creation of topics and subscriptions.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy


class AutoTopics(NamedTuple):
    """Whether, and what kind of topic comes into being."""

    allowed: bool
    partitions: int
    """0 for a topic that is not partitioned."""


def _read_topics(value: dict[str, Any]) -> AutoTopics:
    partitioned = value.get("topicType") == "partitioned"
    return AutoTopics(
        bool(value["allowAutoTopicCreation"]), value.get("defaultNumPartitions") or 1 if partitioned else 0
    )


def _read_subscriptions(value: dict[str, Any]) -> bool:
    return bool(value["allowAutoSubscriptionCreation"])


AUTO_TOPICS: Final = Policy("auto-topic-creation", _read_topics)
AUTO_SUBSCRIPTIONS: Final = Policy("auto-subscription-creation", _read_subscriptions)
