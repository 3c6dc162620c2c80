"""Full disks and maps, and damaged or missing volumes that LMDB does not detect: no data loss, no blocking."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable

import lmdb
import pytest

from pulsarbox.errors import EntryDamaged, PersistenceError, StoreFull
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.format import LOG_KEY
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment
from pulsarbox.storage.lmdb.reserved_space import Reserve
from pulsarbox.storage.lmdb.volume import Volume
from tests.unit.storage.disk_store import LEDGERS, SIZE, DiskStore, assert_nothing_is_left_over, sealed_store
from tests.unit.storage.engine_conformance import checkpoint_at, ids, meta_batch, read_all, reclaim_all


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


def test_a_disk_that_is_full_with_the_reserve_given_up_is_not_told_as_full_to_acknowledgements(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the core retries acknowledgements at once, because the reserve can store them."""
    tries = 0

    def append(*_: object) -> None:
        nonlocal tries
        tries += 1
        raise lmdb.DiskError("mdb_txn_commit", errno.ENOSPC)

    monkeypatch.setattr(Reserve, "release", lambda _: True)
    with monkeypatch.context() as patch:
        patch.setattr(Volume, "append", append)
        with pytest.raises(PersistenceError, match="batch 1 of") as caught:
            store.now.commit(meta_batch(1))
    assert tries == 2
    assert not isinstance(caught.value, StoreFull)
    store.now.commit(meta_batch(1))


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
    with pytest.raises(
        PersistenceError, match=r"a volume is missing: .* restore a backup with `pulsarbox restore BACKUPS DIR`"
    ):
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
        with pytest.raises(PersistenceError, match="disk space cannot be reclaimed"):
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
    """LMDB cannot confirm that its write is durable: the step is not repeated, and no data is lost."""
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
