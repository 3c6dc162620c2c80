"""Message TTL: how long a message may stay unacknowledged.

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
    """From when on an entry gets old (ms since 1970): its publish time, delay or none, as in Pulsar.

    A client whose clock is ahead does not make its messages younger than they are.
    """
    return min(entry.publish_time, entry.append_time)
