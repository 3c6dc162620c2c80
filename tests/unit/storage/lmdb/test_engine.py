"""The LMDB engine: the conformance suite; volume rollover; crashes, full disks, damage and a second opener."""

import errno
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.storage.engine import Checkpoint, Engine, ReadRequest
from pulsarbox.storage.format import LOG_KEY
from pulsarbox.storage.lmdb.directory import DirectoryHeld, verify_environment
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.environment import failure
from tests.tools.campaigns import short
from tests.unit.storage.batches import batch_of
from tests.unit.storage.engine_conformance import (
    ALL,
    EngineConformance,
    Store,
    checkpoint_at,
    ids,
    meta_batch,
    reclaim_all,
)

ROOT = Path(__file__).parents[4]


class LmdbStore(Store):
    """A data directory."""

    def __init__(self, path: Path, volume_size: int = 1 << 30, flush_entries: int = 20_000, **more: Any) -> None:
        super().__init__()
        self.path = path
        self.factory: Callable[[], LmdbEngine] = lambda: LmdbEngine(
            path, volume_size=volume_size, index_flush_entries=flush_entries, **more
        )

    def make(self) -> Engine:
        return self.factory()

    def open(self) -> LmdbEngine:
        """Reopen the store, for tests of engine internals."""
        engine = self.reopen()
        assert isinstance(engine, LmdbEngine)
        return engine

    def volumes(self) -> list[str]:
        """The names in volumes/."""
        return sorted(path.name for path in (self.path / "volumes").iterdir())


class TestLmdbEngine(EngineConformance):
    """The suite with the default configuration, with continuous index writes, and with a new volume every few
    batches."""

    @pytest.fixture(
        params=[
            pytest.param((1 << 30, 20_000), id="default"),
            pytest.param((1 << 30, 10), id="index", marks=pytest.mark.campaign),  # new volumes write theirs too
            pytest.param((60_000, 25), id="volumes"),
        ]
    )
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
        volume_size, flush_entries = request.param
        store = LmdbStore(tmp_path / "data", volume_size, flush_entries)
        yield store
        store.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[LmdbStore]:
    """A store whose volumes hold a few batches, with at most two of them open."""
    store = LmdbStore(tmp_path / "data", 150_000, 25, open_volumes_max=2)
    yield store
    store.close()


def commit_rounds(engine: Engine, first: int, rounds: int, ledgers: int = 3) -> None:
    """Commit two entries to each ledger per batch; batch n holds entries 2n - 2 and 2n - 1."""
    for position in range(first, first + rounds):
        engine.commit(batch_of(position, [(ledger, 2 * position - 2, 2) for ledger in range(ledgers)], 400))


def check_rounds(engine: Engine, rounds: int, ledgers: int = 3) -> None:
    for ledger_id in range(ledgers):
        entries = engine.read(ReadRequest(1, ledger_id, 0, ALL, ALL)) if rounds else []
        assert [entry.entry_id for entry in entries] == list(range(2 * rounds))
        assert all(entry.body[6:].startswith(b"%d:%d " % (ledger_id, entry.entry_id)) for entry in entries)


def test_volumes_roll_and_are_read_across(small: LmdbStore) -> None:
    engine = small.open()
    commit_rounds(engine, 1, 200)
    assert len(small.volumes()) > 3
    for _ in range(2):
        check_rounds(engine, 200)
        for entry_id in range(399, 0, -7):
            assert engine.read(ReadRequest(1, 1, entry_id, entry_id, 1))[0].entry_id == entry_id
        engine = small.open()
    assert len(small.batches) == 200


def test_the_log_is_recovered_from_the_volume_of_the_mark_on(small: LmdbStore) -> None:
    engine = small.open()
    commit_rounds(engine, 1, 100)
    engine.commit(meta_batch(101))
    checkpoint_at(engine, 101, {b"a": b"1"})
    for position in range(102, 200):
        engine.commit(batch_of(position, [(50, position - 102, 1)], 3000))
    small.open()
    assert small.meta == {b"a": b"1"}
    assert len(small.batches) == 98
    assert small.batches[0] == batch_of(102, [(50, 0, 1)], 3000).value()
    assert small.next_position == 200


