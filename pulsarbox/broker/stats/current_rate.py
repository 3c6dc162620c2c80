"""Current rates of counters over the last seconds, and the trend of a value over its last 20 samples.

A sample of an unchanged counter costs a few comparisons; most subscriptions are idle most of the time. The rates of
``rate_window`` cover the last minute, these the last seconds.
"""

from array import array
from typing import Final

WINDOW_SECONDS: Final = 2.0
"""Minimum window of a rate; at most twice as long if sampled as often."""

TREND_LENGTH: Final = 20
TREND_SECONDS: Final = 3.0
"""Minimum interval between the values of a trend."""


class CurrentRate:
    """Rates of two counters: ``first`` and ``second``, per second as of the last sample."""

    __slots__ = ("_a", "_at", "_b", "_before_a", "_before_at", "_before_b", "first", "second")

    def __init__(self, at: float, a: int, b: int) -> None:
        """``at``: when the counters have these values (monotonic seconds)."""
        self._at = self._before_at = at
        self._a = self._before_a = a
        self._b = self._before_b = b
        self.first = self.second = 0.0

    @property
    def sampled_at(self) -> float:
        """Time of the last sample, or up to one window earlier."""
        return self._at

    @property
    def is_known(self) -> bool:
        """Whether enough time has passed to compute a rate."""
        return self._at > self._before_at

    def sample(self, at: float, a: int, b: int, since: float | None = None) -> bool:
        """Sample the counters; return False if nothing has changed for a while.

        The next call is then only needed after a change, with ``since``, the time up to which nothing had changed.
        """
        if a == self._a and b == self._b and a == self._before_a and b == self._before_b:
            self._at = self._before_at = at
            self.first = self.second = 0.0
            return False
        if since is not None:
            self._at = self._before_at = since
        if at - self._at >= WINDOW_SECONDS:
            self._before_at, self._before_a, self._before_b = self._at, self._a, self._b
            self._at, self._a, self._b = at, a, b
        seconds = at - self._before_at
        if seconds > 0:
            self.first = (a - self._before_a) / seconds
            self.second = (b - self._before_b) / seconds
        return True


class Trend:
    """The last 20 values of a quantity, oldest first. Uses no memory until the value changes."""

    __slots__ = ("_at", "_next", "_values", "last")

    def __init__(self, at: float, value: float) -> None:
        self._at = at
        self.last = value
        self._values: array[float] | None = None
        self._next = 0

    def sample(self, at: float, value: float) -> None:
        """Sample the value."""
        values = self._values
        if values is None:
            if value == self.last:
                self._at = at
                return
            values = self._values = array("d", [self.last]) * TREND_LENGTH
        elif at - self._at < TREND_SECONDS:
            return
        self._at = at
        self.last = value
        values[self._next] = value
        self._next = (self._next + 1) % TREND_LENGTH

    def values(self) -> list[float]:
        """Return all values; before a change, the same value 20 times."""
        if self._values is None:
            return [self.last] * TREND_LENGTH
        return [*self._values[self._next :], *self._values[: self._next]]
