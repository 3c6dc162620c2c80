"""Topics that Pulsar keeps for itself."""

import re

from pulsarbox.names import parse_topic

SYSTEM_NAMES = re.compile(
    r"__change_events|__transaction_.*|transaction_coordinator_assign|.*__transaction_pending_ack"
)
"""Topics that Pulsar keeps for itself; they are not listed."""

COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"
"""The topic of whose partitions clients ask where each transaction coordinator is. There is no such topic here."""

HEALTH_TOPIC = "persistent://pulsar/system/healthcheck"
"""Where the messages of health checks go."""


def is_system(name: str) -> bool:
    """Whether a topic is one that Pulsar keeps for itself."""
    if name == HEALTH_TOPIC:
        return True
    local = name.rpartition("/")[2]
    if "__" not in local and not local.startswith("transaction_coordinator_assign"):
        return False  # nearly all, and taking a name apart takes ten times as long
    return SYSTEM_NAMES.fullmatch(parse_topic(name).base.local) is not None