def test_a_copy_at_any_moment_is_a_store_up_to_there(small: LmdbStore, tmp_path: Path) -> None:
    """A copy has the state of a crash: the files at that moment, without the content of memory."""
    engine = small.open()
    for rounds in range(1, 90):
        commit_rounds(engine, rounds, 1)
        if rounds % 8 == 0:
            copy = LmdbStore(tmp_path / "copy", 150_000, 25)
            shutil.copytree(small.path, copy.path)
            check_rounds(copy.open(), rounds)
            assert copy.next_position == rounds + 1
            assert copy.engine is not None
            commit_rounds(copy.engine, rounds + 1, 30)
            check_rounds(copy.open(), rounds + 30)
            copy.close()
            shutil.rmtree(copy.path)


CHILD = """
import sys
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.environment import failure
from tests.unit.storage.lmdb.test_engine import commit_rounds
engine = LmdbEngine(sys.argv[1], volume_size=150_000, index_flush_entries=25)
position = engine.recover().next_position
while True:
    commit_rounds(engine, position, 1)
    print(position, flush=True)
    position += 1
"""


def start_child(store: LmdbStore) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(store.path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ
    )


@pytest.mark.parametrize("rounds", short([[3, 40], [3, 40, 25, 77]], 1), ids=len)
def test_whatever_was_committed_survives_a_kill(small: LmdbStore, rounds: list[int]) -> None:
    committed = 0
    for wanted in rounds:
        with start_child(small) as child:
            assert child.stdout is not None
            for _ in range(wanted):
                committed = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            committed = max([committed, *map(int, child.stdout.read().splitlines())])
        engine = small.open()
        # One more batch may have been durable when the child was killed before reporting it.
        assert small.next_position - 1 in (committed, committed + 1)
        check_rounds(engine, small.next_position - 1)
        assert len(small.batches) == small.next_position - 1
        small.close()


def test_a_second_opener_is_told_who_holds_the_directory(small: LmdbStore) -> None:
    with start_child(small) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(DirectoryHeld, match=f"in use by process {child.pid}") as caught:
            small.open()
        assert caught.value.pid == child.pid
        child.kill()
        child.wait()
        small.engine = None
        small.open()
    with pytest.raises(DirectoryHeld, match=str(os.getpid())):
        LmdbEngine(small.path).recover()


def test_who_only_looks_at_the_lock_does_not_keep_a_box_from_starting(small: LmdbStore) -> None:
    small.open()
    small.close()
    looking = os.open(small.path / "LOCK", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    gone = threading.Timer(0.2, os.close, (looking,))
    gone.start()
    small.open()
    gone.join()
    small.close()


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "LOCK"}


def test_an_unknown_format_refuses_to_start(small: LmdbStore) -> None:
    small.open()
    small.close()
    path = small.path / "INSTANCE"
    fields = json.loads(path.read_text())
    assert fields["format"] == 3
    assert fields["created"] > 1_600_000_000_000
    for number in (0, 1, 4, "x", "2", True, 3.0, None):
        path.write_text(json.dumps({**fields, "format": number}))
        before = _files(small.path)
        with pytest.raises(
            PersistenceError, match=f"has format {number!r}, but this version of pulsarbox reads format 3: open it with"
        ):
            LmdbEngine(small.path).recover()
        assert _files(small.path) == before
    path.write_text("{")
    with pytest.raises(PersistenceError, match="INSTANCE is damaged"):
        LmdbEngine(small.path).recover()
    path.unlink()
    with pytest.raises(PersistenceError, match="INSTANCE file is missing"):
        LmdbEngine(small.path).recover()


def test_a_missing_table_refuses_to_start(small: LmdbStore) -> None:
    small.open()
    small.close()
    with lmdb.open(str(small.path / "meta"), max_dbs=16) as env, env.begin(write=True) as txn:
        txn.drop(env.open_db(b"needs", txn=txn))
    with pytest.raises(PersistenceError, match="meta is damaged: its table needs is missing; restore a backup"):
        LmdbEngine(small.path).recover()


def test_the_instance_stays(small: LmdbStore) -> None:
    instance = small.open().instance
    assert small.open().instance == instance


