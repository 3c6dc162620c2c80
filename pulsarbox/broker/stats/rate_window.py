"""Rates of counters: a counter is looked at when somebody asks, and in between from time to time by the shell.

So a rate costs nothing where things are counted.
"""

from collections import deque
from math import inf
from typing import Final

from pulsarbox.clock import Now

WINDOW_SECONDS: Final = 60.0
"""What a rate speaks for at least, once the counters are that old."""
KEPT_EVERY_SECONDS: Final = 10.0
"""How far apart the looks are that are kept."""

_ROUNDING_SECONDS: Final = 0.000_001
"""By so much sums of times may be off."""


class Meter:
    """Rates of some counters that begin with 0.

    A rate is taken since the last look that is a minute old or more; since the start where there is none.
    """

    # What most calls need stands by itself: with thousands of meters each object more is one that no cache has.
    __slots__ = ("_first", "_looks", "_quiet_until")

    def __init__(self, started: float, counters: int) -> None:
        """``started``: when the counters began, in seconds of the monotonic clock."""
        self._looks: deque[tuple[float, tuple[int, ...]]] = deque([(started, (0,) * counters)])
        self._first = self._looks[0][1]
        self._quiet_until = started
        """Before that, in seconds of the monotonic clock, a look changes nothing."""

    def rates(self, counters: tuple[int, ...], now: Now) -> tuple[float, ...]:
        """How much the counters rose a second, up to the values that they have now. What is younger than a second
        counts as one second."""
        if now.monotonic >= self._quiet_until:
            self.look(counters, now)
        first = self._first
        if counters == first:  # most things are idle
            return (0.0,) * len(counters)
        seconds = max(now.monotonic - self._looks[0][0], 1.0)
        return tuple((value - before) / seconds for value, before in zip(counters, first, strict=True))

    def look(self, counters: tuple[int, ...], now: Now) -> None:
        """Keep the values that the counters have now, where the last ones are old enough."""
        at = now.monotonic
        if at < self._quiet_until:
            return
        looks = self._looks
        while len(looks) > 1 and looks[1][0] <= at - WINDOW_SECONDS:
            looks.popleft()
        if at - looks[-1][0] >= KEPT_EVERY_SECONDS:
            looks.append((at, counters))
        self._first = looks[0][1]
        next_to_go = looks[1][0] + WINDOW_SECONDS if len(looks) > 1 else inf
        self._quiet_until = min(looks[-1][0] + KEPT_EVERY_SECONDS, next_to_go) - _ROUNDING_SECONDS
