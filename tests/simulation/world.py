"""The scheduler: one heap of events, a monotonic clock that advances with them, and a wall clock that may jump.

All randomness comes from one ``Random(seed)``, and simultaneous events run in the order of their scheduling: the same
seed always yields the same history.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from pulsarbox.clock import Now
from tests.simulation.model.history import History

EPOCH = 1_700_000_000_000
"""The wall clock at the start, in milliseconds since 1970."""


@dataclass
class Faults:
    """Fault rates. Each rate is a probability per occasion."""

    drop: float = 0.0
    """Probability that a client's step drops its connection."""
    silence: float = 0.0
    """Probability that a client's step cuts its connection without notifying either end."""
    congestion: float = 0.0
    """Probability that a connection is slow."""
    commit_fails: float = 0.0
    read_fails: float = 0.0
    commit_delay: float = 0.004
    """Mean delay in seconds."""
    read_delay: float = 0.002
    chore_fails: float = 0.0
    chore_delay: float = 0.01
    steps_of_a_life: float = 0.0
    """Mean number of engine steps before a power failure; 0: none."""


class World:
    """Clocks, randomness and the schedule of events."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.history = History()
        self.faults = Faults()
        self.monotonic = 0.0
        self.wall_offset = 0
        self.virtual = 0
        """Lead of the box's virtual clock over the wall clock (ms)."""
        self.moved_at = 0.0
        """Time of the last change to the box's clock (monotonic)."""
        self.events = 0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    @property
    def now(self) -> Now:
        """Both clocks as the box reads them."""
        wall = EPOCH + self.wall_offset + int(self.monotonic * 1000)
        return Now(self.monotonic, wall + self.virtual, self.virtual)

    @property
    def real(self) -> Now:
        """Both clocks as clients read them."""
        return Now(self.monotonic, self.now.wall - self.virtual)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action after a delay in seconds."""
        self.at(self.monotonic + seconds, action)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Schedule an action at an exact time: a delay would be rounded, which may change the order."""
        self._count += 1
        heappush(self._heap, (when, self._count, action))

    def soon(self, mean: float) -> float:
        """Return a random delay in seconds with the given mean."""
        return self.random.expovariate(1 / mean) if mean else 0.0

    def chance(self, rate: float) -> bool:
        """Return True with the given probability."""
        return rate > 0 and self.random.random() < rate

    def note(self, *what: object) -> None:
        """Record an event."""
        self.history.note(self.monotonic, *what)

    def run(self, *, events: int | None = None, until: float | None = None) -> None:
        """Run the next ``events`` events, or all events ``until`` a time."""
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
