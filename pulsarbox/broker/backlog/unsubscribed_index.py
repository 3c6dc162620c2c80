"""Index of topics with unsubscribed messages, and the size limit of unsubscribed retention for all topics together.

The index is one catalog row per topic, so unloaded topics use no memory. Their total is summed up after a start, some
rows per turn; until then it is too low, so nothing is dropped too early. Rows are ordered by size class, then by age.
Above the limit, the oldest ledger is dropped among topics that hold more than an equal share, so that a topic with many
messages does not displace those of others.
"""

from collections.abc import Callable
from typing import Final

from pulsarbox.broker.group_commit import GroupCommit
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
COUNTED_AT_ONCE: Final = 10
"""Topics counted again in one turn after a start."""
AT_ONCE: Final = 4
"""Ledgers dropped in one turn."""
LOOKED_AT: Final = 50
"""Rows of a class read at a time."""
SKIPPED_MAX: Final = 100
"""Topics skipped because their oldest ledger cannot be dropped yet; above this, the search stops until later."""
AGAIN_SECONDS: Final = 1.0

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
        self.trim: Callable[[str, Now], bool] = _nobody
        """Drops the oldest ledger with unsubscribed messages of a topic, loaded or not; returns whether it could."""
        self.count: Callable[[str, Now], object] = _nobody
        """Updates the row of a topic, loaded or not."""
        self._uncounted: list[str] = []
        """Topics in the replayed log, whose rows may be out of date."""
        self._added: str | None = ""
        """The last row included in the total; None: all are."""
        self._marks: dict[int, str] = {}
        """Per class, a key below which there are no rows; avoids scanning rows deleted since the last checkpoint."""
        self._skipped: set[str] = set()
        self._armed = False

    def start(self, replayed: list[str]) -> None:
        """Start summing up the rows, and count the topics in the replayed log again.

        A row is written in the batch after its entries, so a crash may lose its update.
        """
        self._uncounted = replayed
        if replayed:
            self._timers.at(0.0, self._count_replayed)
        if self._catalog.first(UNSUBSCRIBED) is None:
            self._added = None
        else:
            self._timers.at(0.0, self._add_up)

    def take(self, settings: Settings, now: Now | None) -> None:
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
            self._look(now)

    def _count_replayed(self, now: Now) -> None:
        names, self._uncounted = self._uncounted[:COUNTED_AT_ONCE], self._uncounted[COUNTED_AT_ONCE:]
        for name in names:
            self.count(name, now)
        if self._uncounted:
            self._timers.at(now.monotonic, self._count_replayed)

    def _add_up(self, now: Now) -> None:
        assert self._added is not None
        keys, self._added = self._catalog.page(UNSUBSCRIBED, self._added, PAGE)
        for key in keys:
            row = self._catalog.get(key)
            assert row is not None
            self.bytes, self.topics = self.bytes + row["bytes"], self.topics + 1
        if self._added is not None:
            self._timers.at(now.monotonic, self._add_up)
        self._look(now)

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
            self._look(now)

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

    def _is_over(self) -> bool:
        return self.limit != UNLIMITED and self.bytes > self.limit

    def _look(self, now: Now) -> None:
        if not self._armed and self._is_over():
            self._armed = True
            self._timers.at(now.monotonic, self._trim)

    def _trim(self, now: Now) -> None:
        self._armed = False
        for _ in range(AT_ONCE):
            key = self._next() if self._is_over() else None
            if key is None:
                break
            row = self._catalog.get(key)
            assert row is not None
            if not self.trim(row["topic"], now):
                self._skipped.add(key)
        else:
            self._look(now)
            return
        if self._skipped and self._is_over():
            self._armed = True
            self._timers.at(now.monotonic + AGAIN_SECONDS, self._trim)
        self._skipped.clear()

    def _next(self) -> str | None:
        """Return the row of the topic whose oldest ledger is dropped next; None if there is none."""
        if len(self._skipped) >= SKIPPED_MAX:
            return None
        least = _class_of(self.limit // max(self.topics, 1))
        found = [key for number in range(least, 64) if (key := self._first_of(number)) is not None]
        return min(found, key=lambda key: key.split("/")[2:], default=None)

    def _first_of(self, number: int) -> str | None:
        """Return the row of the oldest topic of a class; None if there is none."""
        prefix = unsubscribed_key(number)
        after: str | None = self._marks.get(number, "")
        while after is not None:
            keys, end = self._catalog.page(prefix, after, LOOKED_AT)
            found = next((key for key in keys if key not in self._skipped), None)
            if found is not None:
                return found
            if not keys and end is not None:
                self._marks[number] = end
            after = end
        return None


def _class_of(size: int) -> int:
    """Return the class of a size; sizes of one class differ by less than a factor of two."""
    return size.bit_length()


def _nobody(name: str, now: Now) -> bool:
    raise AssertionError("nobody looks after topics")
