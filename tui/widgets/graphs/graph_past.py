"""Values of named quantities over time, from irregular samples: recorded history first, then live ones."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

SECONDS: Final = 600
"""Time span that is kept, that of the graphs."""
STEP: Final = 2.0
"""Seconds between two values of a series."""


class GraphPast:
    """Samples of the last minutes."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._samples: list[tuple[int, tuple[float | None, ...]]] = []

    def add(self, time: int, row: Mapping[str, Any]) -> None:
        """Add the values of a row at a time (ms since 1970), unless it is not later than the last sample."""
        if self._samples and time <= self._samples[-1][0]:
            return
        self._samples.append((time, tuple(row.get(name) for name in self._names)))
        first = next(at for at, (each, _) in enumerate(self._samples) if each >= time - SECONDS * 1000)
        del self._samples[: max(first - 1, 0)]  # the last one before the span holds until the next

    def replace(self, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        """Replace all samples by those of recorded history, and keep later ones."""
        end = rows[-1][0] if rows else 0
        later = [sample for sample in self._samples if sample[0] > end]
        self._samples = [(time, tuple(row.get(name) for name in self._names)) for time, row in rows] + later

    def series(self, name: str) -> list[float | None]:
        """Return the values of a quantity, newest last, one every ``STEP`` seconds; each holds until the next known."""
        if not self._samples:
            return []
        at, end = self._names.index(name), self._samples[-1][0]
        span = min(end - self._samples[0][0], SECONDS * 1000)
        count = int(span / 1000 / STEP) + 1
        found: list[float | None] = []
        number, known = 0, self._samples[0][1][at]
        for step in range(count):
            time = end - (count - 1 - step) * STEP * 1000
            while number + 1 < len(self._samples) and self._samples[number + 1][0] <= time:
                number += 1
                value = self._samples[number][1][at]
                known = known if value is None else value
            found.append(known)
        return found
