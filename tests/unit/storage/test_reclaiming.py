"""Giving disk back: how much, beside readers, and after a crash at any of its steps."""

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from pulsarbox.errors import EntryDamaged, PersistenceError, StoreFull
from pulsarbox.storage.engine import ReadRequest, Reclaimed
from pulsarbox.storage.format import ENTRY_HEADER, LOG_KEY, PACKED
from pulsarbox.storage.lmdb_engine import STEPS, LmdbEngine
from pulsarbox.storage.meta import MetaEnvironment
from pulsarbox.storage.volume import Volume
from tests.unit.storage.batches import batch_of, body_of
from tests.unit.storage.engine_conformance import Store, checkpoint_at, ids, meta_batch, read_all, reclaim_all

SIZE = 400
LEDGERS = tuple(range(10))
VOLUME_SIZE = 150_000


class Crash(BaseException):
    """The machine stops here."""


class DiskStore(Store):
    """A data directory, what was done to it, and what should be in it."""

    def __init__(self, path: Path, volume_size: int = VOLUME_SIZE) -> None:
        super().__init__()
        self.path = path
        self.volume_size = volume_size
        self.steps: list[str] = []
        self.on_step: Callable[[str], None] = lambda _: None
        self.ends: dict[int, int] = {}
        self.dropped: set[int] = set()

    def make(self) -> LmdbEngine:
        return LmdbEngine(
            self.path, volume_size=self.volume_size, index_flush_entries=25, open_volumes_max=2, step=self._step
        )

    def open(self) -> LmdbEngine:
        engine = self.reopen()
        assert isinstance(engine, LmdbEngine)
        return engine

    @property
    def now(self) -> LmdbEngine:
        assert isinstance(self.engine, LmdbEngine)
        return self.engine

    def commit(self, rounds: int, ledgers: tuple[int, ...] = LEDGERS, size: int = SIZE) -> None:
        """Two entries in each ledger a round."""
        for _ in range(rounds):
            runs = [(ledger_id, self.ends.get(ledger_id, 0), 2) for ledger_id in ledgers]
            self.now.commit(batch_of(self.next_position, runs, size))
            self.next_position += 1
            for ledger_id, first, _ in runs:
                self.ends[ledger_id] = first + 2

    def drop(self, *ledgers: int) -> None:
        """They are no more, and a checkpoint says so."""
        self.dropped.update(ledgers)
        checkpoint_at(self.now, self.next_position - 1, {b"a": b"%d" % self.next_position}, ledgers)

    def check(self, size: int = SIZE) -> None:
        """All that is alive can be read."""
        for ledger_id, end in self.ends.items():
            if ledger_id not in self.dropped:
                read_all(self.now, ledger_id, 0, end, size)

    def disk(self) -> int:
        """The bytes that the data directory takes."""
        return sum(path.stat().st_blocks * 512 for path in self.path.rglob("*"))

    def live(self, size: int = SIZE) -> int:
        """The bytes of the records that are alive."""
        entries = sum(end for ledger_id, end in self.ends.items() if ledger_id not in self.dropped)
        return entries * (ENTRY_HEADER.size + len(body_of(0, 0, size)))

    def names(self) -> list[str]:
        """The volumes there are."""
        paths = [*(self.path / "volumes").iterdir(), *(self.path / "packed").iterdir()]
        return sorted(f"{path.parent.name}/{path.name}" for path in paths)

    def _step(self, name: str) -> None:
        self.steps.append(name)
        self.on_step(name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DiskStore]:
    store = DiskStore(tmp_path / "data")
    store.open()
    yield store
    store.on_step = lambda _: None
    store.close()


def history(store: DiskStore) -> Iterator[None]:
    """A life in which every step is taken."""
    store.commit(40)
    yield
    store.drop(0, 1, 2, 3, 4)
    yield
    reclaim_all(store.now)
    yield
    store.commit(30)
    yield
    store.drop(5, 6, 7)
    yield
    reclaim_all(store.now)
    yield
    store.commit(30, (8, 9, 20))
    yield
    store.drop(8, 9)
    yield
    reclaim_all(store.now)
    yield
    store.commit(70, (*range(60, 69), 20))
    store.commit(12, (20,))
    yield
    store.drop(*range(60, 69), 20)
    yield
    reclaim_all(store.now)


