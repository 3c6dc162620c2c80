"""Compaction threshold: the backlog in bytes at which a topic is compacted automatically; 0: never.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-compaction/.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.recovery import StoredTopic

COMPACTION_THRESHOLD: Final = Policy("compaction-threshold", int)


def is_worth_compacting(stored: StoredTopic, threshold: int) -> bool:
    """Return whether more than ``threshold`` bytes are not compacted, or the topic was never compacted."""
    for cursor in stored.cursors.values():
        if cursor.name == COMPACTION_SUBSCRIPTION:
            return cursor.backlog_bytes > threshold
    return True
