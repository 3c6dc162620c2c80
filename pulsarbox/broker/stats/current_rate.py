"""How fast counters change right now, and how they came here: of two looks, and of the last twenty.

A look costs a few comparisons where nothing has changed, which is so of most subscriptions most of the time. The rates
of ``meter`` speak for the last minute; these for the last seconds.
"""

from array import array
from typing import Final

WINDOW_SECONDS: Final = 2.0
"""A rate speaks for this long at least, and for twice as long at most where it is looked as often."""

TREND_LENGTH: Final = 20
TREND_SECONDS: Final = 3.0
"""How far apart the values of a trend are at least."""


class Pace:
    """How fast two counters change. ``first`` and ``second``: each a second, as of the last look."""

    __slots__ = ("_a", "_at", "_b", "_before_a", "_before_at", "_before_b", "first", "second")

    def __init__(self, at: float, a: int, b: int) -> None:
        """``at``: seconds of the monotonic clock at which the counters have these values."""
        self._at = self._before_at = at
        self._a = self._before_a = a
        self._b = self._before_b = b
        self.first = self.second = 0.0

    @property
    def looked_at(self) -> float:
        """When it was looked last, or up to a window before that."""
        return self._at

    @property
    def speaks(self) -> bool:
        """Whether enough time has passed for a rate."""
        return self._at > self._before_at

    def look(self, at: float, a: int, b: int, since: float | None = None) -> bool:
        """The counters have these values now. False where nothing has changed for a while: then it need not be looked
        again before something has, and ``since`` says up to when nothing had."""
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
    """The last twenty values of something, the oldest first. It takes no room before something changes."""

    __slots__ = ("_at", "_next", "_values", "last")

    def __init__(self, at: float, value: float) -> None:
        self._at = at
        self.last = value
        self._values: array[float] | None = None
        self._next = 0

    def look(self, at: float, value: float) -> None:
        """It has this value now."""
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
        """All of them; before something changed, the same twenty times."""
        if self._values is None:
            return [self.last] * TREND_LENGTH
        return [*self._values[self._next :], *self._values[: self._next]]