CRASHES = [(step, nth) for step in STEPS if step != "tables migrated" for nth in (1, 2, 5)]
RARE = {("checkpoint written", 5), ("packed copied", 5), ("packed renamed", 5), ("remapped", 5), ("forgotten", 2)}
RARE |= {("forgotten", 5)}


@pytest.mark.parametrize(("step", "nth"), [crash for crash in CRASHES if crash not in RARE])
def test_after_a_crash_at_any_step_all_is_there_and_reclaiming_goes_on(store: DiskStore, step: str, nth: int) -> None:
    crashed = False

    def crash(name: str) -> None:
        nonlocal crashed
        if not crashed and name == step and store.steps.count(step) == nth:
            crashed = True
            raise Crash

    store.on_step = crash
    with contextlib.suppress(Crash):
        for _ in history(store):
            pass
    assert crashed, f"{step} was not reached {nth} times"
    for _ in range(2):
        store.open()
        store.check()
    # What the core does after a restart: it drops what the checkpoint may not have taken over, and goes on.
    store.drop(*store.dropped)
    reclaim_all(store.now)
    store.commit(40, (9, 30) if 9 not in store.dropped else (30, 31))
    store.check()
    store.drop(*store.dropped)
    reclaim_all(store.now)
    assert_nothing_is_left_over(store)
    store.check()
    store.open()
    store.check()
    assert store.meta == {b"a": b"%d" % store.next_position}
    assert store.batches == []


def assert_nothing_is_left_over(store: DiskStore) -> None:
    """Every directory is one that the tables speak of, or takes batches; nothing dead is in the tables."""
    volumes = store.now._volumes
    with volumes.metas.using(0) as meta:
        contents = meta.contents()
        for ledger_id in store.dropped:
            assert meta.stretches_of([ledger_id], frozenset(contents)) == []
        entries = sum(content.entries for content in contents.values())
        ledgers = sorted(set(store.ends) - store.dropped)
        stretches = meta.stretches_of(ledgers, frozenset(contents))
        assert sum(one.entries for one in stretches) == entries
        assert sum(one.bytes for one in stretches) == sum(content.bytes for content in contents.values())
        assert all(one.bytes == one.entries * (ENTRY_HEADER.size + len(body_of(0, 0, SIZE))) for one in stretches)
    assert store.names() == sorted(map(volumes.directory.name, {*contents, *volumes.live}))


def test_the_disk_is_given_back(store: DiskStore) -> None:
    store.commit(300)
    full = store.disk()
    assert full > 3_000_000
    store.drop(*LEDGERS)
    done = reclaim_all(store.now)
    assert "removed" in done
    assert store.disk() < 2 * VOLUME_SIZE + 300_000
    # The newest volume holds nothing but what is dead: the next batch begins another.
    store.commit(1, (50,))
    reclaim_all(store.now)
    checkpoint_at(store.now, store.next_position - 1)
    reclaim_all(store.now)
    assert store.disk() < 300_000
    store.check()
    next_position = store.next_position
    store.open()
    assert store.next_position == next_position
    store.check()


def test_a_slow_ledger_among_a_thousand_that_are_gone(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "data", 1 << 20)
    store.open()
    for turn in range(20):
        store.commit(1, tuple(range(1000 * turn, 1000 * turn + 200)), 100)
        store.commit(1, (99_999,), 100)
        store.commit(2, tuple(range(1000 * turn, 1000 * turn + 200)), 100)
    full = store.disk()
    store.drop(*[ledger_id for ledger_id in store.ends if ledger_id != 99_999])
    reclaim_all(store.now)
    store.commit(1, (99_999,), 100)
    checkpoint_at(store.now, store.next_position - 1)
    reclaim_all(store.now)
    assert store.disk() < 3 * store.live(100) + 400_000
    assert store.disk() < full / 4
    store.check(100)
    store.open()
    store.check(100)
    store.close()


def test_what_is_mostly_alive_stays_where_it_is(store: DiskStore) -> None:
    store.commit(60)
    store.drop(0, 1)
    assert set(reclaim_all(store.now)) == {"sealed"}
    names = store.names()
    store.open()
    assert reclaim_all(store.now) == []
    assert store.names() == names


