"""Index of topics with unsubscribed messages, and the size limit of unsubscribed retention for all topics together.

The index is one catalog row per topic, so unloaded topics use no memory. Their total is summed up after a start, some
rows per turn; until then it is too low, so nothing is dropped too early. Rows are ordered by size class, then by age.
``unsubscribed_trimming`` enforces the limit.
"""

from collections.abc import Container
from typing import Final

from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.retention import UNLIMITED
from pulsarbox.broker.policies.kinds.unsubscribed_retention import limit_of
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.storage.catalog import UNSUBSCRIBED, Catalog, Row, topic_key, unsubscribed_key
from pulsarbox.storage.ledger import LedgerInfo
from pulsarbox.storage.recovery import StoredTopic

PAGE: Final = 200
"""Rows summed up in one turn after a start."""
LOOKED_AT: Final = 50
"""Rows of a class read at a time."""

_FIELD: Final = "unsubscribed"


class UnsubscribedIndex:
    """The index of one box."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, timers: Timers, settings: Settings) -> None:
        self._catalog = catalog
        self._commits = commits
        self._timers = timers
        self._settings = settings
        self._capacity = 0
        self.limit = limit_of(settings, 0)
        """Limit in bytes for all topics together; UNLIMITED without one, or while the disk size is unknown."""
        self.bytes = 0
        """Unsubscribed bytes of all topics, as far as the rows have been summed up."""
        self.topics = 0
        """Topics with unsubscribed messages, counted likewise."""
        self.changed: Callbacks[Now] = Callbacks()
        """Called when the total or the limit has changed and may be exceeded."""
        self._added: str | None = None
        """The last row included in the total; None: all are."""
        self._marks: dict[int, str] = {}
        """Per class, a key below which there are no rows; avoids scanning rows deleted since the last checkpoint."""
        if catalog.first(UNSUBSCRIBED) is not None:
            self._added = ""
            timers.at(0.0, self._add_up)

    def apply_settings(self, settings: Settings, now: Now | None) -> None:
        """Apply changed settings."""
        self._settings = settings
        self._set_limit(now)

    def set_capacity(self, capacity: int, now: Now) -> None:
        """Set the disk size in bytes, to which a limit in percent refers."""
        if capacity != self._capacity:
            self._capacity = capacity
            self._set_limit(now)

    def _set_limit(self, now: Now | None) -> None:
        self.limit = limit_of(self._settings, self._capacity)
        if now is not None:
            self.changed(now)

    def _add_up(self, now: Now) -> None:
        assert self._added is not None
        keys, self._added = self._catalog.page(UNSUBSCRIBED, self._added, PAGE)
        for key in keys:
            row = self._catalog.get(key)
            assert row is not None
            self.bytes, self.topics = self.bytes + row["bytes"], self.topics + 1
        if self._added is not None:
            self._timers.at(now.monotonic, self._add_up)
        self.changed(now)

    # Topics

    def put(self, stored: StoredTopic, size: int, oldest: LedgerInfo | None, now: Now) -> None:
        """Update a topic: it holds ``size`` unsubscribed bytes, starting in ledger ``oldest``."""
        key = topic_key(stored.name)
        row = self._catalog.get(key)
        if row is None:
            return
        before: Row | None = row.pop(_FIELD, None)
        after: Row | None = None
        if size and oldest is not None:
            fresh = before is None and not stored.ledger.confirmed_entries
            since = now.wall if fresh else oldest.created
            if before is not None and before["ledger"] == oldest.ledger_id:
                since = before["since"]
            after = {"bytes": size, "since": since, "ledger": oldest.ledger_id}
        if before == after:
            return
        self._commits.put_row(key, row if after is None else row | {_FIELD: after})
        self._replace(stored, before, after)
        if after is not None and (before is None or after["bytes"] > before["bytes"]):
            self.changed(now)

    def forget(self, stored: StoredTopic) -> None:
        """Remove a topic that is about to be deleted."""
        row = self._catalog.get(topic_key(stored.name)) or {}
        if _FIELD in row:
            self._replace(stored, row[_FIELD], None)

    def _replace(self, stored: StoredTopic, before: Row | None, after: Row | None) -> None:
        for value, sign in ((before, -1), (after, 1)):
            if value is None:
                continue
            number = _class_of(value["bytes"])
            key = unsubscribed_key(number, value["since"], stored.topic_id)
            if self._added is None or key <= self._added:
                self.bytes, self.topics = self.bytes + sign * value["bytes"], self.topics + sign
            row = None if value is before else {"topic": stored.name, "bytes": value["bytes"]}
            self._commits.put_row(key, row)
            if row is not None and key <= self._marks.get(number, ""):
                self._marks[number] = key.rpartition("/")[0]

    # The limit

    @property
    def is_over(self) -> bool:
        """Whether the total exceeds the limit."""
        return self.limit != UNLIMITED and self.bytes > self.limit

    def largest(self, skipped: Container[str]) -> str | None:
        """Return the row of the topic whose oldest ledger is dropped next; None if there is none.

        ``skipped``: rows to disregard.
        """
        least = _class_of(self.limit // max(self.topics, 1))
        found = [key for number in range(least, 64) if (key := self._first_of(number, skipped)) is not None]
        return min(found, key=lambda key: key.split("/")[2:], default=None)

    def _first_of(self, number: int, skipped: Container[str]) -> str | None:
        """Return the row of the oldest topic of a class; None if there is none."""
        prefix = unsubscribed_key(number)
        after: str | None = self._marks.get(number, "")
        while after is not None:
            keys, end = self._catalog.page(prefix, after, LOOKED_AT)
            found = next((key for key in keys if key not in skipped), None)
            if found is not None:
                return found
            if not keys and end is not None:
                self._marks[number] = end
            after = end
        return None


def _class_of(size: int) -> int:
    """Return the class of a size; sizes of one class differ by less than a factor of two."""
    return size.bit_length()
