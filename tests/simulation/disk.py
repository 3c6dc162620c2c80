"""The disk: a MemoryDisk whose commits and reads take their time, fail, and are cut short by a crash."""

from collections.abc import Callable

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from pulsarbox.storage.record import Entry
from tests.simulation.world import World

Committed = Callable[[Batch, Exception | None], None]
ReadDone = Callable[[ReadRequest, list[Entry], Exception | None], None]


class SimulatedDisk:
    """One disk over all lives of the box."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.memory = MemoryDisk()
        self.engine = MemoryEngine(self.memory)
        self._life = 0
        self._committing: Batch | None = None
        self._stored = False
        self.reads_under_way = 0
        self.last_read_failure = -1e9

    def start(self) -> MemoryEngine:
        """The engine of a new life."""
        self._life += 1
        self._committing = None
        self.reads_under_way = 0
        self.engine = MemoryEngine(self.memory)
        return self.engine

    def crash(self) -> None:
        """The power goes: a commit under way is there as a whole, or not at all."""
        batch, self._committing = self._committing, None
        if batch is not None and not self._stored and self.world.chance(0.5):
            self.engine.commit(batch)
            self.world.note("crash after commit", batch.position)
        self._life += 1

    def commit(self, batch: Batch, done: Committed) -> None:
        """Store a batch, some time later; ``done`` is told how it went, another while later."""
        assert self._committing is None, "two commits at once"
        self._committing, self._stored = batch, False
        life = self._life
        faults = self.world.faults
        error = PersistenceError("the disk is full") if self.world.chance(faults.commit_fails) else None

        def store() -> None:
            if life == self._life and error is None:
                self.engine.commit(batch)
                self._stored = True

        def finish() -> None:
            if life == self._life:
                self._committing = None
                done(batch, error)

        delay = self.world.soon(faults.commit_delay)
        self.world.after(delay * 0.8, store)
        self.world.after(delay, finish)

    def read(self, request: ReadRequest, done: ReadDone) -> None:
        """Read, some time later; reads overtake each other."""
        life = self._life
        self.reads_under_way += 1

        def finish() -> None:
            if life != self._life:
                return
            self.reads_under_way -= 1
            if self.world.chance(self.world.faults.read_fails):
                self.last_read_failure = self.world.monotonic
                done(request, [], PersistenceError("the disk does not answer"))
                return
            done(request, self.engine.read(request), None)

        self.world.after(self.world.soon(self.world.faults.read_delay), finish)
