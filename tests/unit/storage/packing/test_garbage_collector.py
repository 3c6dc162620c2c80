"""Reclaiming disk space: how much, with concurrent readers, and after a crash at any step."""

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.storage.engine import Reclaimed
from pulsarbox.storage.format import PACKED
from pulsarbox.storage.lmdb.engine import STEPS, LmdbEngine
from tests.tools.campaigns import chosen
from tests.unit.storage.disk_store import (
    LEDGERS,
    SIZE,
    VOLUME_SIZE,
    DiskStore,
    assert_nothing_is_left_over,
    sealed_store,
)
from tests.unit.storage.engine_conformance import checkpoint_at, read_all, reclaim_all


class Crash(BaseException):
    """Simulated crash of the machine."""


def history(store: DiskStore) -> Iterator[None]:
    """A history that exercises every step."""
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


CRASHES = [(step, nth) for step in STEPS for nth in (1, 2, 5)]
RARE = {("checkpoint written", 5), ("packed copied", 5), ("packed renamed", 5), ("remapped", 5), ("forgotten", 2)}
RARE |= {("forgotten", 5)}


@pytest.mark.parametrize(
    ("step", "nth"), chosen([crash for crash in CRASHES if crash not in RARE], lambda crash: crash[1] == 1)
)
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
    # Like the core after a restart: drop the ledgers missing from the checkpoint again, and continue.
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


def test_the_disk_is_given_back(store: DiskStore) -> None:
    store.commit(300)
    full = store.disk()
    assert full > 3_000_000
    store.drop(*LEDGERS)
    done = reclaim_all(store.now)
    assert "removed" in done
    assert store.disk() < 2 * VOLUME_SIZE + 300_000
    # The newest volume holds only dead data: the next batch begins another one.
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


def test_a_newest_volume_of_mostly_dead_entries_takes_no_more(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "data", 1 << 20)
    store.open()
    store.commit(60)
    store.drop(0, 1)
    assert reclaim_all(store.now) == []
    store.commit(1)
    assert store.names() == ["volumes/00000001"]
    store.drop(*LEDGERS[2:9])
    assert reclaim_all(store.now) == []
    store.commit(1, (9,))
    assert store.names() == ["volumes/00000001", "volumes/00000002"]
    store.drop()
    assert reclaim_all(store.now) == ["sealed", "packed"]
    store.check()
    store.drop(9)
    assert reclaim_all(store.now) == ["removed"]
    assert store.names() == ["volumes/00000002"]
    store.open()
    assert store.batches == []
    store.close()


def test_an_empty_store_after_everything_was_removed_goes_on_counting(tmp_path: Path) -> None:
    """The newest volume is empty and all earlier ones are deleted: only the mark records the log position."""
    store = DiskStore(tmp_path / "data")
    store.open()
    store.commit(14)
    store.drop(*LEDGERS)
    store.now._volumes.roll_after = store.now._volumes.current
    store.now._volumes.begin_next()
    assert "removed" in reclaim_all(store.now)
    next_position = store.next_position
    for _ in range(2):
        store.open()
        assert (store.next_position, store.batches) == (next_position, [])
    store.commit(1, (77,))
    store.open()
    assert store.next_position == next_position + 1
    store.check()
    store.close()


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
    """One entry of 2.1 kB per batch takes two pages: less than half of the file is live, and none of it is dead."""
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
    """Reads overlap with sealing, packing and removal of volumes."""
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
    """A sealed volume is opened without its lock file, so its directory is never written to."""
    _, file = sealed_store(store)
    lock = file.with_name("lock.mdb")
    lock.unlink()
    store.open()
    store.check()
    assert not lock.exists()


READER = """
import sys, lmdb
from pathlib import Path
data = Path(sys.argv[1])
with lmdb.open(str(data / "meta"), max_dbs=16, readonly=True, create=False) as env:
    table = env.open_db(b"mark", create=False)
    with env.begin(db=table) as txn:
        print(int.from_bytes(txn.get(b"position"), "big"), int.from_bytes(txn.get(b"sealed"), "big"))
for path in sorted(data.glob("volumes/*")):
    with lmdb.open(str(path), max_dbs=16, readonly=True, create=False) as env:
        table = env.open_db(b"log", create=False)
        with env.begin(db=table) as txn:
            print(txn.stat(table)["entries"])
"""


def test_another_process_reads_beside_this_one(store: DiskStore) -> None:
    store.commit(60)
    store.drop(1)
    reclaim_all(store.now)
    command = [sys.executable, "-c", READER, str(store.path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert found[0].split() == ["60", str(store.now._volumes.current - 1)]
    assert sum(map(int, found[1:])) == 60
    store.commit(1)
    store.check()


def test_packing_is_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsarbox.storage.packing import volume_packer

    monkeypatch.setattr(volume_packer, "_SLICE", 20_000)
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
