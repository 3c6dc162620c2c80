"""Opening an ensemble of members in memory, some of which are missing, behind, or damaged."""

import copy
from typing import Any

import pytest

from pulsarbox.errors import NotEnoughBookies, PersistenceError
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.member import MemberState, PackedBatch
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, Faults, MemberDisk, MemoryMember, no_faults
from pulsarbox.storage.ensemble.recovery import EnsembleIncomplete
from pulsarbox.storage.ensemble.status import MemberEvent
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Meta, pack_meta
from tests.unit.storage.batches import batch_of


def unplug(disks: list[MemberDisk], names: str) -> None:
    """Unplug these disks, and plug in the others."""
    for disk in disks:
        disk.present = disk.name not in names


def metadata(position: int) -> Batch:
    batch = Batch(position)
    batch.add(pack_meta(Meta(b"key", b"%d" % position)))
    batch.ask(3, 3, 2)
    return batch


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


@pytest.mark.parametrize("before", [0, 1])
def test_a_directory_that_left_is_not_started_without_others_that_may_have_gone_on(before: int) -> None:
    disks = disks_of(3)
    engine, _ = opened(disks)
    for position in range(1, before + 1):
        engine.commit(asking(position, 1, 1))
    engine, _ = opened(disks)  # nothing is confirmed in the new generation while the first directory is there
    unplug(disks, "ac")
    engine.commit(asking(before + 1, 1, 1))
    unplug(disks, "bc")
    with pytest.raises(EnsembleIncomplete, match="--accept-loss-of b --accept-loss-of c"):
        opened(disks)
    unplug(disks, "c")
    assert len(opened(disks)[1]) == before + 1


def test_one_missing_directory_never_prevents_a_start_with_an_ack_quorum_of_two() -> None:
    disks = disks_of(3)
    position = 0
    for missing in "abcabc":
        unplug(disks, "")
        engine, _ = opened(disks)
        if position:
            unplug(disks, missing)
            engine, batches = opened(disks)  # nothing was confirmed since the last start
            assert len(batches) == position
        for _ in range(2):
            position += 1
            engine.commit(asking(position, 3, 2))
        unplug(disks, missing)
        assert len(opened(disks)[1]) == position


def test_no_message_is_confirmed_that_directories_that_left_do_not_expect() -> None:
    disks = disks_of(3)
    engine, _ = opened(disks)
    engine.commit(asking(1, 3, 2))
    unplug(disks, "ab")
    engine.commit(metadata(2))
    with pytest.raises(NotEnoughBookies, match="batch 3 is not stored: a, b can be started without the 1 directories"):
        engine.commit(asking(3, 1, 1))
    engine.commit(metadata(3))
    engine, batches = opened(disks)
    assert len(batches) == 3
    with pytest.raises(NotEnoughBookies):
        engine.commit(asking(4, 1, 1))
    unplug(disks, "b")
    engine, batches = opened(disks)
    assert len(batches) == 3
    engine.commit(asking(4, 1, 1))  # the first one knows all this, so the second one is not started alone
    unplug(disks, "ac")
    with pytest.raises(EnsembleIncomplete, match="--accept-loss-of a --accept-loss-of c"):
        opened(disks)


def test_a_message_of_a_lower_ack_quorum_is_confirmed_once_all_directories_expect_it() -> None:
    disks = disks_of(3)
    engine, _ = opened(disks)
    engine.commit(asking(1, 3, 2))
    engine.commit(asking(2, 1, 1))
    unplug(disks, "ab")
    for position in (3, 4):
        engine.commit(asking(position, 1, 1))
    unplug(disks, "c")
    with pytest.raises(EnsembleIncomplete, match="--accept-loss-of c"):
        opened(disks)


def test_the_loss_of_the_others_is_accepted_by_a_directory_that_left() -> None:
    disks = disks_of(3)
    engine, _ = opened(disks)
    engine.commit(asking(1, 3, 2))
    engine.table.leave(engine.table.slots[2], MemberState.LOST, "I/O error")
    disks[2].membership = engine.table.membership._replace(member_id=engine.table.slots[2].member_id)
    engine.commit(asking(2, 2, 2))
    unplug(disks, "ab")
    with pytest.raises(EnsembleIncomplete):
        opened(disks)
    assert len(opened(disks, "a", "b")[1]) == 1


def test_directories_that_share_a_device_are_named_at_a_start() -> None:
    disks = [MemberDisk(name, device) for name, device in zip("abcde", (1, 2, 1, 0, 0), strict=True)]
    engine = EnsembleEngine([MemoryMember(disk) for disk in disks])
    events: list[MemberEvent] = []
    engine.on_change = events.append
    engine.recover()
    shared = [event for event in events if event.kind == "shared-device"]
    assert [event.member for event in shared] == ["a"]
    assert shared[0].text.startswith("a, c are on the same device")


def test_a_directory_that_was_removed_is_not_started_alone() -> None:
    disks = disks_of(2)
    engine, _ = opened(disks)
    engine.commit(asking(1, 2, 2))
    member_id = engine.table.slots[1].member_id
    engine.table.release(engine.table.slots[1])
    disks[1].membership = engine.table.membership._replace(member_id=member_id)
    unplug(disks, "a")
    with pytest.raises(PersistenceError, match="b does not belong to the box any more"):
        opened(disks, "a")


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


@pytest.mark.parametrize("failing", ["commit", "write_membership"])
def test_a_rejected_batch_does_not_return_after_a_start_that_could_not_update_its_directory(failing: str) -> None:
    disks = disks_of(2)
    engine, _ = opened(disks)
    engine.commit(asking(1, 2, 1))
    old = _with_a_rejected_batch(disks[0])
    unplug(disks, "a")
    confirmed = [asking(position, 2, 1, nonce=3) for position in (2, 3)]
    for batch in confirmed:
        engine.commit(batch)
    unplug(disks, "")
    disks[0].faults = refusing(failing)
    engine, _ = opened(disks)
    assert [each.state for each in engine.status().members] == [MemberState.LOST, MemberState.ACTIVE]
    _, batches = opened([old, disks[1]])
    assert batches[1:] == [batch.value() for batch in confirmed]


def refusing(refused: str) -> Faults:
    """Return a fault that lets an operation fail."""

    def fault(operation: str, argument: Any) -> str:
        if operation == refused:
            raise PersistenceError("the disk does not answer")
        return FaultOutcome.DONE

    return fault


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
