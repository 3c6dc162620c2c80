"""Limits on how many there may be: producers, consumers, subscriptions, topics. 0 is no limit.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, maxProducersPerTopic and the others.
"""

from typing import Any, Final

from pulsarbox.broker.policies.policy import Policy


def at_least_none(value: Any) -> int | None:
    """A limit as it is stored; a negative one says nothing, as in Pulsar."""
    return int(value) if value >= 0 else None


MAX_PRODUCERS: Final = Policy(
    "max-producers",
    "max_producers_per_topic",
    "maxProducerPerTopic",
    at_least_none,
    lambda settings: settings.maxProducersPerTopic,
)
MAX_CONSUMERS: Final = Policy(
    "max-consumers",
    "max_consumers_per_topic",
    "maxConsumerPerTopic",
    at_least_none,
    lambda settings: settings.maxConsumersPerTopic,
)
MAX_CONSUMERS_PER_SUBSCRIPTION: Final = Policy(
    "max-consumers-per-subscription",
    "max_consumers_per_subscription",
    "maxConsumersPerSubscription",
    at_least_none,
    lambda settings: settings.maxConsumersPerSubscription,
)
MAX_SUBSCRIPTIONS: Final = Policy(
    "max-subscriptions-per-topic",
    "max_subscriptions_per_topic",
    "maxSubscriptionsPerTopic",
    at_least_none,
    lambda settings: settings.maxSubscriptionsPerTopic,
)
MAX_TOPICS: Final = Policy(
    "max-topics-per-namespace",
    "max_topics_per_namespace",
    "",
    at_least_none,
    lambda settings: settings.maxTopicsPerNamespace,
)
