"""The simulated disk: an engine whose commits, reads and chores take time, fail, and are interrupted by crashes.

The engine is in-memory, or the real one on files. With the real one, a power failure may also follow any step inside
the engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from pulsarbox.broker.persistence.housekeeping import CheckRoom, Chore, carry_out
from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.engine import Checkpoint, Engine, ReadRequest, Reclaimed, Recovery
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.meta_environment import MetaRows
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from pulsarbox.storage.record import Entry
from tests.simulation.world import World

Committed = Callable[[Batch, Exception | None], None]
ReadDone = Callable[[ReadRequest, list[Entry], Exception | None], None]
ChoreDone = Callable[[Chore, Exception | None, Reclaimed | None], None]

ENGINES = ("memory", "lmdb")


class PowerCut(BaseException):
    """Raised when a power failure interrupts an operation."""


class Store(Protocol):
    """The durable state, with inspection from outside the broker."""

    def open(self, step: Callable[[str], None]) -> Engine:
        """Open an engine on the store."""

    def peek(self, engine: Engine) -> Recovery:
        """Return the state that a start would recover now."""

    def holds(self, engine: Engine, ledger_id: int) -> bool:
        """Return whether a ledger still uses disk space, apart from pending writes."""

    def close(self) -> None:
        """Delete the store."""


class MemoryStore:
    """A store on a MemoryDisk."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()

    def open(self, step: Callable[[str], None]) -> Engine:
        """See Store."""
        return MemoryEngine(self.disk)

    def peek(self, engine: Engine) -> Recovery:
        """See Store."""
        return engine.recover()

    def holds(self, engine: Engine, ledger_id: int) -> bool:
        """See Store."""
        return any(position <= self.disk.mark for position in self.disk.index.positions(ledger_id))

    def close(self) -> None:
        """See Store."""