@pytest.mark.parametrize("size", [0, 100, 5000, 8192, 50_000])
def test_a_truncated_volume_is_refused(small: LmdbStore, size: int) -> None:
    commit_rounds(small.open(), 1, 20)
    small.close()
    data = small.path / "volumes" / "00000001" / "data.mdb"
    assert data.stat().st_size > 60_000
    os.truncate(data, size)
    with pytest.raises(PersistenceError, match=r"data\.mdb is damaged or truncated"):
        small.make().recover()


def test_a_truncated_older_volume_fails_its_reads_only(small: LmdbStore) -> None:
    engine = small.open()
    commit_rounds(engine, 1, 100)
    engine.commit(meta_batch(101))
    checkpoint_at(engine, 101)
    reclaim_all(engine)
    small.close()
    os.truncate(small.path / "volumes" / "00000001" / "data.mdb", 50_000)
    engine = small.open()
    with pytest.raises(EntryDamaged, match="damaged or truncated") as caught:
        ids(engine, 1, 5, 5)
    assert caught.value.first == 5
    behind = caught.value.last + 1
    assert 10 < behind < 100
    assert engine.read(ReadRequest(1, 1, behind, behind, 1))[0].entry_id == behind
    assert engine.read(ReadRequest(1, 1, 199, 199, 1))[0].entry_id == 199


def test_a_short_file_that_lacks_nothing_is_accepted(tmp_path: Path) -> None:
    """LMDB need not write pages that a transaction allocated and freed: the child process reports the file as
    intact."""
    path = tmp_path / "env"
    with lmdb.open(str(path), max_dbs=4) as env:
        table = env.open_db(b"log")
        with env.begin(write=True, db=table) as txn:
            txn.put(b"a", b"1" * 100_000)
    whole = (path / "data.mdb").read_bytes()
    verify_environment(path)
    # Claim one page more than exists: the page is unreachable.
    for page in (0, 4096):
        at = page + 16 + 120
        last = int.from_bytes(whole[at : at + 8], sys.byteorder)
        whole = whole[:at] + (last + 1).to_bytes(8, sys.byteorder) + whole[at + 8 :]
    (path / "data.mdb").write_bytes(whole)
    verify_environment(path)
    (path / "data.mdb").write_bytes(whole[:60_000])
    with pytest.raises(PersistenceError, match="signal 7"):
        verify_environment(path)


def test_a_missing_volume_is_noticed(small: LmdbStore) -> None:
    engine = small.open()
    commit_rounds(engine, 1, 60)
    engine.commit(meta_batch(61))
    checkpoint_at(engine, 61)
    small.close()
    shutil.move(small.path / "volumes" / small.volumes()[-1], small.path / "elsewhere")
    with pytest.raises(PersistenceError, match=r"the log ends at batch \d+, but its checkpoint covers 61"):
        small.make().recover()


def test_a_damaged_batch_is_named(small: LmdbStore) -> None:
    commit_rounds(small.open(), 1, 3)
    small.close()
    with lmdb.open(str(small.path / "volumes" / "00000001"), max_dbs=4) as env:
        table = env.open_db(b"log")
        with env.begin(write=True, db=table) as txn:
            value = txn.get(LOG_KEY.pack(2))
            assert value is not None
            txn.put(LOG_KEY.pack(2), value[:40] + b"?" + value[41:])  # within the header of its first entry
    with pytest.raises(PersistenceError, match="batch 2: batch is damaged"):
        small.make().recover()


def test_a_full_map_changes_nothing(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "data", map_size=4 << 20)
    engine = store.open()
    engine.commit(batch_of(1, [(1, 0, 2)]))
    with pytest.raises(PersistenceError, match=r"batch 2 of \d+ bytes could not be stored: the volume's map is full"):
        engine.commit(batch_of(2, [(1, 2, 10)], 1 << 20))
    with pytest.raises(PersistenceError, match="does not exist"):
        ids(engine, 1, 2, 2)
    engine.commit(batch_of(2, [(1, 2, 2)]))
    for _ in range(2):
        assert ids(engine, 1, 0, 9) == [0, 1, 2, 3]
        engine = store.open()
    store.close()


