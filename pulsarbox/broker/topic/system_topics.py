"""System topics: topics that Pulsar uses internally."""

import re

from pulsarbox.names import parse_topic

SYSTEM_NAMES = re.compile(
    r"__change_events|__transaction_.*|transaction_coordinator_assign|.*__transaction_pending_ack"
)
"""Local names of system topics, which are not listed."""

COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"
"""Partitioned topic whose partitions clients look up to find the transaction coordinators. It does not exist here."""

HEALTH_TOPIC = "persistent://pulsar/system/healthcheck"
"""Topic for the messages of health checks."""


def is_system(name: str) -> bool:
    """Return whether a topic is a system topic."""
    if name == HEALTH_TOPIC:
        return True
    local = name.rpartition("/")[2]
    if "__" not in local and not local.startswith("transaction_coordinator_assign"):
        return False  # fast path for nearly all names: parsing takes ten times as long
    return SYSTEM_NAMES.fullmatch(parse_topic(name).base.local) is not None
