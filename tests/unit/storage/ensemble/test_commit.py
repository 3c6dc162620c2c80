"""The commit of a batch beside members that fail at any instant."""

from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.copy_writes import CopyWrite, InlineWriters
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember
from tests.unit.storage.batches import batch_of


class DelayedWriters(InlineWriters):
    """Writers whose completed writes are noticed one call later."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def completed(self, seconds: float) -> CopyWrite | None:
        self.calls += 1
        return None if self.calls == 2 else super().completed(seconds)


def test_another_member_takes_over_from_one_whose_failure_is_noticed_last() -> None:
    written: list[str] = []

    def fail_second(operation: str, argument: Any) -> str:
        if operation == "commit":
            written.append(operation)
            if len(written) == 2:
                raise PersistenceError("I/O error")
        return FaultOutcome.DONE

    disks = [MemberDisk(name, faults=fail_second) for name in "abc"]
    engine = EnsembleEngine([MemoryMember(disk) for disk in disks], writers=DelayedWriters())
    for _ in engine.recover().batches:
        pass
    engine._writers.calls = 0  # type: ignore[attr-defined]
    batch = batch_of(1, [(1, 0, 2)])
    batch.ask(3, 2, 2)
    engine.commit(batch)
    assert len(written) == 3
    assert sum(len(disk.log) for disk in disks) == 2
