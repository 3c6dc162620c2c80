"""Topics that Pulsar keeps for itself."""

import re
from typing import Final

from pulsarbox.names import parse_topic

SYSTEM_NAMES: Final = re.compile(
    r"__change_events|__transaction_.*|transaction_coordinator_assign|.*__transaction_pending_ack"
)
"""They are not listed, and not deleted because nobody uses them."""


def is_system(name: str) -> bool:
    """Whether a topic is one of them."""
    local = name.rpartition("/")[2]
    if "__" not in local and not local.startswith("transaction_coordinator_assign"):
        return False  # nearly all, and taking a name apart takes ten times as long
    return SYSTEM_NAMES.fullmatch(parse_topic(name).base.local) is not None
