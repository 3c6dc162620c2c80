"""A model of an ensemble: batches that are confirmed, rejected or undecided, and disks that fail at any point.

The model knows the bytes of each batch by its time, which is different for each attempt.
"""

from functools import partial
from typing import Any

from pulsarbox.errors import PersistenceError, StoreFull, TooFewCopies
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.generations import EnsembleConflict
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember
from pulsarbox.storage.ensemble.recovery import EnsembleIncomplete
from pulsarbox.storage.format import BATCH_HEADER
from pulsarbox.storage.journal import Batch
from tests.unit.storage.batches import batch_of, entry_of

CONFIRMED, REJECTED, UNDECIDED = "confirmed", "rejected", "undecided"
LEDGER = 7


class Crash(BaseException):
    """The process ends."""


class History:
    """An ensemble and what was reported about its batches."""

    def __init__(self, directories: int) -> None:
        self.disks = [MemberDisk(name) for name in "abcde"[:directories]]
        self.outcomes: dict[int, str] = {}
        """By attempt."""
        self.entries: dict[int, int] = {}
        """The attempt that each position of the log has."""
        self.attempt = 0
        self.crash_after = -1
        """Operations until the process ends; negative for never."""
        self.refusing: dict[str, str] = {}
        """By disk: the operation that fails, or ``full`` or ``late`` for commits."""
        self.lost: set[str] = set()
        """Disks whose contents were lost since the last start that accepted it."""
        self.conflicts = 0
        """Starts for which a directory had to be emptied, because two of them were written separately."""
        self.engine: EnsembleEngine | None = None
        self.copied: list[int] = []
        self._current = ""

    def _count(self) -> None:
        """End the process if it is time."""
        if self.crash_after == 0:
            self.crash_after = -1
            raise Crash
        self.crash_after -= self.crash_after > 0

    def _of(self, disk: MemberDisk, operation: str, argument: Any) -> str:
        self._count()
        fault = self.refusing.get(disk.name, "")
        if operation == "commit" and fault == "full":
            raise StoreFull("full")
        if operation == "commit" and fault == "late":
            return FaultOutcome.LATE
        if operation == fault or fault == "all":
            raise PersistenceError(f"{disk.name} fails")
        return FaultOutcome.DONE

    def start(self, accept: tuple[str, ...] = ()) -> bool:
        """Open the ensemble and compare its log with the model; False if it refuses to start."""
        for disk in self.disks:
            disk.faults = partial(self._of, disk)
        engine = EnsembleEngine(
            [MemoryMember(disk) for disk in self.disks], limits=EnsembleLimits(300), accept_loss_of=accept
        )
        try:
            recovery = engine.recover()
        except EnsembleConflict as conflict:
            assert not self.refusing
            return self._start_with_one(str(conflict), accept)
        except EnsembleIncomplete:
            assert self.lost or not all(disk.present for disk in self.disks) or self.refusing
            return False
        except PersistenceError:
            assert not all(disk.present for disk in self.disks) or self.refusing
            return False
        self.engine = engine
        engine.copied = lambda batch, copies: self.copied.append(copies)
        found = [BATCH_HEADER.unpack_from(value)[5] for value in recovery.batches]
        mark = int(recovery.rows.get(b"position") or 0)
        self._compare(found, mark, recovery.next_position, is_whole=not accept)
        return True

    def _start_with_one(self, conflict: str, accept: tuple[str, ...]) -> bool:
        """Empty one of two directories that were written separately, as an operator does: nothing confirmed is lost."""
        self.conflicts += 1
        name = conflict.split()[2]
        next(disk for disk in self.disks if disk.name == name).wipe()
        return self.start(accept)

    def _compare(self, found: list[int], mark: int, next_position: int, *, is_whole: bool) -> None:
        assert self.engine is not None
        # What was never confirmed may come and go with its directories, if others can be started without them.
        is_final = not self.engine.table.refusal
        for attempt in found:
            assert self.outcomes[attempt] != REJECTED, "a rejected batch came back"
        if is_whole:
            assert len(found) == next_position - 1 - mark
        covered = {attempt for position, attempt in self.entries.items() if position <= mark}
        for attempt, outcome in self.outcomes.items():
            is_there = attempt in found or attempt in covered
            assert is_there or outcome != CONFIRMED or not is_whole, "a confirmed batch is gone"
            if is_final or outcome != UNDECIDED:
                self.outcomes[attempt] = CONFIRMED if is_there else REJECTED
        known = {position: attempt for position, attempt in self.entries.items() if position <= mark}
        if is_whole:
            known |= dict(enumerate(found, mark + 1))
        self.entries = known
        assert self.engine.next_position == next_position

    def commit(self, asked: tuple[int, int, int], minimum: int) -> None:
        """Commit a batch of one entry, in parts that ask for ``minimum`` copies and for others."""
        engine = self.engine
        assert engine is not None
        self.attempt += 1
        batch: Batch = batch_of(engine.next_position, [(LEDGER, engine.next_position, 1)])
        batch.wall = self.attempt
        batch.ask(*asked)
        batch.ask(1, 1, min(minimum, asked[2]))
        self.outcomes[self.attempt] = UNDECIDED
        self.copied = []
        try:
            engine.commit(batch)
        except TooFewCopies:
            self._decide(batch)
        except PersistenceError:
            assert not self.copied, "a part was confirmed, and then rejected"
            # A disk that cannot be written cannot erase either, and may be started without those that could.
            is_stuck = bool({"erase_from", "all"} & set(self.refusing.values())) or bool(engine.table.refusal)
            is_there = all(disk.present for disk in self.disks)
            self.outcomes[self.attempt] = REJECTED if is_there and not is_stuck else UNDECIDED
        except Crash:
            self.engine = None
            if self.copied:
                self._decide(batch)
        else:
            self._decide(batch)

    def _decide(self, batch: Batch) -> None:
        self.outcomes[self.attempt] = CONFIRMED
        self.entries[batch.position] = self.attempt

    def checkpoint(self) -> None:
        """Write a checkpoint of everything."""
        engine = self.engine
        assert engine is not None
        position = engine.next_position - 1
        try:
            engine.checkpoint(Checkpoint(position, {b"position": b"%d" % position}, ()))
        except PersistenceError:
            pass
        except Crash:
            self.engine = None

    def wipe(self, disk: MemberDisk) -> None:
        """Replace a directory by an empty one."""
        disk.wipe()
        self.lost.add(disk.name)

    def crash(self) -> None:
        """End the process."""
        self.engine = None
        for disk in self.disks:
            disk.settle()

    def read_all(self) -> None:
        """Read every entry of the log."""
        assert self.engine is not None
        for position in self.entries:
            entries = self.engine.read(ReadRequest(1, LEDGER, position, position, 1 << 20))
            assert entries == [entry_of(LEDGER, position)]