def test_pages_that_are_not_full_are_no_reason_to_pack(store: DiskStore) -> None:
    """One entry of 2.1 kB a batch takes two pages: less than half of the file is alive, and none of it is dead."""
    store.commit(120, (1,), 1_000)
    store.commit(1, LEDGERS)
    checkpoint_at(store.now, store.next_position - 1)
    assert set(reclaim_all(store.now)) == {"sealed"}


def test_packed_volumes_are_packed_again_and_stretches_are_joined(store: DiskStore) -> None:
    store.commit(150)
    store.drop(0, 1, 2, 3, 4, 5, 6, 7)
    reclaim_all(store.now)
    packed = [name for name in store.names() if name.startswith("packed")]
    assert packed
    store.drop(8)
    store.commit(20, (9,))
    store.drop()
    reclaim_all(store.now)
    store.commit(40, (9,))
    store.drop()
    reclaim_all(store.now)
    assert not set(packed) <= set(store.names())
    with store.now._volumes.metas.using(0) as meta:
        stretches = meta.stretches_of([9], frozenset(meta.contents()))
    assert len(stretches) <= 4
    store.check()
    assert_nothing_is_left_over(store)
    store.open()
    store.check()


def test_small_volumes_are_merged(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "data", 4 << 20)
    store.open()
    for _ in range(12):
        store.commit(3)
        store.now._volumes.roll_after = store.now._volumes.current
    store.commit(1)
    checkpoint_at(store.now, store.next_position - 1)
    assert reclaim_all(store.now) == ["sealed"] * 12 + ["packed"]
    assert store.names() == ["packed/00000001", "volumes/00000013"]
    store.check()
    store.close()


def test_reading_beside_reclaiming(store: DiskStore) -> None:
    """Reads meet volumes that are being sealed, packed and removed."""
    failures: list[BaseException] = []
    reads = 0
    stop = threading.Event()

    def read() -> None:
        nonlocal reads
        try:
            while not stop.is_set():
                end = store.ends[9]
                first = (reads * 37) % end
                read_all(store.now, 9, first, min(first + 10, end), SIZE)
                reads += 1
        except BaseException as error:
            failures.append(error)

    store.commit(30)
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    packed = 0
    try:
        for turn in range(8):
            ledgers = tuple(range(100 * turn + 100, 100 * turn + 109))
            store.commit(30, (*ledgers, 9))
            store.drop(*ledgers)
            packed += reclaim_all(store.now).count("packed")
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not failures
    assert packed > 3
    assert reads > 100
    store.check()


def test_committing_beside_reclaiming(store: DiskStore) -> None:
    failures: list[BaseException] = []
    stop = threading.Event()
    covered = 0
    waiting: list[int] = []
    done: list[Reclaimed] = []

    def keep_house() -> None:
        try:
            while not stop.is_set() or waiting:
                gone = tuple(waiting)
                checkpoint_at(store.now, covered, {}, gone)
                del waiting[: len(gone)]
                while (reclaimed := store.now.reclaim()) is not None:
                    done.append(reclaimed)
        except BaseException as error:
            failures.append(error)

    store.commit(1)
    covered = store.next_position - 1
    housekeeper = threading.Thread(target=keep_house)
    housekeeper.start()
    try:
        for turn in range(25):
            store.commit(12, (*range(100 * turn + 100, 100 * turn + 109), 9))
            covered = store.next_position - 1
            store.dropped.update(range(100 * turn + 100, 100 * turn + 109))
            waiting.extend(range(100 * turn + 100, 100 * turn + 109))
            store.check()
    finally:
        stop.set()
        housekeeper.join()
    assert not failures
    assert {one.what for one in done} >= {"sealed", "packed"}
    store.check()
    store.open()
    store.check()


