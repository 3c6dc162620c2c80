"""From how many bytes of backlog on a topic is compacted; 0 never.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-compaction/.
"""

from typing import Final

from pulsarbox.broker.policies.counts import at_least_none
from pulsarbox.broker.policies.policy import Policy

COMPACTION_THRESHOLD: Final = Policy(
    "compaction-threshold", "compaction_threshold", "compactionThreshold", at_least_none, lambda settings: 0
)
