"""Limits on the numbers of producers, consumers, subscriptions and topics. 0: no limit.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, maxProducersPerTopic and the others.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

MAX_PRODUCERS: Final = Policy("max-producers", int)
MAX_CONSUMERS: Final = Policy("max-consumers", int)
MAX_CONSUMERS_PER_SUBSCRIPTION: Final = Policy("max-consumers-per-subscription", int)
MAX_SUBSCRIPTIONS: Final = Policy("max-subscriptions-per-topic", int)
MAX_TOPICS: Final = Policy("max-topics-per-namespace", int)
