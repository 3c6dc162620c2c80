"""Rates of counters, without anything that runs beside them: a counter is looked at when somebody asks."""

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
        looks, at = self._looks, now.monotonic
        while len(looks) > 1 and looks[1][0] <= at - WINDOW_SECONDS:
            looks.popleft()
        since, first = looks[0]
        if at - looks[-1][0] >= KEPT_EVERY_SECONDS:
            looks.append((at, counters))
        seconds = max(at - since, 1.0)
        return tuple((value - before) / seconds for value, before in zip(counters, first, strict=True))