def test_a_full_map_begins_the_next_volume(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.commit(2)
    real = Volume.append
    full = [lmdb.MapFullError("mdb_put")]

    def append(*arguments: object, **named: object) -> None:
        if full:
            raise full.pop()
        real(*arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Volume, "append", append)
        store.commit(1)
    assert store.names() == ["volumes/00000001", "volumes/00000002"]
    store.check()
    store.open()
    store.check()


def test_a_full_disk_is_told_to_batches_with_entries(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def append(*_: object) -> None:
        raise lmdb.DiskError("mdb_txn_commit", errno.ENOSPC)

    with monkeypatch.context() as patch:
        patch.setattr(Volume, "append", append)
        with pytest.raises(StoreFull, match="the disk is full"):
            store.commit(1)
        with pytest.raises(PersistenceError) as caught:
            store.now.commit(meta_batch(1))
        assert not isinstance(caught.value, StoreFull)


def sealed_store(store: DiskStore) -> tuple[int, Path]:
    """A few sealed volumes, closed; how many entries of ledger 1 are in the first, and its file."""
    store.commit(60)
    checkpoint_at(store.now, store.next_position - 1)
    reclaim_all(store.now)
    with store.now._volumes.metas.using(0) as meta:
        stretch = meta.stretch_of(1, 0)
    assert stretch is not None
    store.close()
    return stretch.entries, store.path / "volumes" / "00000001" / "data.mdb"


def test_a_sealed_volume_that_is_missing_is_so_many_damaged_entries(store: DiskStore) -> None:
    entries, file = sealed_store(store)
    shutil.rmtree(file.parent)
    store.open()
    with pytest.raises(EntryDamaged) as caught:
        ids(store.now, 1, 3, 3)
    assert (caught.value.ledger_id, caught.value.first, caught.value.last) == (1, 3, entries - 1)
    read_all(store.now, 1, entries, store.ends[1], SIZE)
    store.drop(*LEDGERS)
    assert "removed" in reclaim_all(store.now)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO])
def test_what_passes_is_no_damage(store: DiskStore, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    sealed_store(store)
    store.open()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, "not now")

    with monkeypatch.context() as patch:
        patch.setattr(Volume, "__init__", refuse)
        with pytest.raises(PersistenceError) as caught:
            ids(store.now, 1, 3, 3)
        assert not isinstance(caught.value, EntryDamaged)
    store.check()


def test_a_batch_that_is_missing_is_damaged_entries(store: DiskStore) -> None:
    _, file = sealed_store(store)
    with lmdb.open(str(file.parent), max_dbs=4) as env, env.begin(write=True, db=env.open_db(b"log")) as txn:
        assert txn.delete(LOG_KEY.pack(3))
    store.open()
    with pytest.raises(EntryDamaged, match="batch 3 is missing") as caught:
        ids(store.now, 1, 4, 9)
    assert (caught.value.first, caught.value.last) == (4, 5)
    assert [entry.entry_id for entry in store.now.read(ReadRequest(1, 1, 2, 9, 1 << 30))] == [2, 3]
    read_all(store.now, 1, 6, store.ends[1], SIZE)


def test_a_damaged_volume_is_not_packed_and_holds_up_nothing(store: DiskStore) -> None:
    _, file = sealed_store(store)
    with lmdb.open(str(file.parent), max_dbs=4) as env, env.begin(write=True, db=env.open_db(b"log")) as txn:
        value = txn.get(LOG_KEY.pack(3))
        assert value is not None
        txn.put(LOG_KEY.pack(3), value[:40] + b"?" + value[41:])
    store.open()
    store.drop(0, 2, 3, 4, 5, 6, 7, 8)
    with pytest.raises(PersistenceError, match="damaged"):
        store.now.reclaim()
    assert "packed" in reclaim_all(store.now)
    assert "volumes/00000001" in store.names()
    assert not list((store.path / "packed").glob("*.new"))
    read_all(store.now, 9, 30, store.ends[9], SIZE)


def test_without_the_meta_environment_nothing_packed_is_thrown_away(store: DiskStore) -> None:
    store.commit(60)
    store.drop(*LEDGERS[:8])
    assert "packed" in reclaim_all(store.now)
    store.close()
    names = store.names()
    (store.path / "meta").rename(store.path / "elsewhere")
    with pytest.raises(PersistenceError, match="meta is missing"):
        store.make().recover()
    (store.path / "elsewhere").rename(store.path / "meta")
    assert store.names() == names
    store.open()
    store.check()


