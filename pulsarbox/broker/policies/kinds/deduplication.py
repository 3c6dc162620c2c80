"""Deduplication: whether messages that a producer sends again are stored only once.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-deduplication/.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

DEDUPLICATION: Final = Policy("deduplication", bool)