class LmdbStore:
    """A store in a data directory with small volumes."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        place = str(memory) if memory.is_dir() else None
        self._directory = tempfile.TemporaryDirectory(prefix="simulated-", dir=place, ignore_cleanup_errors=True)

    def open(self, step: Callable[[str], None]) -> Engine:
        """See Store."""
        path = Path(self._directory.name) / "data"
        options: dict[str, Any] = {"index_flush_entries": 20, "open_volumes_max": 2, "learn_from_bytes": 1 << 12}
        return LmdbEngine(path, volume_size=1 << 16, step=step, **options)

    def peek(self, engine: Engine) -> Recovery:
        """See Store."""
        assert isinstance(engine, LmdbEngine)
        metas = engine._volumes.metas
        with metas.using(0) as meta:
            mark, sealed = meta.marks()
            contents = meta.contents()
        parts, newest = engine._parts_after(mark, sealed, contents)
        batches = (value for _, value in engine._batches(parts))
        return Recovery(MetaRows(metas, lambda error: error), batches, max(mark, newest) + 1)

    def holds(self, engine: Engine, ledger_id: int) -> bool:
        """See Store."""
        assert isinstance(engine, LmdbEngine)
        with engine._volumes.metas.using(0) as meta:
            return bool(meta.stretches_of([ledger_id], frozenset(meta.contents())))

    def close(self) -> None:
        """See Store."""
        self._directory.cleanup()


class SimulatedDisk:
    """One disk across all lives of the box."""

    def __init__(self, world: World, kind: str) -> None:
        self.world = world
        self.kind = kind
        self.store: Store = LmdbStore() if kind == "lmdb" else MemoryStore()
        self.engine: Engine
        self.cut: Callable[[], None]
        """Called when a power failure occurs in a step of the engine."""
        self.done: dict[str, int] = {}
        """Number of checkpoints and of each kind of reclamation."""
        self.reads_under_way = 0
        self.last_read_failure = -1e9
        self._life = 0
        self._under_way: list[Callable[[], object]] = []
        """Pending commits and chores."""
        self._values: dict[int, bytes] = {}
        self._steps_left = 0
        self._open = False

    def start(self) -> Recovery:
        """Recover for a new life. Raises PowerCut."""
        self._life += 1
        self._under_way.clear()
        self.reads_under_way = 0
        faults = self.world.faults
        self._steps_left = int(self.world.soon(faults.steps_of_a_life)) + 1 if faults.steps_of_a_life else -1
        self.engine = self.store.open(self._step)
        self._open = True
        recovery = self.engine.recover()
        return recovery._replace(batches=iter(list(recovery.batches)))

    def _step(self, name: str) -> None:
        if not self.world.faults.steps_of_a_life:
            return
        self._steps_left -= 1
        if self._steps_left == 0:
            self.world.note("the power goes behind", name)
            raise PowerCut(name)

    def value(self, position: int) -> bytes:
        """Return a batch by position, as of the last commit attempt."""
        return self._values[position]

    def peek(self) -> Recovery:
        """Return the state that a start would recover now."""
        return self.store.peek(self.engine)

    def crash(self) -> None:
        """Simulate a power failure: each pending operation is completed, partly done, or dropped."""
        self._life += 1
        for act in self._under_way:
            if self._steps_left and self.world.chance(0.5):
                self.world.note("the crash comes after", getattr(act, "__name__", ""))
                try:
                    act()
                except PowerCut:
                    break
        self._under_way.clear()
        if self._open:
            self._open = False
            self.engine.close()

    def close(self) -> None:
        """Delete everything."""
        if self._open:
            self._open = False
            self.engine.close()
        self.store.close()

    def _carry_out(self, act: Callable[[], object], delay: float) -> None:
        """Perform an operation after ``delay`` seconds; a PowerCut within crashes the box."""
        life = self._life
        self._under_way.append(act)

        def now() -> None:
            if life == self._life:
                self._under_way.remove(act)
                try:
                    act()
                except PowerCut:
                    self.cut()

        self.world.after(delay, now)

    def _answer(self, answer: Callable[[], None], delay: float) -> None:
        life = self._life

        def now() -> None:
            if life == self._life:
                answer()

        self.world.after(delay, now)

    def commit(self, batch: Batch, done: Committed) -> None:
        """Store a batch after a random delay; ``done`` receives the result after another delay."""
        assert not any(act.__name__ == "store" for act in self._under_way), "two commits at once"
        world = self.world
        error: Exception | None = None
        if world.chance(world.faults.commit_fails):
            full = bool(batch.runs) and world.chance(0.3)
            error = StoreFull("the disk is full") if full else PersistenceError("the disk does not answer")
        self._values = {batch.position: batch.value()}

        def store() -> None:
            if error is None:
                self.engine.commit(batch)

        delay = world.soon(world.faults.commit_delay)
        self._carry_out(store, delay * 0.8)
        self._answer(lambda: done(batch, error), delay)

    def read(self, request: ReadRequest, done: ReadDone) -> None:
        """Read after a random delay; reads may complete out of order."""
        self.reads_under_way += 1

        def finish() -> None:
            self.reads_under_way -= 1
            if self.world.chance(self.world.faults.read_fails):
                self.last_read_failure = self.world.monotonic
                done(request, [], PersistenceError("the disk does not answer"))
                return
            try:
                entries = self.engine.read(request)
            except PersistenceError as error:
                done(request, [], error)
            else:
                done(request, entries, None)

        self._answer(finish, self.world.soon(self.world.faults.read_delay))

    def chore(self, chore: Chore, done: ChoreDone) -> None:
        """Write a checkpoint or reclaim disk space after a random delay."""
        world = self.world
        error: Exception | None = None
        if world.chance(world.faults.chore_fails):
            full = isinstance(chore, CheckRoom)
            error = StoreFull("the disk is full") if full else PersistenceError("the disk is slow")
        results: list[Reclaimed | None] = []

        def finish() -> None:
            if error is None:
                results.append(self._carry_out_chore(chore))

        delay = world.soon(world.faults.chore_delay)
        self._carry_out(finish, delay * 0.8)
        self._answer(lambda: done(chore, error, results[0] if results else None), delay)

    def _carry_out_chore(self, chore: Chore) -> Reclaimed | None:
        reclaimed = carry_out(chore, self.engine)
        if isinstance(chore, Checkpoint):
            self._count("checkpoint")
        elif isinstance(chore, CheckRoom):
            self._count("found room")
        elif reclaimed is not None:
            self._count(reclaimed.what)
        return reclaimed

    def _count(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1
