"""Members that are lost, return, are added, removed and replaced: all entries end up with their copies."""

import copy

import pytest

from pulsarbox.errors import Conflict, EntryDamaged, NotFound, PersistenceError, PreconditionFailed
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.member import MemberState, PackedBatch
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember, no_faults
from tests.unit.storage.batches import batch_of
from tests.unit.storage.ensemble.keeping.kept_box import KeptBox


@pytest.fixture
def box() -> KeptBox:
    box = KeptBox("/a", "/b", "/c")
    for _ in range(10):
        for ledger_id in (1, 2, 3):
            box.publish(ledger_id)
    box.checkpoint()
    box.maintain()
    return box


def lose(box: KeptBox, name: str) -> None:
    """Unplug a disk; the next commits notice it."""
    box.disks[name].present = False
    for _ in range(40):
        box.publish(1)
    box.checkpoint()
    assert box.state(name) == MemberState.LOST


def test_nothing_is_copied_while_all_members_are_there(box: KeptBox) -> None:
    status = box.engine.status()
    assert (status.under_replicated, status.repair.bytes_done) == ((), 0)
    assert status.audited > 0
    assert sum(each.entries for each in status.members) == 2 * 90
    box.assert_complete()


def test_the_entries_of_a_lost_member_are_copied(box: KeptBox) -> None:
    lose(box, "/b")
    box.maintain()
    box.assert_complete()
    assert box.engine.status().repair.bytes_done > 0


def test_a_returned_member_is_active_again_and_keeps_its_copies(box: KeptBox) -> None:
    lose(box, "/b")
    box.disks["/b"].present = True
    box.maintain()
    assert box.state("/b") == MemberState.ACTIVE
    box.assert_complete()
    for _ in range(40):
        box.publish(2)
    box.checkpoint()
    box.maintain()
    box.assert_complete()
    assert box.disks["/b"].membership is not None
    assert box.disks["/b"].membership.generation == box.engine.status().generation


def test_a_returned_member_does_not_bring_back_deleted_ledgers(box: KeptBox) -> None:
    lose(box, "/b")
    box.checkpoint(dropped=(3,))
    box.disks["/b"].present = True
    box.maintain()
    assert 3 not in box.engine.table.slots[1].member.ledgers()
    box.assert_complete()


def test_an_old_state_of_a_directory_does_not_bring_back_a_rejected_batch(box: KeptBox) -> None:
    disk, entry = box.disks["/a"], box.ends[1]
    old = copy.deepcopy(disk)
    rejected = batch_of(box.engine.next_position, [(1, entry, 1)], 500)
    MemoryMember(old).commit(PackedBatch(rejected.position, rejected.value(), rejected.runs))
    lose(box, "/c")  # a new generation
    box.disks["/c"].present = True
    box.maintain()
    old.incarnation = disk.incarnation + 1
    disk.__dict__.update(old.__dict__)
    for _ in range(40):
        box.publish(1)
    box.checkpoint()
    box.maintain()
    assert box.state("/a") == MemberState.ACTIVE
    box.assert_complete()
    sizes = {len(each.read(ReadRequest(1, 1, entry, entry, 1 << 20))[0].body) for each in having(box, entry)}
    assert sizes == {46}


def test_a_directory_that_does_not_record_its_return_is_limited_as_before(box: KeptBox) -> None:
    lose(box, "/c")
    slot = next(slot for slot in box.engine.table.slots if slot.name == "/c")
    before = slot.left_at

    def refuse(operation: str, argument: object) -> str:
        if operation == "write_membership":
            raise PersistenceError("the disk does not answer")
        return FaultOutcome.DONE

    box.disks["/c"].faults = refuse
    box.disks["/c"].present = True
    box.maintain()
    assert (box.state("/c"), slot.left_at) == (MemberState.LOST, before)
    box.disks["/c"].faults = no_faults
    box.now += 1000
    box.maintain()
    assert (box.state("/c"), slot.left_at) == (MemberState.ACTIVE, 0)


def having(box: KeptBox, entry: int) -> list[MemoryMember]:
    """The directories that have an entry of ledger 1."""
    return [MemoryMember(disk) for disk in box.disks.values() if disk.find(1, entry)]


