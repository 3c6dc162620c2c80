"""Deadlines of topics: rows ordered by time, of which only the first has a timer.

A deadline says that a topic is to be looked at then, no more: what is to be done is found out from its state. So it may
come too early without harm, and is never missing.
"""

from collections.abc import Callable

from pulsarbox.broker.timers import Timer, Timers
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import Catalog

AT_ONCE = 20
"""Topics that are looked at in one turn; the next ones have to wait for it to end."""

PREFIX = "deadline/"


class TopicDeadlines:
    """Calls ``fall_due`` with a topic's name when its deadline has come."""

    def __init__(self, catalog: Catalog, timers: Timers) -> None:
        self._catalog = catalog
        self._timers = timers
        self.fall_due: Callable[[str, Now], None] = _nobody
        self._timer: Timer | None = None
        self._at = 0

    def start(self) -> None:
        """Arm the timer for the first deadline there is."""
        self._start_with(self._catalog.first(PREFIX))

    def _start_with(self, first: str | None) -> None:
        if first is not None:
            self.set(_wall_of(first))

    def set(self, wall: int) -> None:
        """There is a deadline at ``wall`` (ms since 1970)."""
        if self._timer is None or wall < self._at:
            if self._timer is not None:
                self._timer.cancel()
            self._at = wall
            self._timer = self._timers.at_wall(wall, self._ring)

    def _ring(self, now: Now) -> None:
        self._timer = None
        first = self._catalog.first(PREFIX)
        for _ in range(AT_ONCE):
            if first is None or _wall_of(first) > now.wall:
                break
            row = self._catalog.get(first)
            assert row is not None
            self.fall_due(row["topic"], now)
            due, first = first, self._catalog.first(PREFIX)
            assert first != due, f"the deadline {due} stays"
        self._start_with(first)


def _wall_of(key: str) -> int:
    return int(key.split("/")[1], 16)


def _nobody(name: str, now: Now) -> None:
    raise AssertionError("nobody looks after deadlines")
