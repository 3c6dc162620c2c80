"""From how many bytes of backlog on a topic is compacted; 0 never.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-compaction/.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.recovery import StoredTopic

COMPACTION_THRESHOLD: Final = Policy("compaction-threshold", int)


def is_worth_compacting(stored: StoredTopic, threshold: int) -> bool:
    """Whether more than so many bytes of a topic are not compacted, or nothing keeps them yet."""
    for cursor in stored.cursors.values():
        if cursor.name == COMPACTION_SUBSCRIPTION:
            return cursor.backlog_bytes > threshold
    return True
