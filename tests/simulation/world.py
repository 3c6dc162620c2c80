"""The scheduler: one heap of events, a monotonic clock that only moves with them, a wall clock that may jump.

Everything random comes from one ``Random(seed)``, and events of the same instant happen in the order they were asked
for: the same seed is the same history.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from pulsarbox.clock import Now
from tests.simulation.history import History

EPOCH = 1_700_000_000_000
"""The wall clock at the start, in milliseconds."""


@dataclass
class Faults:
    """How rough the world is. Rates are chances per occasion."""

    drop: float = 0.0
    """A client's step drops its connection."""
    silence: float = 0.0
    """A client's step cuts its connection without a word to either side."""
    congestion: float = 0.0
    """A connection is a slow one."""
    commit_fails: float = 0.0
    read_fails: float = 0.0
    commit_delay: float = 0.004
    """Mean, in seconds."""
    read_delay: float = 0.002
    chore_fails: float = 0.0
    chore_delay: float = 0.01
    steps_of_a_life: float = 0.0
    """Mean number of the engine's own steps after which the power goes; 0: it does not."""


class World:
    """Time, chance and the list of what is to happen."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.history = History()
        self.faults = Faults()
        self.monotonic = 0.0
        self.wall_offset = 0
        self.virtual = 0
        """How far the box's virtual clock is ahead (ms)."""
        self.moved_at = 0.0
        """When either of them was changed last, on the monotonic clock."""
        self.events = 0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    @property
    def now(self) -> Now:
        """Both clocks, as the box has them."""
        wall = EPOCH + self.wall_offset + int(self.monotonic * 1000)
        return Now(self.monotonic, wall + self.virtual, self.virtual)

    @property
    def real(self) -> Now:
        """Both clocks, as clients have them."""
        return Now(self.monotonic, self.now.wall - self.virtual)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Let something happen later."""
        self.at(self.monotonic + seconds, action)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Let something happen at an instant; not by way of a difference, whose rounding may change the order."""
        self._count += 1
        heappush(self._heap, (when, self._count, action))

    def soon(self, mean: float) -> float:
        """A random delay, in seconds."""
        return self.random.expovariate(1 / mean) if mean else 0.0

    def chance(self, rate: float) -> bool:
        """Whether it happens this time."""
        return rate > 0 and self.random.random() < rate

    def note(self, *what: object) -> None:
        """Write down an event."""
        self.history.note(self.monotonic, *what)

    def run(self, *, events: int | None = None, until: float | None = None) -> None:
        """Let the next events happen: so many of them, or all up to an instant."""
        left = events
        while self._heap and (left is None or left > 0):
            when, _, action = self._heap[0]
            if until is not None and when > until:
                break
            heappop(self._heap)
            self.monotonic = max(self.monotonic, when)
            self.events += 1
            action()
            if left is not None:
                left -= 1
        if until is not None:
            self.monotonic = max(self.monotonic, until)