def test_a_wiped_directory_is_not_used_by_itself(box: KeptBox) -> None:
    box.disks["/b"].wipe()
    lose_notice(box, "/b")
    box.maintain()
    assert box.state("/b") == MemberState.LOST
    box.engine.replace("/b", "/b")
    box.maintain()
    assert box.state("/b") == MemberState.ACTIVE
    box.assert_complete()


def lose_notice(box: KeptBox, name: str) -> None:
    """Commit until a failure is noticed."""
    for _ in range(40):
        box.publish(1)
    box.checkpoint()
    assert box.state(name) == MemberState.LOST


def test_an_added_directory_is_used_by_later_segments(box: KeptBox) -> None:
    box.engine.add("/d")
    assert box.state("/d") == MemberState.JOINING
    box.maintain()
    assert box.state("/d") == MemberState.ACTIVE
    for _ in range(60):
        box.publish(1)
    assert box.engine.table.slots[3].member.ledgers() == [1]
    assert dict(box.disks["/d"].rows) == dict(box.disks["/a"].rows)


def test_a_removed_directory_is_released_once_its_entries_are_elsewhere(box: KeptBox) -> None:
    box.engine.remove("/c")
    assert box.state("/c") == MemberState.LEAVING
    before = len(box.disks["/c"].log)
    for _ in range(40):
        box.publish(1)
    assert len(box.disks["/c"].log) == before
    box.maintain()
    assert box.state("/c") == MemberState.LEAVING  # messages behind the checkpoint
    box.checkpoint()
    box.maintain()
    assert box.state("/c") == ""
    assert [event.kind for event in box.events][-1] == "member-left"
    box.assert_complete()


def test_a_restart_goes_on_with_a_removal(box: KeptBox) -> None:
    box.engine.remove("/c")
    box.engine.close()
    box.open("/a", "/b", "/c")
    assert box.state("/c") == MemberState.LEAVING
    box.checkpoint()
    box.maintain()
    assert box.state("/c") == ""
    box.engine.close()
    box.open("/a", "/b")
    box.maintain()
    box.assert_complete()


@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_a_directory_that_is_lost_while_it_is_removed_continues_to_leave(box: KeptBox, restarts: int) -> None:
    box.engine.remove("/c")
    box.disks["/c"].present = False
    box.now += 10
    box.maintain(steps=2000)
    assert box.state("/c") == MemberState.LOST
    for present in [False, True][2 - restarts :]:
        box.engine.close()
        box.disks["/c"].present = present
        box.open("/a", "/b", "/c")
    box.disks["/c"].present = True
    box.now += 1000
    box.publish(1)
    box.maintain()
    before = len(box.disks["/c"].log)
    for _ in range(40):
        box.publish(1)
    assert box.state("/c") == MemberState.LEAVING
    assert len(box.disks["/c"].log) == before
    box.checkpoint()
    box.maintain()
    assert box.state("/c") == ""
    box.assert_complete()


def test_a_directory_that_is_lost_while_it_is_replaced_continues_to_leave(box: KeptBox) -> None:
    box.engine.replace("/b", "/d")
    box.disks["/b"].present = False
    box.now += 10
    box.maintain()
    assert (box.state("/b"), box.state("/d")) == (MemberState.LOST, MemberState.ACTIVE)
    box.disks["/b"].present = True
    box.now += 1000
    box.maintain()
    assert (box.state("/b"), box.state("/d")) == ("", MemberState.ACTIVE)
    box.assert_complete()


def test_a_restart_goes_on_with_an_addition(box: KeptBox) -> None:
    box.engine.add("/d")
    box.engine.close()
    box.open("/a", "/b", "/c", "/d")
    box.maintain()
    assert box.state("/d") == MemberState.ACTIVE
    box.assert_complete()


def test_a_replaced_directory_leaves_when_the_new_one_is_in_use(box: KeptBox) -> None:
    box.engine.replace("/b", "/d")
    assert (box.state("/b"), box.state("/d")) == (MemberState.ACTIVE, MemberState.JOINING)
    box.maintain()
    box.checkpoint()
    box.maintain()
    assert (box.state("/b"), box.state("/d")) == ("", MemberState.ACTIVE)
    box.assert_complete()


def test_a_removed_directory_can_be_added_again(box: KeptBox) -> None:
    box.engine.remove("/c")
    box.maintain()
    box.checkpoint()
    box.maintain()
    box.engine.add("/c")
    box.maintain()
    assert box.state("/c") == MemberState.ACTIVE
    box.assert_complete()


