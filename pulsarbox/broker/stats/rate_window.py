"""Rates of counters over a time window. Counters are sampled on request and periodically by the shell.

So incrementing a counter costs nothing extra.
"""

from collections import deque
from math import inf
from typing import Final

from pulsarbox.clock import Now

WINDOW_SECONDS: Final = 60.0
"""Minimum window of a rate, once the counters are that old."""
KEPT_EVERY_SECONDS: Final = 10.0
"""Interval between the samples that are kept."""

_ROUNDING_SECONDS: Final = 0.000_001
"""Tolerance for rounding errors in sums of times."""


class RateWindow:
    """Rates of some counters that start at 0.

    A rate is computed from the latest sample that is at least a minute old, or from the start if there is none.
    """

    # Values that most calls need are attributes: with thousands of meters, each extra object is a cache miss.
    __slots__ = ("_first", "_quiet_until", "_samples")

    def __init__(self, started: float, counters: int) -> None:
        """``started``: when the counters started (monotonic seconds)."""
        self._samples: deque[tuple[float, tuple[int, ...]]] = deque([(started, (0,) * counters)])
        self._first = self._samples[0][1]
        self._quiet_until = started
        """Until then (monotonic seconds), ``look`` changes nothing."""

    def rates(self, counters: tuple[int, ...], now: Now) -> tuple[float, ...]:
        """Return the increase of the counters per second, up to their current values. The window is at least 1 s."""
        if now.monotonic >= self._quiet_until:
            self.sample(counters, now)
        first = self._first
        if counters == first:  # fast path: most counters are idle
            return (0.0,) * len(counters)
        seconds = max(now.monotonic - self._samples[0][0], 1.0)
        return tuple((value - before) / seconds for value, before in zip(counters, first, strict=True))

    def sample(self, counters: tuple[int, ...], now: Now) -> None:
        """Store a sample of the counters if the last one is old enough."""
        at = now.monotonic
        if at < self._quiet_until:
            return
        looks = self._samples
        while len(looks) > 1 and looks[1][0] <= at - WINDOW_SECONDS:
            looks.popleft()
        if at - looks[-1][0] >= KEPT_EVERY_SECONDS:
            looks.append((at, counters))
        self._first = looks[0][1]
        next_to_go = looks[1][0] + WINDOW_SECONDS if len(looks) > 1 else inf
        self._quiet_until = min(looks[-1][0] + KEPT_EVERY_SECONDS, next_to_go) - _ROUNDING_SECONDS
