"""All topics with messages that unsubscribed retention keeps: how many bytes they are, and which go first.

One row a topic, so that topics need no memory for it. The total is that of the rows, which a start adds up some at a
time; until it has, too little is known, and nothing goes too early. Rows are ordered by class of size, then by age:
above the limit the oldest ledger goes of those topics that hold more than an equal share each, so the flood of one
topic does not take the messages of another.
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
"""Rows that are added up in one turn of a start."""
COUNTED_AT_ONCE: Final = 10
"""Topics that are counted again in one turn of a start."""
AT_ONCE: Final = 4
"""Ledgers that go in one turn."""
LOOKED_AT: Final = 50
"""Rows of a class that are looked at together."""
SKIPPED_MAX: Final = 100
"""Topics whose oldest ledger cannot go yet, as its entries are on their way to the disk, before the rest waits."""
AGAIN_SECONDS: Final = 1.0

_FIELD: Final = "unsubscribed"


class UnsubscribedIndex:
    """Of one box."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, timers: Timers, settings: Settings) -> None:
        self._catalog = catalog
        self._commits = commits
        self._timers = timers
        self._settings = settings
        self._capacity = 0
        self.limit = limit_of(settings, 0)
        """Bytes that all topics may hold together; UNLIMITED: any number, also while the disk's size is not known."""
        self.bytes = 0
        """That they hold, as far as the rows say and a start has added them up."""
        self.topics = 0
        """That hold any."""
        self.trim: Callable[[str, Now], bool] = _nobody
        """Drops the oldest ledger with such messages of a topic, loaded or not; whether there was one that can go."""
        self.count: Callable[[str, Now], object] = _nobody
        """Brings the row of a topic, loaded or not, up to what it holds."""
        self._uncounted: list[str] = []
        """Topics that the log had entries of behind the last row, maybe."""
        self._added: str | None = ""
        """The last row that is in the total; None: all are."""
        self._marks: dict[int, str] = {}
        """By class: up to this key there are no rows any more. Rows that were deleted since the last checkpoint would
        be passed by each time otherwise."""
        self._skipped: set[str] = set()
        self._armed = False

    def start(self, replayed: list[str]) -> None:
        """Begin to add up the rows, and to count the topics that recovery found in the log: a row follows its entries
        in the batch behind them."""
        self._uncounted = replayed
        if replayed:
            self._timers.at(0.0, self._count_replayed)
        if self._catalog.first(UNSUBSCRIBED) is None:
            self._added = None
        else:
            self._timers.at(0.0, self._add_up)

    def take(self, settings: Settings, now: Now | None) -> None:
        """Go by these settings from now on."""
        self._settings = settings
        self._set_limit(now)

    def set_capacity(self, capacity: int, now: Now) -> None:
        """Shares are of so many bytes."""
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
        """A topic holds ``size`` bytes of such messages now, the first of them in ``oldest``."""
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
        """The topic is about to be deleted."""
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
        """The row of the topic whose oldest ledger goes next; None where none can."""
        if len(self._skipped) >= SKIPPED_MAX:
            return None
        least = _class_of(self.limit // max(self.topics, 1))
        found = [key for number in range(least, 64) if (key := self._first_of(number)) is not None]
        return min(found, key=lambda key: key.split("/")[2:], default=None)

    def _first_of(self, number: int) -> str | None:
        """The row of the oldest of a class."""
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
    """Sizes of one class differ by less than two times."""
    return size.bit_length()


def _nobody(name: str, now: Now) -> bool:
    raise AssertionError("nobody looks after topics")
