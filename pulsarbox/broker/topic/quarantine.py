"""Damaged entries: reported once, kept aside as they are, never served; subscriptions go on behind them.

Where the entry's header is whole, each subscription that comes to it counts it as acknowledged, so that it does not
hold the disk of what follows. Where nothing is known of it (a volume that cannot be read), it is stepped over and
stays in the backlog.
"""

import logging
from base64 import b64encode
from collections.abc import Callable

from pulsarbox.broker.events import Events
from pulsarbox.broker.group_commit import GroupCommit
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.catalog import Catalog, quarantine_key
from pulsarbox.storage.cursor import ManagedCursor

log = logging.getLogger(__name__)

SetAside = Callable[[EntryDamaged, Now], None]
"""A subscription's: a read has come to damaged entries; who asked for it goes on behind them."""


class Quarantine:
    """Takes damaged entries out of the way."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, events: Events) -> None:
        self._catalog = catalog
        self._commits = commits
        self._events = events

    def take(self, damage: EntryDamaged, cursor: ManagedCursor, now: Now) -> bool:
        """A subscription has come to damaged entries. Whether the cursor has acknowledged them: its subscription has
        to do what follows from that."""
        self.report(damage, now)
        if damage.counts is None:
            return False
        cursor.acknowledge(damage.ledger_id, damage.first, *damage.counts)
        return True

    def report(self, damage: EntryDamaged, now: Now) -> None:
        """Damaged entries were found: keep them aside, once."""
        key = quarantine_key(damage.ledger_id, damage.first)
        if key not in self._catalog:
            topic = self._catalog.owner(damage.ledger_id)
            log.error("topic %s: %s; it is kept aside, and consumers go on behind it", topic, damage)
            text = f"{damage}; it is kept aside, and consumers go on behind it"
            self._events.tell("quarantined", str(topic), text, now, ledger=damage.ledger_id, entry=damage.first)
            row = {"topic": topic, "last": damage.last, "reason": damage.reason, "found": now.wall}
            self._commits.put_row(key, row | {"body": b64encode(damage.body).decode()})
