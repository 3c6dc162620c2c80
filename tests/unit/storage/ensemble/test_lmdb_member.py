"""A data directory as a member of an ensemble."""

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import PackedBatch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.volume import Volume
from tests.unit.storage.batches import batch_of, entry_of
from tests.unit.storage.ensemble.member_conformance import BoxLog, entries_of, membership, reclaim_all, zlib_for_all


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


def test_a_truncated_file_is_noticed_before_it_is_read(member: LmdbMember) -> None:
    commit(member, 1, (1, 0, 2))
    commit(member, 9, (1, 9, 2))
    assert member.is_there()
    assert len(member.pieces(1, 0, 2, 1 << 20)) == 1
    older = member.engine.volumes.directory.volume(1) / "data.mdb"
    newest = member.engine.volumes.directory.volume(2) / "data.mdb"
    os.truncate(older, older.stat().st_size - 1)
    with pytest.raises(PersistenceError, match="truncated"):
        member.pieces(1, 0, 2, 1 << 20)
    assert member.is_there()
    os.truncate(newest, newest.stat().st_size - 1)
    assert not member.is_there()


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_a_failed_write_leaves_nothing(member: LmdbMember, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    commit(member, 1, (1, 0, 2))

    def append(*_: object) -> None:
        raise lmdb.Error("mdb_txn_commit", code) if code != errno.ENOSPC else lmdb.DiskError("mdb_txn_commit", code)

    with monkeypatch.context() as patch:
        patch.setattr(Volume, "append", append)
        with pytest.raises(PersistenceError) as caught:
            commit(member, 2, (1, 2, 2))
        assert isinstance(caught.value, StoreFull) == (code == errno.ENOSPC)
    assert member.coverage([1]) == {1: [(0, 2)]}
    commit(member, 2, (1, 2, 2))
    assert member.coverage([1]) == {1: [(0, 4)]}


def test_a_directory_of_another_box_is_told(tmp_path: Path) -> None:
    for box in ("first", "second"):
        member = LmdbMember(tmp_path / box)
        member.open()
        member.write_membership(membership(box))
        with pytest.raises(PersistenceError, match=f"belongs to box {box}, not to third"):
            member.write_membership(membership("third"))
        member.close()
    shutil.copy(tmp_path / "first" / "ENSEMBLE", tmp_path / "second" / "ENSEMBLE")
    member = LmdbMember(tmp_path / "second")
    content = member.open()
    assert content.box == "second"
    assert content.membership is not None
    assert content.membership.box == "first"
    member.close()


def test_a_damaged_membership_is_told(tmp_path: Path) -> None:
    member = LmdbMember(tmp_path / "one")
    member.open()
    member.write_membership(membership("box"))
    member.close()
    (tmp_path / "one" / "ENSEMBLE").write_bytes(b"{")
    again = LmdbMember(tmp_path / "one")
    with pytest.raises(PersistenceError, match="ENSEMBLE is damaged"):
        again.open()


def test_a_box_with_one_directory_has_no_gaps(tmp_path: Path) -> None:
    """A directory that left an ensemble is not taken for one with lost batches in between, but refused."""
    member = LmdbMember(tmp_path / "one")
    member.open()
    commit(member, 1, (1, 0, 1))
    commit(member, 5, (1, 4, 1))
    member.close()
    with pytest.raises(PersistenceError, match="ends at batch 1, but the next begins at 5"):
        LmdbEngine(tmp_path / "one").recover()


def test_one_of_several_directories_is_not_opened_alone(tmp_path: Path) -> None:
    member = LmdbMember(tmp_path / "one")
    member.open()
    member.write_membership(membership("box"))
    member.close()
    with pytest.raises(PersistenceError, match="list all of them in dataDirectories"):
        LmdbEngine(tmp_path / "one").recover()
    again = LmdbMember(tmp_path / "one")
    assert again.open().box == "box"
    again.close()


def test_many_ledgers_are_listed_at_once(member: LmdbMember) -> None:
    ledgers = range(1, 3001)
    for position in (1, 2, 5):
        commit(member, position, *[(ledger, position, 1) for ledger in ledgers])
    found = member.coverage(list(ledgers))
    assert found == {ledger: [(1, 3), (5, 6)] for ledger in ledgers}
    assert member.ledgers() == list(ledgers)


def test_copies_are_compressed_later_like_other_entries(member: LmdbMember) -> None:
    log = BoxLog()
    for _ in range(30):
        log.add(0, 0, 3)
    member.adopt(log.pieces(3, list(range(90))))
    member.checkpoint(Checkpoint(30, {}, ()))
    reclaim_all(member, zlib_for_all())
    assert entries_of(member, 3) == list(range(90))
    with member.engine.volumes.metas.using(0) as meta:
        assert [key[1] for key in meta.usage()] == [3]


def test_reading_and_committing_beside_adopting_and_forgetting(member: LmdbMember) -> None:
    log = BoxLog()
    batches = [log.add(2, 1) for _ in range(120)]
    done = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                for first, end in member.coverage([2]).get(2, ()):
                    assert member.read(ReadRequest(1, 2, first, end - 1, 4000))
        except BaseException as error:  # any failure of the thread
            failures.append(error)

    def write() -> None:
        try:
            for batch in batches:
                if batch.position % 7:
                    member.commit(batch)
        except BaseException as error:  # any failure of the thread
            failures.append(error)
        finally:
            done.set()

    threads = [threading.Thread(target=read), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    rounds = 0
    while not done.is_set() or rounds < 3:
        lacking = [each for each in range(7, 120, 7) if log.place(2, each - 1) == each]
        newest = member.engine.next_position
        member.adopt(log.pieces(2, [each - 1 for each in lacking if each < newest]))
        member.forget(1, rounds, rounds + 1)
        member.reclaim()
        rounds += 1
    for thread in threads:
        thread.join()
    assert failures == []
    member.adopt(log.pieces(2, list(range(120))))
    assert entries_of(member, 2) == list(range(120))


def test_a_directory_that_must_exist_is_not_created(tmp_path: Path) -> None:
    member = LmdbMember(tmp_path / "missing")
    member.must_exist = True
    with pytest.raises(PersistenceError, match="missing is missing"):
        member.open()
    assert not (tmp_path / "missing").exists()


def test_batches_are_erased_after_a_write_that_broke_the_environment(
    member: LmdbMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise lmdb.PanicError("mdb_txn_begin")

    number = member.engine.volumes.current
    with member.engine.volumes.pool.using(number) as before:
        pass
    with monkeypatch.context() as patch:
        patch.setattr("pulsarbox.storage.lmdb.engine.erase_from", broken)
        with pytest.raises(PersistenceError, match="could not be erased"):
            member.erase_from(1)
    with member.engine.volumes.pool.using(number) as after:
        assert after is not before
    member.erase_from(1)
