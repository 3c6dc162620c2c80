"""Deadlines of the core: one heap per clock."""

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final

from pulsarbox.clock import Deadlines, Now

Action = Callable[[Now], None]
SWEPT_FROM: Final = 256
"""Heap size from which cancelled deadlines are swept; they use memory until then or until they are due."""

_DUE: Final = 0
_TIMER: Final = 2
"""Indices of a heap's rows: the deadline, its number, the timer."""


class Timer:
    """One deadline, which can be cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        """Cancel the deadline."""
        self.action = None


class Timers:
    """Scheduled actions. Those of one clock run in order of deadline, then of registration."""

    def __init__(self) -> None:
        self._monotonic: list[tuple[float, int, Timer]] = []
        self._wall: list[tuple[int, int, Timer]] = []
        self._monotonic_limit = self._wall_limit = SWEPT_FROM
        self._count = 0

    def at(self, monotonic: float, action: Action) -> Timer:
        """Schedule ``action`` on the monotonic clock (seconds)."""
        timer = Timer(action)
        self._count += 1
        if len(self._monotonic) >= self._monotonic_limit:
            self._monotonic_limit = _sweep(self._monotonic)
        heappush(self._monotonic, (monotonic, self._count, timer))
        return timer

    def at_wall(self, wall: int, action: Action) -> Timer:
        """Schedule ``action`` on the wall clock (milliseconds since 1970)."""
        timer = Timer(action)
        self._count += 1
        if len(self._wall) >= self._wall_limit:
            self._wall_limit = _sweep(self._wall)
        heappush(self._wall, (wall, self._count, timer))
        return timer

    def run(self, now: Now) -> None:
        """Run every action that is due. If one raises, the others remain due."""
        due: deque[tuple[list[Any], Any]] = deque()
        while self._monotonic and self._monotonic[0][_DUE] <= now.monotonic:
            due.append((self._monotonic, heappop(self._monotonic)))
        while self._wall and self._wall[0][_DUE] <= now.wall:
            due.append((self._wall, heappop(self._wall)))
        try:
            while due:
                _, (_, _, timer) = due.popleft()
                if timer.action is not None:
                    timer.action(now)
        finally:
            for heap, row in due:
                heappush(heap, row)

    def next(self) -> Deadlines:
        """Return the next deadline on each clock."""
        while self._monotonic and self._monotonic[0][_TIMER].action is None:
            heappop(self._monotonic)
        while self._wall and self._wall[0][_TIMER].action is None:
            heappop(self._wall)
        return Deadlines(
            self._monotonic[0][_DUE] if self._monotonic else None,
            self._wall[0][_DUE] if self._wall else None,
        )


def _sweep(heap: list[Any]) -> int:
    """Remove cancelled deadlines; return the heap size that triggers the next sweep."""
    heap[:] = [each for each in heap if each[_TIMER].action is not None]
    heapify(heap)
    return max(SWEPT_FROM, 2 * len(heap))