def test_a_missing_volume_of_the_log_is_noticed(store: DiskStore) -> None:
    store.commit(60)
    store.drop()
    reclaim_all(store.now)
    store.close()
    newest = max((store.path / "volumes").iterdir())
    newest.rename(store.path / "elsewhere")
    with pytest.raises(PersistenceError, match="a volume is missing"):
        store.make().recover()


def test_a_full_disk_does_not_keep_dead_volumes_from_being_removed(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Volume) -> None:
        raise lmdb.DiskError("mdb_txn_commit", errno.ENOSPC)

    store.commit(30, (1, 2))
    store.commit(30, (3,))
    store.drop()
    reclaim_all(store.now)
    store.drop(1, 2, 3)
    store.commit(60, (4, 5, 6))
    assert len(store.now._volumes.live) > 1
    with monkeypatch.context() as patch:
        patch.setattr(Volume, "flush_index", full)
        reclaimed = store.now.reclaim()
        assert reclaimed is not None and reclaimed.what == "removed" and reclaimed.bytes_after == 0
        with pytest.raises(PersistenceError, match="disk cannot be given back"):
            store.now.reclaim()
    assert "sealed" in reclaim_all(store.now)
    store.check()


def test_an_older_volume_that_is_damaged_before_it_is_sealed_holds_up_no_reads(store: DiskStore) -> None:
    store.commit(60)
    checkpoint_at(store.now, store.next_position - 1)
    with store.now._volumes.pool.using(1) as volume:
        entries = 2 * volume.last_position
    store.close()
    file = store.path / "volumes" / "00000001" / "data.mdb"
    os.truncate(file, 50_000)
    store.open()
    with pytest.raises(EntryDamaged):
        ids(store.now, 1, 0, 0)
    read_all(store.now, 1, entries, store.ends[1], SIZE)
    with pytest.raises(PersistenceError, match="damaged or truncated"):
        store.now.reclaim()
    assert store.now.reclaim() is None
    store.commit(5)
    read_all(store.now, 1, entries, store.ends[1], SIZE)


def test_a_panic_while_sealing_or_remapping(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """LMDB could not know that what it wrote is durable: the step is not done twice, and nothing is lost."""
    store.commit(60)
    store.drop(*LEDGERS[:8])
    for name in ("seal", "remap"):
        real = getattr(MetaEnvironment, name)

        def panic(*arguments: object, real: Callable[..., None] = real) -> None:
            real(*arguments)
            raise lmdb.PanicError("mdb_txn_commit")

        with monkeypatch.context() as patch:
            patch.setattr(MetaEnvironment, name, panic)
            for _ in range(20):
                with contextlib.suppress(PersistenceError):
                    store.now.reclaim()
        store.check()
    reclaim_all(store.now)
    assert_nothing_is_left_over(store)
    store.open()
    store.check()


def test_packed_volumes_have_numbers_of_their_own(store: DiskStore) -> None:
    store.commit(60)
    store.drop(*LEDGERS[:8])
    reclaim_all(store.now)
    with store.now._volumes.metas.using(0) as meta:
        packed = [number for number in meta.contents() if number >= PACKED]
    assert packed
    shutil.copytree(store.path / "packed" / "00000001", store.path / "packed" / "00000077")
    store.open()
    assert "packed/00000077" not in store.names()
    store.check()


def test_other_processes_may_read_what_is_sealed(store: DiskStore) -> None:
    """A sealed volume is opened without its lock: its directory is not written to."""
    _, file = sealed_store(store)
    lock = file.with_name("lock.mdb")
    lock.unlink()
    store.open()
    store.check()
    assert not lock.exists()


def test_packing_is_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsarbox.storage import reclaiming

    monkeypatch.setattr(reclaiming, "_SLICE", 20_000)
    store = DiskStore(tmp_path / "data")
    store.make = lambda: LmdbEngine(  # type: ignore[method-assign]
        store.path, volume_size=VOLUME_SIZE, pack_bytes_per_second=100_000_000
    )
    store.open()
    waits: list[float] = []
    reclaimer = store.now._reclaimer
    monkeypatch.setattr(reclaimer._closing, "wait", waits.append)
    store.commit(60)
    store.drop(*LEDGERS[:8])
    assert "packed" in reclaim_all(store.now)
    assert len(waits) > 2
    store.check()
    store.close()
