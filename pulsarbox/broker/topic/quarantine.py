"""Quarantine of damaged entries: each is reported once, stored as it is and never dispatched.

Subscriptions continue after a damaged entry. If its header is intact, each subscription that reaches it acknowledges
it, so that it does not keep its ledger from being trimmed. If nothing is known of it (an unreadable volume), it is
skipped and stays in the backlog.
"""

import logging
from base64 import b64encode
from collections.abc import Callable

from pulsarbox.broker.events import Events
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.catalog import Catalog, quarantine_key
from pulsarbox.storage.cursor import ManagedCursor

log = logging.getLogger(__name__)

SetAside = Callable[[EntryDamaged, Now], None]
"""A subscription's callback for a read that found damaged entries; the reader continues after them."""


class Quarantine:
    """Stores and reports damaged entries."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, events: Events) -> None:
        self._catalog = catalog
        self._commits = commits
        self._events = events

    def add(self, damage: EntryDamaged, cursor: ManagedCursor, now: Now) -> bool:
        """Quarantine damaged entries that a subscription has reached.

        Return whether its cursor acknowledged them; the subscription then handles the consequences.
        """
        self.report(damage, now)
        if damage.counts is None:
            return False
        cursor.acknowledge(damage.ledger_id, damage.first, *damage.counts)
        return True

    def report(self, damage: EntryDamaged, now: Now) -> None:
        """Report and store damaged entries, once."""
        key = quarantine_key(damage.ledger_id, damage.first)
        if key not in self._catalog:
            topic = self._catalog.owner(damage.ledger_id)
            log.error("topic %s: %s; it is quarantined, and consumers continue after it", topic, damage)
            text = f"{damage}; it is quarantined, and consumers continue after it"
            self._events.report("quarantined", str(topic), text, now, ledger=damage.ledger_id, entry=damage.first)
            row = {"topic": topic, "last": damage.last, "reason": damage.reason, "found": now.wall}
            self._commits.put_row(key, row | {"body": b64encode(damage.body).decode()})
