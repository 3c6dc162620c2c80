"""The member in memory: a log with gaps, copies of entries, and injected faults."""

from typing import Any

import pytest

from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.member import MemberLate, PackedBatch, Piece
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember
from tests.unit.storage.batches import batch_of, entry_of


def packed(position: int, *runs: tuple[int, int, int]) -> PackedBatch:
    """A batch as members store it."""
    batch = batch_of(position, runs)
    return PackedBatch(position, batch.value(), batch.runs)


def ids(member: MemoryMember, ledger_id: int, first: int, last: int) -> list[int]:
    """Read entries and return their IDs."""
    entries = member.read(ReadRequest(1, ledger_id, first, last, 1 << 30))
    assert entries == [entry_of(ledger_id, each.entry_id) for each in entries]
    return [each.entry_id for each in entries]


@pytest.fixture
def disk() -> MemberDisk:
    return MemberDisk("a")


@pytest.fixture
def member(disk: MemberDisk) -> MemoryMember:
    member = MemoryMember(disk)
    member.open()
    return member


def test_the_log_may_have_gaps(disk: MemberDisk, member: MemoryMember) -> None:
    for position, first in ((1, 0), (4, 2), (9, 4)):
        member.commit(packed(position, (1, first, 2)))
    assert [position for position, _ in member.batches(1)] == [4, 9]
    assert ids(member, 1, 1, 9) == [1, 2, 3, 4, 5]
    content = MemoryMember(disk).open()
    assert (content.newest, content.mark) == (9, 0)


def test_entries_that_other_members_have_end_a_read(member: MemoryMember) -> None:
    member.commit(packed(1, (1, 0, 2)))
    member.commit(packed(3, (1, 4, 2)))
    assert ids(member, 1, 0, 5) == [0, 1]
    with pytest.raises(PersistenceError, match="does not exist"):
        ids(member, 1, 2, 5)
    assert member.coverage([1, 2]) == {1: [(0, 2), (4, 6)]}


def test_adopted_entries_fill_a_gap_and_replace_forgotten_ones(member: MemoryMember) -> None:
    member.commit(packed(1, (1, 0, 4)))
    member.commit(packed(3, (1, 6, 2)))
    member.forget(1, 1, 3)
    assert member.coverage([1]) == {1: [(0, 1), (3, 4), (6, 8)]}
    pieces = [Piece(1, [entry_of(1, each) for each in range(4)]), Piece(2, [entry_of(1, 4), entry_of(1, 5)])]
    assert member.adopt(pieces) > 0
    assert member.pieces(1, 2, 7, 1 << 20) == [
        Piece(1, [entry_of(1, 2)]), Piece(1, [entry_of(1, 3)]), Piece(2, pieces[1].entries), Piece(3, [entry_of(1, 6)])
    ]  # fmt: skip
    assert member.coverage([1]) == {1: [(0, 8)]}
    assert ids(member, 1, 0, 7) == list(range(8))


def test_erased_batches_are_not_read(member: MemoryMember) -> None:
    member.commit(packed(1, (1, 0, 2)))
    member.commit(packed(2, (1, 2, 2)))
    member.erase_from(2)
    assert ids(member, 1, 0, 5) == [0, 1]
    member.commit(packed(2, (1, 2, 1)))
    assert ids(member, 1, 0, 5) == [0, 1, 2]


def test_dropped_ledgers_are_reclaimed(disk: MemberDisk, member: MemoryMember) -> None:
    member.commit(packed(1, (1, 0, 2), (2, 0, 2)))
    member.adopt([Piece(1, [entry_of(3, 0)])])
    member.checkpoint(Checkpoint(5, {b"a": b"1"}, (1, 3)))
    assert member.ledgers() == [2]
    while member.reclaim() is not None:
        pass
    assert ids(member, 2, 0, 1) == [0, 1]
    assert disk.packed == {}
    assert sorted(disk.index) == [2]


def test_rows_of_another_member_replace_its_own(disk: MemberDisk, member: MemoryMember) -> None:
    member.commit(packed(1, (5, 0, 1), (6, 0, 1), (9, 0, 1)))
    member.checkpoint(Checkpoint(1, {b"old": b"1"}, ()))
    rows = {b"ids": b'{"next": 8, "boot": 1}', b"ledger/%016x/%016x" % (1, 5): b"{}"}
    member.replace_rows(rows.items(), 7)
    assert (dict(disk.rows), disk.mark) == (rows, 7)
    assert member.ledgers() == [5, 9]


def test_a_lie_is_lost_at_a_power_failure(disk: MemberDisk, member: MemoryMember) -> None:
    member.commit(packed(1, (1, 0, 1)))
    disk.faults = lambda operation, argument: FaultOutcome.LIE
    member.commit(packed(2, (1, 1, 1)))
    assert ids(member, 1, 0, 1) == [0, 1]
    disk.power_failure()
    assert ids(member, 1, 0, 1) == [0]


def test_a_late_write_may_complete(disk: MemberDisk, member: MemoryMember) -> None:
    disk.faults = lambda operation, argument: FaultOutcome.LATE
    with pytest.raises(MemberLate):
        member.commit(packed(1, (1, 0, 1)))
    assert list(member.batches(0)) == []
    disk.settle()
    assert [position for position, _ in member.batches(0)] == [1]


def test_a_refused_write_leaves_nothing_behind(disk: MemberDisk, member: MemoryMember) -> None:
    def full(operation: str, argument: Any) -> str:
        if operation == "commit":
            raise StoreFull("full")
        return FaultOutcome.DONE

    disk.faults = full
    with pytest.raises(StoreFull):
        member.commit(packed(1, (1, 0, 1)))
    assert list(member.batches(0)) == []


def test_a_replaced_directory_is_noticed(disk: MemberDisk, member: MemoryMember) -> None:
    disk.present = False
    assert not member.is_there()
    disk.present = True
    assert member.is_there()
    disk.wipe()
    assert not member.is_there()
    with pytest.raises(PersistenceError, match="no longer there"):
        member.commit(packed(1, (1, 0, 1)))
    assert MemoryMember(disk).is_there()
