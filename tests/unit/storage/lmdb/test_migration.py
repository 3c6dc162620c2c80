"""A data directory of version 1 opens, and everything in it is there."""

import json
import os
import shutil
import tarfile
from pathlib import Path

import lmdb
import pytest

from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import ENTRY_HEADER
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.meta_environment import VolumeContent
from pulsarbox.storage.record import Entry, unpack_batch
from tests.unit.storage.batches import body_of
from tests.unit.storage.engine_conformance import checkpoint_at, ids, read_all, reclaim_all

# Made by version 1: 120 batches with two entries of ledger 10 and one of ledger 11 each, batch 30 with seven of ledger
# 12 as well; the checkpoint covers 80 of them.
ARCHIVE = Path(__file__).parents[3] / "data" / "format-1.tar.gz"
TOPICS = (
    "persistent://public/default/x",
    "persistent://public/default/gr\u00fc\u00dfe",
    "persistent://public/default/" + "long" * 150,
)
ENTRY = ENTRY_HEADER.size + len(body_of(10, 0, 200))


class Crash(BaseException):
    """The machine stops here."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "format-1"


def check(engine: LmdbEngine) -> None:
    read_all(engine, 10, 0, 240, 200)
    read_all(engine, 11, 0, 120, 200)
    read_all(engine, 12, 0, 7, 200)


def tables(engine: LmdbEngine) -> tuple[dict[int, VolumeContent], list[VolumeRun]]:
    with engine._volumes.metas.using(0) as meta:
        contents = meta.contents()
        return contents, meta.stretches_of([10, 11, 12], frozenset(contents))


def test_it_opens_and_reads_back(path: Path) -> None:
    instance = json.loads((path / "INSTANCE").read_text())
    assert instance["format"] == 1
    for _ in range(2):
        engine = LmdbEngine(path, volume_size=64 << 10, index_flush_entries=25)
        recovery = engine.recover()
        assert recovery.next_position == 121
        assert len(list(recovery.batches)) == 40
        check(engine)
        rows = dict(recovery.rows.items(b""))
        assert len(rows) == 17
        assert {key: value for key, value in rows.items() if key.startswith(b"owner/")} == {
            b"owner/%016x" % number: json.dumps(name).encode()
            for number, name in (
                *enumerate(TOPICS, 1),
                *enumerate(TOPICS, 10),
                (13, TOPICS[0]),
            )
        }
        assert json.loads(rows[b"topic/" + TOPICS[2].encode()])["id"] == 3
        engine.close()
        assert json.loads((path / "INSTANCE").read_text()) == {**instance, "format": 2}


def test_the_tables_say_what_is_there(path: Path) -> None:
    engine = LmdbEngine(path, volume_size=64 << 10)
    engine.recover()
    contents, stretches = tables(engine)
    assert sorted(contents) == list(range(1, 24))
    assert contents[1].first_position == 1
    for number in range(2, 24):
        assert contents[number].first_position == contents[number - 1].last_position + 1
    for number, content in contents.items():
        own = [one for one in stretches if one.volume == number]
        assert content.entries == sum(one.entries for one in own)
        assert content.bytes == sum(one.bytes for one in own) == content.entries * ENTRY
        assert content.size > content.bytes
    assert sum(one.entries for one in stretches if one.ledger_id == 12) == 7
    engine.close()


def test_what_was_migrated_is_reclaimed(path: Path) -> None:
    engine = LmdbEngine(path, volume_size=64 << 10)
    engine.recover()
    checkpoint_at(engine, 120, {}, (10,))
    assert set(reclaim_all(engine)) == {"packed"}
    read_all(engine, 11, 0, 120, 200)
    read_all(engine, 12, 0, 7, 200)
    checkpoint_at(engine, 120, {}, (11, 12))
    assert set(reclaim_all(engine)) == {"removed"}
    assert list((path / "packed").iterdir()) == []
    engine.close()


def test_a_crash_in_between_migrates_again(path: Path) -> None:
    def crash(step: str) -> None:
        assert step == "tables migrated"
        raise Crash

    for _ in range(2):
        with pytest.raises(Crash):
            LmdbEngine(path, step=crash).recover()
        assert json.loads((path / "INSTANCE").read_text())["format"] == 1
    engine = LmdbEngine(path, volume_size=64 << 10)
    assert engine.recover().next_position == 121
    check(engine)
    assert sum(content.entries for content in tables(engine)[0].values()) > 300
    engine.close()


def test_a_damaged_volume_is_damaged_afterwards(path: Path) -> None:
    os.truncate(path / "volumes" / "00000002" / "data.mdb", 20_000)
    engine = LmdbEngine(path, volume_size=64 << 10)
    engine.recover()
    _, stretches = tables(engine)
    (lost,) = [one for one in stretches if one.volume == 2 and one.ledger_id == 10]
    read_all(engine, 10, 0, lost.first, 200)
    with pytest.raises(EntryDamaged) as caught:
        ids(engine, 10, lost.first, 99)
    assert (caught.value.first, caught.value.last) == (lost.first, lost.end - 1)
    read_all(engine, 10, lost.end, 240, 200)
    engine.close()


@pytest.mark.parametrize("gone", ["meta", "volumes"])
def test_a_directory_that_was_only_begun(path: Path, gone: str) -> None:
    for name in ("volumes",) if gone == "volumes" else ("volumes", "meta"):
        shutil.rmtree(path / name)
    if gone == "volumes":
        with lmdb.open(str(path / "meta"), max_dbs=16) as env, env.begin(write=True) as txn:
            for table in (b"rows", b"mark", b"volumes"):
                txn.drop(env.open_db(table, txn=txn), delete=False)
    engine = LmdbEngine(path)
    recovery = engine.recover()
    assert (recovery.next_position, list(recovery.rows.items(b""))) == (1, [])
    engine.close()


def test_a_directory_of_a_daemon(tmp_path: Path) -> None:
    """Two topics with a subscription each, 30 messages before a clean stop, ten more before it was killed."""
    with tarfile.open(ARCHIVE.with_name("format-1-daemon.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    engine = LmdbEngine(tmp_path / "format-1-daemon")
    recovery = engine.recover()
    batches = [record for value in recovery.batches for _, record in unpack_batch(value)]
    assert recovery.next_position == 90
    rows = dict(recovery.rows.items(b""))
    owners = {key: json.loads(value) for key, value in rows.items() if key.startswith(b"owner/")}
    names = ("persistent://public/default/orders", "persistent://public/default/gr\u00fc\u00dfe")
    assert owners == {b"owner/%016x" % number: names[number > 3] for number in (1, 2, 3, 4, 5, 6)}
    for ledger_id, topic in ((2, "orders"), (5, "gr\u00fc\u00dfe")):
        entries = engine.read(ReadRequest(1, ledger_id, 0, 99, 1 << 20))
        assert [entry.entry_id for entry in entries] == list(range(40))
        assert all(f"{topic} {entry.entry_id}".encode() * 3 in entry.body for entry in entries)
        assert entries[30:] == [one for one in batches if isinstance(one, Entry) and one.ledger_id == ledger_id]
    engine.close()
