"""Unsubscribed retention: how long messages are kept that no subscription has covered.

A rule of the box, which Pulsar does not have: there, such messages are trimmed with their ledger and deleted with their
inactive topic. A retention policy of the topic, its namespace or the broker takes the place of this rule.
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
    # A retention policy of the topic or its namespace takes the place of the rule, be it one that keeps nothing.
    minutes = value.get("unsubscribedRetentionTimeInMinutes", 0)
    return minutes * 60_000 if minutes >= 0 else UNLIMITED


UNSUBSCRIBED_TIME: Final = Policy(UNSUBSCRIBED_RETENTION.name, _read)
"""Milliseconds for which a topic keeps such messages; OFF: Pulsar's rules hold, UNLIMITED: time does not end it."""


def bounds_of(time_ms: int, limit: int, most: LedgerBounds) -> LedgerBounds:
    """The bounds of ledgers under this rule, within those of the settings: small parts of ``limit`` bytes for all
    topics (UNLIMITED: there is no limit), an eighth of the time. Pure."""
    size = max(limit // _SHARE, _LEAST_BYTES) if limit > 0 else most.size
    return ledger_bounds(Retention(time_ms, UNLIMITED), LedgerBounds(min(most.size, size), most.age))


def limit_of(settings: Settings, capacity: int) -> int:
    """The bytes of such messages that all topics may hold together; UNLIMITED: any number. ``capacity``: bytes of what
    a percentage is of, 0 while that is not known."""
    found = disk_share(settings.unsubscribedRetentionSize).of(capacity)
    return UNLIMITED if found is None else found