def test_damaged_copies_are_found_by_a_scrub_and_replaced(box: KeptBox) -> None:
    name = box.copies_of(2, 5)[0]
    box.flip(name, 2, 5)
    box.engine.scrub(name)
    box.maintain()
    box.assert_complete()
    assert "entries-damaged" in [event.kind for event in box.events]
    assert {each.name: each.scrub.found for each in box.engine.status().members}[name] == 1


def test_a_damaged_copy_found_by_a_read_is_replaced(box: KeptBox) -> None:
    for name in box.copies_of(2, 0)[:1]:
        box.flip(name, 2, 0)
    assert [entry.entry_id for entry in box.read(2)] == list(range(30))
    box.maintain()
    box.assert_complete()


def test_lost_entries_are_damaged_entries_to_readers(box: KeptBox) -> None:
    for disk in box.disks.values():
        disk.cut(2, 4, 6)
    box.now += 600
    box.maintain()
    with pytest.raises(EntryDamaged, match="2:4 to 5"):
        box.engine.read(ReadRequest(1, 2, 4, 9, 1 << 20))
    assert [entry.entry_id for entry in box.engine.read(ReadRequest(1, 2, 0, 9, 1 << 20))] == [0, 1, 2, 3]


# Refusals


def test_unknown_names_are_refused(box: KeptBox) -> None:
    with pytest.raises(NotFound, match="/x is not a data directory"):
        box.engine.remove("/x")
    with pytest.raises(NotFound, match="/x is not a data directory"):
        box.engine.replace("/x", "/y")


def test_paths_inside_another_member_are_refused(box: KeptBox) -> None:
    with pytest.raises(PreconditionFailed, match="one contains the other"):
        box.engine.add("/a/inside")
    with pytest.raises(Conflict, match="already"):
        box.engine.add("/a")


def test_a_directory_of_another_box_is_refused(box: KeptBox) -> None:
    box.disks["/x"] = MemberDisk("/x")
    box.disks["/x"].box = "other"
    with pytest.raises(Conflict, match="belongs to box other"):
        box.engine.add("/x")
    assert box.state("/x") == ""


def test_too_few_remaining_directories_are_refused_unless_forced(box: KeptBox) -> None:
    box.engine.remove("/c")
    box.maintain()
    box.checkpoint()
    box.maintain()
    with pytest.raises(Conflict, match="policies ask for 2 copies, and 1 data directories would be left"):
        box.engine.remove("/b")
    box.engine.remove("/b", force=True)
    box.maintain()
    box.checkpoint()
    box.maintain()
    assert box.state("/b") == ""
    box.copies = 1
    box.now += 600
    box.maintain()
    box.assert_complete()


def test_the_last_directory_is_refused_even_if_forced() -> None:
    box = KeptBox("/a", copies=1)
    box.publish(1)
    box.checkpoint()
    box.maintain()
    with pytest.raises(Conflict, match="only writable"):
        box.engine.remove("/a", force=True)


def test_a_lost_directory_with_the_only_copies_is_refused_unless_forced() -> None:
    box = KeptBox("/a", "/b", copies=1)
    for _ in range(80):
        box.publish(1)
    box.checkpoint()
    box.disks["/b"].present = False
    for _ in range(40):
        box.publish(1)
    box.checkpoint()
    box.maintain()
    assert box.state("/b") == MemberState.LOST
    with pytest.raises(Conflict, match="only copies of"):
        box.engine.remove("/b")
    box.engine.remove("/b", force=True)
    assert box.state("/b") == ""
    box.maintain()
    assert "entries-lost" in [event.kind for event in box.events]


def test_a_lost_directory_without_the_only_copies_is_released_at_once(box: KeptBox) -> None:
    lose(box, "/b")
    box.maintain()
    box.engine.remove("/b")
    assert box.state("/b") == ""
    box.assert_complete()


def test_an_addition_that_cannot_be_recorded_changes_nothing(box: KeptBox) -> None:
    def fail(operation: str, argument: object) -> str:
        if operation == "write_membership":
            raise PersistenceError("no")
        return "done"

    box.disks["/d"] = MemberDisk("/d", faults=fail)
    with pytest.raises(PersistenceError):
        box.engine.add("/d")
    assert box.state("/d") == ""
    box.disks["/d"].faults = lambda operation, argument: "done"
    box.engine.add("/d")
    box.maintain()
    assert box.state("/d") == MemberState.ACTIVE
