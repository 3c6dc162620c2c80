"""``pulsarbox.storage.lmdb.volume`` alone; the engine tests cover the rest."""

from pathlib import Path

import lmdb

from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.environment import create_environment
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment
from pulsarbox.storage.lmdb.volume import NOTHING_TO_INDEX_BYTES, FlushAt, Volume
from pulsarbox.storage.record import Meta, pack_meta
from tests.unit.storage.batches import batch_of

NEVER = FlushAt(1 << 30, 1 << 40)


def rows(position: int, size: int = 100_000) -> Batch:
    batch = Batch(position)
    batch.add(pack_meta(Meta(b"row/%d" % position, b"x" * size)))
    return batch


def append(volume: Volume, batch: Batch) -> None:
    volume.append(batch.position, batch.value(), batch.runs)


def test_a_log_without_entries_is_not_read_again(tmp_path: Path) -> None:
    create_environment(tmp_path / "00000001", Volume.TABLES)
    volume = Volume(tmp_path / "00000001", 1 << 28, NEVER)
    count = 3 * NOTHING_TO_INDEX_BYTES // 100_000
    for position in range(1, count + 1):
        append(volume, rows(position))
    covered = volume.indexed
    assert covered >= count - NOTHING_TO_INDEX_BYTES // 100_000 - 1
    append(volume, batch_of(count + 1, [(7, 0, 3)]))
    append(volume, rows(count + 2, 2 * NOTHING_TO_INDEX_BYTES))
    append(volume, rows(count + 3))
    assert volume.indexed == covered, "entries are in memory that no row of the index tells of"
    volume.close()
    again = Volume(tmp_path / "00000001", 1 << 28, NEVER)
    assert again.indexed == covered
    again.close()


def test_an_environment_is_made_with_all_its_tables_at_once(tmp_path: Path) -> None:
    """Each transaction requires a sync, which delays the start."""
    create_environment(tmp_path / "new", (b"one", b"two", b"three"))
    with lmdb.open(str(tmp_path / "new"), max_dbs=3, create=False, readonly=True) as environment:
        environment.open_db(b"three", create=False)  # raises an error if missing
        assert environment.info()["last_txnid"] == 1
    meta = MetaEnvironment(tmp_path / "meta")
    assert meta.environment.info()["last_txnid"] == 1
    meta.close()
