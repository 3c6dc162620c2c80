"""Message TTL: how long a message may remain unacknowledged.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#time-to-live-ttl.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.storage.record import Entry


def _read(seconds: int) -> int:
    return seconds * 1000


MESSAGE_TTL: Final = Policy("message-ttl", _read)
"""Milliseconds; 0: messages do not expire."""


def age_begins(entry: Entry) -> int:
    """Return when the age of an entry begins (ms since 1970): its publish time, even if delayed, as in Pulsar.

    A publish time from a client whose clock is ahead is limited to the append time.
    """
    return min(entry.publish_time, entry.append_time)
