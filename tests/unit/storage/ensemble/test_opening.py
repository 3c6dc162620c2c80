"""Opening an ensemble of members in memory, some of which are missing, behind, or damaged."""

import pytest

from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
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


def _go_on_without_the_second(disks: list[MemberDisk]) -> None:
    """Commit four batches, the last one without the second directory, of which the first one then loses three."""
    engine, _ = opened(disks)
    for position in (1, 2, 3):
        engine.commit(asking(position, 2, 1))
    disks[1].present = False
    engine.commit(asking(4, 2, 1))
    for position in (2, 3, 4):
        disks[0].remove(position)