def test_a_full_disk_changes_nothing_and_heals(small: LmdbStore) -> None:
    """A limit on the file size simulates the full disk: LMDB receives a failed write."""
    engine = small.open()
    commit_rounds(engine, 1, 4)  # 24 entries: the second batch from here also flushes the index
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (small.path / "volumes" / "00000001" / "data.mdb").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        for rounds in (5, 6):
            with pytest.raises(PersistenceError, match=f"batch {rounds} of"):
                commit_rounds(engine, rounds, 1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            check_rounds(engine, rounds - 1)
            commit_rounds(engine, rounds, 1)
            size = (small.path / "volumes" / "00000001" / "data.mdb").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    for _ in range(2):
        check_rounds(engine, 6)
        engine = small.open()


def test_a_short_write_says_full_where_the_disk_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """LMDB reports the write that fills a disk as an input/output error."""
    error = lmdb.Error("mdb_txn_commit", errno.EIO)
    error.code = errno.EIO  # type: ignore[misc]  # like the C extension
    assert "the disk is full" not in str(failure("x", error, tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))
    assert str(failure("x", error, tmp_path)) == "x: the disk is full"


def test_after_a_panic_the_volume_is_opened_again(small: LmdbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """LMDB cannot confirm the written meta page: the batch is rejected and discarded."""
    from pulsarbox.storage.lmdb.volume import Volume

    engine = small.open()
    commit_rounds(engine, 1, 3)
    real = Volume.append

    def panic(*arguments: object, **named: object) -> None:
        real(*arguments, **named)  # type: ignore[arg-type]
        raise lmdb.PanicError("mdb_txn_commit")

    with monkeypatch.context() as patch:
        patch.setattr(Volume, "append", panic)
        with pytest.raises(PersistenceError, match="batch 4 of"):
            engine.commit(batch_of(4, [(77, 0, 1)]))
    with pytest.raises(PersistenceError, match="does not exist"):
        ids(engine, 77, 0, 0)
    commit_rounds(engine, 4, 3)
    for _ in range(2):
        check_rounds(engine, 6)
        engine = small.open()


def test_a_checkpoint_that_fails_changes_nothing(small: LmdbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment

    engine = small.open()
    commit_rounds(engine, 1, 3)
    checkpoint_at(engine, 1, {b"a": b"1"})
    for error in (lmdb.DiskError("mdb_txn_commit", 28), lmdb.PanicError("mdb_txn_commit")):

        def fail(_: object, checkpoint: Checkpoint, error: lmdb.Error = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(MetaEnvironment, "checkpoint", fail)
            with pytest.raises(PersistenceError, match="the checkpoint at 2 could not be stored"):
                checkpoint_at(engine, 2, {b"a": b"2"}, (1,))
        assert small.rows.get(b"a") == b"1"
    checkpoint_at(engine, 3, {b"a": b"3"})
    assert list(small.rows.items(b"")) == [(b"a", b"3")]
    check_rounds(engine, 3)
    small.open()
    assert (small.meta, small.batches) == ({b"a": b"3"}, [])


def test_what_a_crash_left_half_made_is_removed(small: LmdbStore) -> None:
    commit_rounds(small.open(), 1, 3)
    small.close()
    (small.path / "volumes" / "00000002.new").mkdir()
    (small.path / "INSTANCE.new").write_text("{")
    check_rounds(small.open(), 3)
    assert small.volumes() == ["00000001"]
    assert not (small.path / "INSTANCE.new").exists()


def test_reading_beside_committing(small: LmdbStore) -> None:
    """The reader sees every batch whose commit has returned, during index flushes and volume rollover."""
    engine = small.open()
    done = 0
    failures: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        number = 0
        try:
            while not stop.is_set():
                rounds = done
                number = (number * 7 + 11) % (2 * rounds) if rounds else 0
                for first in (number, max(2 * rounds - 2, 0)) if rounds else ():
                    entries = engine.read(ReadRequest(1, 1, first, 2 * rounds - 1, ALL))
                    assert [entry.entry_id for entry in entries] == list(range(first, 2 * rounds))
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for rounds in range(1, 400):
            commit_rounds(engine, rounds, 1)
            done = rounds
    finally:
        stop.set()
        reader.join()
    assert not failures
    assert len(small.volumes()) > 5
