"""Rates of counters: a counter is looked at when somebody asks, and in between from time to time by the shell.

So a rate costs nothing where things are counted.
"""

from collections import deque
from typing import Final

from pulsarbox.clock import Now

WINDOW_SECONDS: Final = 60.0
"""What a rate speaks for at least, once the counters are that old."""
KEPT_EVERY_SECONDS: Final = 10.0
"""How far apart the looks are that are kept."""


class Meter:
    """Rates of some counters that begin with 0.

    A rate is taken since the last look that is a minute old or more; since the start where there is none.
    """

    __slots__ = ("_looks",)

    def __init__(self, started: float, counters: int) -> None:
        """``started``: when the counters began, in seconds of the monotonic clock."""
        self._looks: deque[tuple[float, tuple[int, ...]]] = deque([(started, (0,) * counters)])

    def rates(self, counters: tuple[int, ...], now: Now) -> tuple[float, ...]:
        """How much the counters rose a second, up to the values that they have now. What is younger than a second
        counts as one second."""
        self.look(counters, now)
        since, first = self._looks[0]
        if counters == first:  # most things are idle
            return (0.0,) * len(counters)
        seconds = max(now.monotonic - since, 1.0)
        return tuple((value - before) / seconds for value, before in zip(counters, first, strict=True))

    def look(self, counters: tuple[int, ...], now: Now) -> None:
        """Keep the values that the counters have now, where the last ones are old enough."""
        looks, at = self._looks, now.monotonic
        while len(looks) > 1 and looks[1][0] <= at - WINDOW_SECONDS:
            looks.popleft()
        if at - looks[-1][0] >= KEPT_EVERY_SECONDS:
            looks.append((at, counters))
