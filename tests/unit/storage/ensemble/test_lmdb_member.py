"""A data directory as a member of an ensemble."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import PackedBatch
from tests.unit.storage.batches import batch_of, entry_of


@pytest.fixture
def member(tmp_path: Path) -> Iterator[LmdbMember]:
    member = LmdbMember(tmp_path / "one", volume_size=1 << 20, index_flush_entries=8)
    member.open()
    yield member
    member.close()


def commit(member: LmdbMember, position: int, *runs: tuple[int, int, int]) -> bytes:
    batch = batch_of(position, list(runs))
    member.commit(PackedBatch(position, batch.value(), batch.runs))
    return batch.value()


def test_a_gap_begins_a_volume(member: LmdbMember) -> None:
    values = {position: commit(member, position, (1, position * 2, 2)) for position in (3, 4, 9, 10, 11, 20)}
    assert len(member.engine.volumes.live) == 3
    assert member.coverage([1, 2]) == {1: [(6, 10), (18, 24), (40, 42)]}
    assert member.ledgers() == [1]
    assert dict(member.batches(0)) == values
    assert list(member.batches(9)) == [(10, values[10]), (11, values[11]), (20, values[20])]
    assert member.read(ReadRequest(1, 1, 18, 99, 1 << 20)) == [entry_of(1, each) for each in range(18, 24)]
    pieces = member.pieces(1, 19, 24, 1 << 20)
    assert [(piece.position, [each.entry_id for each in piece.entries]) for piece in pieces] == [
        (9, [19]), (10, [20, 21]), (11, [22, 23])
    ]  # fmt: skip
    with pytest.raises(PersistenceError, match="does not exist"):
        member.pieces(1, 10, 12, 1)


@pytest.mark.parametrize("position", [1, 4, 5, 9, 11, 20, 21])
def test_the_end_of_the_log_is_erased(member: LmdbMember, position: int) -> None:
    values = {position: commit(member, position, (1, position * 2, 2)) for position in (3, 4, 9, 10, 11, 20)}
    member.erase_from(position)
    assert dict(member.batches(0)) == {each: value for each, value in values.items() if each < position}
    commit(member, 30, (1, 60, 1))
    assert [first for first, _ in member.coverage([1])[1]][-1] == 60


def test_a_directory_that_is_gone_takes_no_batch(member: LmdbMember, tmp_path: Path) -> None:
    commit(member, 1, (1, 0, 2))
    (tmp_path / "one").rename(tmp_path / "two")
    assert not member.is_there()
    with pytest.raises(PersistenceError, match="no longer there"):
        commit(member, 2, (1, 2, 2))
