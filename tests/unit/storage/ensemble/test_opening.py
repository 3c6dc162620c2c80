"""Opening an ensemble of members in memory, some of which are missing, behind, or damaged."""

import copy
from typing import Any

import pytest

from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.member import PackedBatch
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember, no_faults
from pulsarbox.storage.ensemble.recovery import EnsembleIncomplete
from pulsarbox.storage.journal import Batch
from tests.unit.storage.batches import batch_of


def disks_of(count: int) -> list[MemberDisk]:
    return [MemberDisk(name) for name in "abcde"[:count]]


def opened(disks: list[MemberDisk], *accepted: str) -> tuple[EnsembleEngine, list[bytes]]:
    """Return an engine, and the batches that it recovered."""
    engine = EnsembleEngine([MemoryMember(disk) for disk in disks], accept_loss_of=accepted)
    return engine, list(engine.recover().batches)


def asking(position: int, copies: int, ack_quorum: int, nonce: int = 0) -> Batch:
    batch = batch_of(position, [(1, position - 1, 1)])
    batch.wall = nonce
    batch.ask(copies, copies, ack_quorum)
    return batch


def test_a_batch_with_one_copy_is_copied_to_the_other_directories_when_the_log_is_opened() -> None:
    disks = disks_of(3)
    engine, _ = opened(disks)
    engine.commit(asking(1, 3, 2))
    values = [disk.log[1] for disk in disks]
    for disk in disks[:2]:  # a crash while the batch was written
        disk.remove(1)
    assert opened(disks)[1] == values[:1]
    assert [disk.log.get(1) for disk in disks] == values


def test_a_damaged_copy_of_the_last_batch_is_not_copied() -> None:
    disks = disks_of(3)
    engine, _ = opened(disks)
    engine.commit(asking(1, 3, 2))
    value = disks[1].log[1]
    disks[0].log[1] = value[:-1] + bytes([value[-1] ^ 1])
    disks[2].remove(1)
    opened(disks)
    assert disks[2].log[1] == value


def test_a_confirmed_batch_that_only_a_missing_directory_has_is_not_lost_silently() -> None:
    disks = disks_of(2)
    _go_on_without_the_second(disks)
    with pytest.raises(EnsembleIncomplete, match=r"batch 2 .* make b available again"):
        opened(disks)


def test_what_a_directory_had_after_the_end_of_the_log_does_not_return_with_it() -> None:
    disks = disks_of(2)
    _go_on_without_the_second(disks)
    engine, _ = opened(disks, "b")
    after = asking(2, 1, 1, nonce=2)
    engine.commit(after)
    disks[1].present = True
    engine, batches = opened(disks)
    assert batches[1:] == [after.value()]
    assert len(engine.read(ReadRequest(1, 1, 0, 1, 1 << 20))) == 2


def test_a_rejected_batch_does_not_return_with_an_old_state_of_a_directory() -> None:
    disks = disks_of(2)
    engine, _ = opened(disks)
    engine.commit(asking(1, 2, 2))
    old = _with_a_rejected_batch(disks[0])
    engine, _ = opened(disks)
    confirmed = [asking(position, 2, 2, nonce=3) for position in (2, 3, 4)]
    for batch in confirmed:
        engine.commit(batch)
    _, batches = opened([old, disks[1]])
    assert batches[1:] == [batch.value() for batch in confirmed]
    assert list(old.log.items()) == [(4, batches[3])]  # the repair copies the others


def test_an_old_state_of_a_directory_counts_as_a_missing_directory() -> None:
    disks = disks_of(2)
    engine, _ = opened(disks)
    engine.commit(asking(1, 2, 1))
    old = _with_a_rejected_batch(disks[0])
    engine, _ = opened(disks)
    engine.commit(asking(2, 1, 1))
    with pytest.raises(EnsembleIncomplete, match="make a available again"):
        opened([old, disks[1]])
    assert opened([old, disks[1]], "a")[0].next_position > 1


def test_a_directory_that_missed_the_last_generation_in_a_crash_is_trusted() -> None:
    disks = disks_of(2)
    engine, _ = opened(disks)
    engine.commit(asking(1, 2, 1))
    value = disks[0].log[1]
    disks[0].remove(1)

    def crash(operation: str, argument: Any) -> str:
        if operation == "write_membership":
            raise KeyboardInterrupt
        return FaultOutcome.DONE

    disks[1].faults = crash
    with pytest.raises(KeyboardInterrupt):
        opened(disks)
    disks[1].faults = no_faults
    assert opened(disks)[1] == [value]


def _with_a_rejected_batch(disk: MemberDisk) -> MemberDisk:
    """Return a copy of a disk with a second batch in its log, which was not confirmed."""
    old = copy.deepcopy(disk)
    batch = asking(2, 2, 2, nonce=2)
    MemoryMember(old).commit(PackedBatch(2, batch.value(), batch.runs))
    return old


def _go_on_without_the_second(disks: list[MemberDisk]) -> None:
    """Commit four batches, the last one without the second directory, of which the first one then loses three."""
    engine, _ = opened(disks)
    for position in (1, 2, 3):
        engine.commit(asking(position, 2, 1))
    disks[1].present = False
    engine.commit(asking(4, 2, 1))
    for position in (2, 3, 4):
        disks[0].remove(position)
