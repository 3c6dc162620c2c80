"""Index of topic deadlines: catalog rows ordered by time, with one timer for the earliest.

A deadline only schedules maintenance; what is due is decided from the topic's state then. So a deadline may be too
early without harm, but never too late.
"""

from bisect import bisect_left
from typing import Protocol

from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.services import HasCatalog, HasCommits
from pulsarbox.broker.timers import Timer, Timers
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import Catalog, deadline_key, topic_key
from pulsarbox.storage.recovery import StoredTopic

AT_ONCE = 20
"""Topics maintained in one turn; the remaining ones wait for the next."""

PAGE = 200
"""Deadline keys read at a time."""

PREFIX = "deadline/"


class TopicDeadlines:
    """The deadlines of all topics."""

    def __init__(self, catalog: Catalog, timers: Timers) -> None:
        self._catalog = catalog
        self._timers = timers
        self.passed: Callbacks[str, Now] = Callbacks()
        """Called with the name of each topic whose deadline has passed; must remove or replace the deadline."""
        self._timer: Timer | None = None
        self._at = 0
        self._ahead: list[str] = []
        """The next keys, in order; some of their rows may be deleted by now. Searching for the first row each time
        would skip all rows deleted since the last checkpoint again and again."""
        self._behind: str | None = ""
        """The last key covered by ``_ahead``; later keys are still to be read. None: there are no later keys."""
        self._start_with(self._first())

    def _start_with(self, first: str | None) -> None:
        if first is not None:
            self._arm(_wall_of(first))

    def add(self, wall: int, topic_id: int) -> None:
        """Add a deadline at ``wall`` (ms since 1970); the caller writes its row."""
        key = deadline_key(wall, topic_id)
        if self._behind is None or key <= self._behind:
            at = bisect_left(self._ahead, key)
            if self._ahead[at : at + 1] != [key]:
                self._ahead.insert(at, key)
            if len(self._ahead) > 2 * PAGE:
                self._behind = self._ahead[PAGE - 1]
                del self._ahead[PAGE:]
        self._arm(wall)

    def _arm(self, wall: int) -> None:
        if self._timer is None or wall < self._at:
            if self._timer is not None:
                self._timer.cancel()
            self._at = wall
            self._timer = self._timers.at_wall(wall, self._ring)

    def _first(self) -> str | None:
        """Return the key of the earliest deadline, None if there is none."""
        while True:
            while self._ahead and self._ahead[0] not in self._catalog:
                del self._ahead[0]
            if self._ahead or self._behind is None:
                return self._ahead[0] if self._ahead else None
            self._ahead, self._behind = self._catalog.page(PREFIX, self._behind, PAGE)

    def _ring(self, now: Now) -> None:
        self._timer = None
        first = self._first()
        for _ in range(AT_ONCE):
            if first is None or _wall_of(first) > now.wall:
                break
            row = self._catalog.get(first)
            assert row is not None
            self.passed(row["topic"], now)
            due, first = first, self._first()
            assert first != due, f"the deadline {due} was not removed"
        self._start_with(first)


class DeadlineServices(HasCatalog, HasCommits, Protocol):
    """The services of the broker that store deadlines."""

    @property
    def deadlines(self) -> TopicDeadlines:
        """The deadlines of all topics."""


class TopicDeadline:
    """The deadline of a stored topic: the earliest of those its maintenance tasks request. Also stored in its row."""

    __slots__ = ("_catalog", "_commits", "_index", "_interim", "_rest", "_stored", "at")

    def __init__(self, services: DeadlineServices, stored: StoredTopic) -> None:
        self._catalog = services.catalog
        self._commits = services.commits
        self._index = services.deadlines
        self._stored = stored
        row = services.catalog.get(topic_key(stored.name)) or {}
        self.at: int = row.get("deadline", 0)
        """Milliseconds since 1970; 0 for no deadline."""
        self._interim = 0
        """Deadline that applies if the operation in progress never finishes; 0 if none is in progress."""
        self._rest = 0
        """The earliest of the other deadlines meanwhile."""

    def want(self, wall: int) -> None:
        """Request maintenance at ``wall`` or earlier; 0: none requested."""
        if self._interim:
            self._rest = first_of(self._rest, wall)
        if wall and (not self.at or wall < self.at):
            self._put(wall)

    def set(self, wall: int, interim: int = 0) -> None:
        """Set the deadline, even to a later time; 0: none. Until ``settled``, ``interim`` is a deadline as well."""
        self._interim, self._rest = interim, wall
        self._put(first_of(wall, interim))

    def settled(self, wall: int) -> None:
        """End the operation in progress and request maintenance at ``wall``; 0: none requested."""
        interim, self._interim = self._interim, 0
        if interim and self.at == interim:
            self._put(first_of(self._rest, wall))
        else:
            self.want(wall)

    def _put(self, wall: int) -> None:
        if wall == self.at:
            return
        commits, key = self._commits, topic_key(self._stored.name)
        row = self._catalog.get(key) or {}
        if self.at:
            commits.put_row(deadline_key(self.at, self._stored.topic_id), None)
            row.pop("deadline", None)
        if wall:
            commits.put_row(deadline_key(wall, self._stored.topic_id), {"topic": self._stored.name})
            row["deadline"] = wall
        commits.put_row(key, row)
        self.at = wall
        if wall:
            self._index.add(wall, self._stored.topic_id)

    def forget(self) -> None:
        """Delete the deadline of a deleted topic."""
        if self.at:
            self._commits.put_row(deadline_key(self.at, self._stored.topic_id), None)
            self.at = 0


def first_of(*instants: int) -> int:
    """Return the earliest of some times, of which 0 means never; 0 if all are."""
    return min((at for at in instants if at), default=0)


def _wall_of(key: str) -> int:
    return int(key.split("/")[1], 16)
