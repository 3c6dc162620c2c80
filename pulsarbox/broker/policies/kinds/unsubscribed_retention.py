"""Unsubscribed retention: how long messages that no subscription has covered are kept.

Not a policy of Pulsar, which trims such messages with their ledger and deletes them with their inactive topic. A
retention policy of the topic, its namespace or the broker replaces it.
"""

from typing import Final

from pulsarbox.broker.policies.kinds.retention import UNLIMITED, LedgerBounds, Retention, ledger_bounds
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings
from pulsarbox.config.disk_share import disk_share
from pulsarbox.protocol.policies.table import UNSUBSCRIBED_RETENTION

OFF: Final = 0
_SHARE: Final = 64
_LEAST_BYTES: Final = 1 << 20


def _read(value: dict[str, int]) -> int:
    # A retention policy of the topic or its namespace replaces this one, even a policy that keeps nothing.
    minutes = value.get("unsubscribedRetentionTimeInMinutes", 0)
    return minutes * 60_000 if minutes >= 0 else UNLIMITED


UNSUBSCRIBED_TIME: Final = Policy(UNSUBSCRIBED_RETENTION.name, _read)
"""Milliseconds for which a topic keeps such messages; OFF: Pulsar's rules apply, UNLIMITED: no time limit."""


def bounds_of(time_ms: int, limit: int, most: LedgerBounds) -> LedgerBounds:
    """Return the bounds of ledgers under this policy, within those of the settings. Pure.

    They are a small part of ``limit``, the bytes for all topics (UNLIMITED: no limit), and an eighth of the time.
    """
    size = max(limit // _SHARE, _LEAST_BYTES) if limit > 0 else most.size
    return ledger_bounds(Retention(time_ms, UNLIMITED), LedgerBounds(min(most.size, size), most.age))


def limit_of(settings: Settings, capacity: int) -> int:
    """Return the limit in bytes of such messages for all topics together; UNLIMITED: no limit.

    ``capacity``: the bytes of which a percentage is taken, 0 if unknown.
    """
    found = disk_share(settings.unsubscribedRetentionSize).of(capacity)
    return UNLIMITED if found is None else found
