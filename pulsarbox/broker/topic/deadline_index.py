"""Deadlines of topics: rows ordered by time, of which only the first has a timer.

A deadline says that a topic is to be looked at then, no more: what is to be done is found out from its state. So it may
come too early without harm, and is never missing.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarbox.broker.timers import Timer, Timers
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import Catalog, deadline_key, topic_key
from pulsarbox.storage.recovery import StoredTopic

if TYPE_CHECKING:
    from pulsarbox.broker.core import Core

AT_ONCE = 20
"""Topics that are looked at in one turn; the next ones have to wait for it to end."""

PAGE = 200
"""Keys of deadlines that are read at once."""

PREFIX = "deadline/"


class TopicDeadlines:
    """Calls ``fall_due`` with a topic's name when its deadline has come."""

    def __init__(self, catalog: Catalog, timers: Timers) -> None:
        self._catalog = catalog
        self._timers = timers
        self.fall_due: Callable[[str, Now], None] = _nobody
        self._timer: Timer | None = None
        self._at = 0
        self._ahead: list[str] = []
        """The keys that come next, in order; some of the rows may be gone since. To look for the first of all rows
        again and again would be to pass by all that were deleted since the last checkpoint, each time."""
        self._behind: str | None = ""
        """The last key that would stand among those: behind it all others are, yet to be read; None: there are none."""

    def start(self) -> None:
        """Arm the timer for the first deadline there is."""
        self._start_with(self._first())

    def _start_with(self, first: str | None) -> None:
        if first is not None:
            self._arm(_wall_of(first))

    def add(self, wall: int, topic_id: int) -> None:
        """There is a deadline at ``wall`` (ms since 1970) now: its row is written."""
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
        """The key of the first deadline."""
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
            self.fall_due(row["topic"], now)
            due, first = first, self._first()
            assert first != due, f"the deadline {due} stays"
        self._start_with(first)


class TopicDeadline:
    """The one deadline of a stored topic: the first of all that somebody has for it. It stands in its row as well."""

    __slots__ = ("_core", "_interim", "_rest", "_stored", "at")

    def __init__(self, core: "Core", stored: StoredTopic) -> None:
        self._core = core
        self._stored = stored
        row = core.catalog.get(topic_key(stored.name)) or {}
        self.at: int = row.get("deadline", 0)
        """Milliseconds since 1970; 0 where there is none."""
        self._interim = 0
        """A deadline for the case that something which is under way is never finished; 0: nothing is."""
        self._rest = 0
        """The first of the others meanwhile."""

    def want(self, wall: int) -> None:
        """The topic is to be looked at then, or before; 0: for this reason never."""
        if self._interim:
            self._rest = first_of(self._rest, wall)
        if wall and (not self.at or wall < self.at):
            self._put(wall)

    def set(self, wall: int, interim: int = 0) -> None:
        """The topic is to be looked at then and not before; 0: not at all. Until ``settled`` at ``interim`` as well."""
        self._interim, self._rest = interim, wall
        self._put(first_of(wall, interim))

    def settled(self, wall: int) -> None:
        """What was under way is finished, and the topic is to be looked at then; 0: for this reason never."""
        interim, self._interim = self._interim, 0
        if interim and self.at == interim:
            self._put(first_of(self._rest, wall))
        else:
            self.want(wall)

    def _put(self, wall: int) -> None:
        if wall == self.at:
            return
        commits, key = self._core.commits, topic_key(self._stored.name)
        row = self._core.catalog.get(key) or {}
        if self.at:
            commits.put_row(deadline_key(self.at, self._stored.topic_id), None)
            row.pop("deadline", None)
        if wall:
            commits.put_row(deadline_key(wall, self._stored.topic_id), {"topic": self._stored.name})
            row["deadline"] = wall
        commits.put_row(key, row)
        self.at = wall
        if wall:
            self._core.deadlines.add(wall, self._stored.topic_id)

    def forget(self) -> None:
        """The topic is deleted."""
        if self.at:
            self._core.commits.put_row(deadline_key(self.at, self._stored.topic_id), None)
            self.at = 0


def first_of(*instants: int) -> int:
    """The first of some instants, of which 0 means never."""
    return min((at for at in instants if at), default=0)


def _wall_of(key: str) -> int:
    return int(key.split("/")[1], 16)


def _nobody(name: str, now: Now) -> None:
    raise AssertionError("nobody looks after deadlines")
