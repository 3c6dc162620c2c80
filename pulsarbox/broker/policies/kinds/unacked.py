"""Limits on unacknowledged messages per consumer and per subscription. 0: no limit.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-topics/, maxUnackedMessagesOnConsumer and OnSubscription.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

MAX_UNACKED_PER_CONSUMER: Final = Policy("max-unacked-messages-per-consumer", int)
MAX_UNACKED_PER_SUBSCRIPTION: Final = Policy("max-unacked-messages-per-subscription", int)
