"""Time series for graphs: one value per second over the last ten minutes, in constant memory."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import nan
from typing import Final

from pulsarbox.broker.stats.commit_stats import FINE_MS

LENGTH: Final = 600
STEP_SECONDS: Final = 1.0


class Series:
    """Some named values, sampled once a second."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._values = {name: array("d", [nan]) * LENGTH for name in names}
        self._next = 0
        self._count = 0

    def add(self, *values: float) -> None:
        """Add the values of one second, in the order of the names; NaN for none."""
        for column, value in zip(self._values.values(), values, strict=True):
            column[self._next] = value
        self._next = (self._next + 1) % LENGTH
        self._count = min(self._count + 1, LENGTH)

    def values(self) -> dict[str, list[float | None]]:
        """Return the values by name, oldest first; None for missing values."""
        start = self._next if self._count == LENGTH else 0
        return {
            name: [None if each != each else each for each in (*column[start : self._count], *column[:start])]
            for name, column in self._values.items()
        }


class Waits:
    """Receipt latency of entries since the previous call."""

    def __init__(self) -> None:
        self._before: list[int] = []

    def quantile(self, by_wait: list[int], share: float) -> float:
        """Return the latency quantile in ms of the entries since the previous call; NaN if there were none.

        ``by_wait``: histogram of all entries so far, with the bounds ``FINE_MS``.
        """
        before, self._before = self._before or [0] * len(by_wait), list(by_wait)
        upto = list(accumulate(now - then for now, then in zip(by_wait, before, strict=True)))
        if not upto[-1]:
            return nan
        return FINE_MS[min(bisect_left(upto, share * upto[-1] * (1 - 1e-9)), len(FINE_MS) - 1)]
