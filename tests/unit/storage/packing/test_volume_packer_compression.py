"""Compression at rest in a data directory: round trip, size, crashes and rejections."""

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.format import ENTRY_HEADER, PACKED, EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.packing import volume_packer
from pulsarbox.storage.record import Entry, pack_entry
from tests.unit.storage.batches import compress_with
from tests.unit.storage.disk_store import LEDGERS, SIZE, DiskStore
from tests.unit.storage.engine_conformance import checkpoint_at, reclaim_all

CODECS = ("zstd", "zlib", "lz4", "snappy")


def sealed(store: DiskStore, rounds: int = 60) -> None:
    """Sealed volumes with only live data."""
    store.commit(rounds)
    checkpoint_at(store.now, store.next_position - 1)


def telemetry(number: int, seed: int = 1) -> list[bytes]:
    """Small documents that are similar, except for their numbers."""
    dice = random.Random(seed)
    return [
        json.dumps(
            {
                "device": f"sensor-{dice.randrange(900):04d}",
                "temperature": round(dice.gauss(20, 5), 2),
                "humidity": round(dice.random() * 100, 1),
                "status": dice.choice(["ok", "low", "fault"]),
                "at": 1_763_000_000_000 + at * 37,
            }
        ).encode()
        for at in range(number)
    ]


class Telemetry:
    """A store with the given bodies, in one or more ledgers."""

    def __init__(self, path: Path, volume_size: int = 1 << 19) -> None:
        self.make: Callable[[], LmdbEngine] = lambda: LmdbEngine(path, volume_size=volume_size, index_flush_entries=500)
        self.path = path
        self.engine = self.make()
        self.next_position = self.engine.recover().next_position
        self.entries: dict[int, list[Entry]] = {}

    def publish(self, ledger_id: int, bodies: list[bytes], flags: int = EntryFlag.OWN_CHECKSUM) -> None:
        stored = self.entries.setdefault(ledger_id, [])
        for start in range(0, len(bodies), 40):
            batch = Batch(self.next_position)
            for body in bodies[start : start + 40]:
                total = stored[-1].total_bytes if stored else 0
                entry = Entry(
                    ledger_id, len(stored), flags, 1, len(stored) + 1, total + len(body), 0, 1, 2, 0, crc32c(body), body
                )
                stored.append(entry)
                batch.add_entry(ledger_id, entry.entry_id, pack_entry(entry), body)
            self.engine.commit(batch)
            self.next_position += 1

    def seal(self) -> None:
        """Seal all data, including that of the newest volume."""
        checkpoint_at(self.engine, self.next_position - 1)
        self.engine._volumes.begin_next()

    def check(self) -> None:
        for ledger_id, entries in self.entries.items():
            at = 0
            while at < len(entries):
                found = self.engine.read(ReadRequest(1, ledger_id, at, len(entries) - 1, 100_000))
                assert found == entries[at : at + len(found)]
                at += len(found)

    def reopen(self) -> None:
        self.engine.close()
        self.engine = self.make()
        self.engine.recover()

    def usage(self) -> dict[tuple[int, bytes, int], tuple[int, int, int]]:
        """Entries and bytes by ledger, tag and dictionary."""
        sums: dict[tuple[int, bytes, int], tuple[int, int, int]] = {}
        with self.engine._volumes.metas.using(0) as meta:
            for (_, ledger_id, tag, number), usage in meta.usage().items():
                entries, came, stands = sums.get((ledger_id, tag, number), (0, 0, 0))
                sums[ledger_id, tag, number] = entries + usage.entries, came + usage.came, stands + usage.stands
        return sums

    def dictionaries(self) -> list[int]:
        with self.engine._volumes.metas.using(0) as meta:
            return [one.number for one in meta.dictionaries()]


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_alive_is_compressed_once_and_comes_back(store: DiskStore, codec: str) -> None:
    sealed(store)
    before = store.disk()
    done = reclaim_all(store.now, compress_with(codec))
    assert "compressed" in done
    assert store.disk() < before * 0.7
    store.check()
    sealed(store, 1)
    assert "compressed" not in reclaim_all(store.now, compress_with(codec))
    for _ in range(2):
        store.open()
        store.check()


def test_without_a_choice_nothing_changes(store: DiskStore) -> None:
    sealed(store)
    assert set(reclaim_all(store.now, compress_with("zstd", 99))) == {"sealed"}
    store.check()


def test_a_codec_that_could_not_be_loaded_is_tried_again_after_the_next_volume(
    store: DiskStore, caplog: pytest.LogCaptureFixture
) -> None:
    load, fails = store.now.codecs.load, True

    def loaded(kind: str, name: str) -> Any:
        if fails:
            raise PluginError("not finished after 50 seconds")
        return load(kind, name)

    store.now.codecs.load = loaded
    for _ in range(2):
        sealed(store)
        assert "compressed" not in reclaim_all(store.now, compress_with("zstd"))
    assert [record.message for record in caplog.records] == [
        "entries at rest are not compressed, the codec is unavailable: "
        "cannot use the codec 'zstd': not finished after 50 seconds"
    ]
    fails = False
    assert reclaim_all(store.now, compress_with("zstd")) == []
    sealed(store)
    assert "compressed" in reclaim_all(store.now, compress_with("zstd"))
    store.check()


def test_another_codec_is_another_time_and_none_leaves_it(store: DiskStore) -> None:
    sealed(store)
    assert "compressed" in reclaim_all(store.now, compress_with("zlib"))
    assert reclaim_all(store.now, None) == []
    assert reclaim_all(store.now, compress_with("zlib")) == []
    assert reclaim_all(store.now, compress_with("zlib", 99, generation=2)) == []
    assert "compressed" in reclaim_all(store.now, compress_with("zstd", generation=3))
    with store.now._volumes.metas.using(0) as meta:
        assert {tag for tag, _ in meta.needs()} == {b"zstd"}
    store.check()


def test_what_stands_compressed_is_packed_again_as_it_stands(store: DiskStore) -> None:
    sealed(store)
    reclaim_all(store.now, compress_with("zlib"))
    store.drop(*LEDGERS[:8])
    assert "packed" in reclaim_all(store.now, None)
    with store.now._volumes.metas.using(0) as meta:
        assert {tag for tag, _ in meta.needs()} == {b"zlib"}
        assert {ledger for (_, ledger, _, _) in meta.usage()} == set(LEDGERS[8:])
    store.check()
    store.open()
    store.check()
    store.drop(*LEDGERS)
    sealed(store, 1)
    reclaim_all(store.now, None)
    with store.now._volumes.metas.using(0) as meta:
        assert meta.needs() == {}
        assert meta.usage() == {}


def test_a_dictionary_is_trained_where_bodies_look_alike(tmp_path: Path) -> None:
    store = Telemetry(tmp_path / "data")
    store.publish(1, telemetry(3500))
    store.seal()
    reclaim_all(store.engine, compress_with("zstd"))
    ((key, (entries, came, stands)),) = [one for one in store.usage().items() if one[0][1] == b"zstd" and one[0][2]]
    assert key[0] == 1
    assert entries > 2500
    assert came / stands > 2
    assert store.dictionaries() == [key[2]]
    store.check()
    store.reopen()
    store.check()
    # The topic's next volume uses the same dictionary.
    store.publish(2, telemetry(3500, 2))
    store.seal()
    reclaim_all(store.engine, compress_with("zstd"))
    assert {number for _, tag, number in store.usage() if tag == b"zstd"} == {key[2]}
    store.check()
    store.engine.close()


def test_a_dictionary_that_does_not_pay_any_more_has_a_successor_and_goes_with_its_entries(tmp_path: Path) -> None:
    store = Telemetry(tmp_path / "data")
    store.publish(1, telemetry(2800))
    store.seal()
    reclaim_all(store.engine, compress_with("zstd"))
    (first,) = store.dictionaries()
    others = [bytes(reversed(body)).upper() for body in telemetry(2800, 2)]
    store.publish(2, others)
    store.seal()
    reclaim_all(store.engine, compress_with("zstd"))
    (second,) = set(store.dictionaries()) - {first}
    assert (2, b"zstd", second) in store.usage()
    store.check()
    checkpoint_at(store.engine, store.next_position - 1, None, (1,))
    del store.entries[1]
    reclaim_all(store.engine, compress_with("zstd"))
    assert store.dictionaries() == [second]
    store.check()
    checkpoint_at(store.engine, store.next_position - 1, None, (2,))
    del store.entries[2]
    reclaim_all(store.engine, compress_with("zstd"))
    assert store.dictionaries() == []
    # Numbers are never reused: a reader may have cached them.
    store.publish(3, telemetry(2800))
    store.seal()
    reclaim_all(store.engine, compress_with("zstd"))
    assert store.dictionaries() == [second + 1]
    store.check()
    store.engine.close()


def test_what_gains_nothing_stays_as_it_came(tmp_path: Path) -> None:
    store = Telemetry(tmp_path / "data")
    dice = random.Random(5)
    store.publish(1, [dice.randbytes(300) for _ in range(1500)])
    store.publish(2, telemetry(1500), EntryFlag.OWN_CHECKSUM | EntryFlag.ENCRYPTED)
    store.publish(3, [b"", b"x", b"tiny"] * 500)
    store.seal()
    done = reclaim_all(store.engine, compress_with("zstd"))
    assert {tag for _, tag, _ in store.usage()} == {b"\0\0\0\0"}
    store.check()
    assert done.count("compressed") <= 2
    assert reclaim_all(store.engine, compress_with("zstd")) == []
    store.engine.close()


def test_large_volumes_are_packed_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.storage.packing.step_size.STEP_BYTES", 150_000)
    store = Telemetry(tmp_path / "data", 2 << 20)
    for ledger_id in (1, 2):
        store.publish(ledger_id, telemetry(2500, ledger_id))
    store.seal()
    assert store.engine.reclaim(compress_with("zstd")) is not None  # sealed
    steps = 0
    while (done := store.engine.reclaim(compress_with("zstd"))) is not None:
        steps += done.what in ("compressed", "packed")
        store.check()
        with store.engine._volumes.metas.using(0) as meta:
            stretches = meta.stretches_of([1, 2], frozenset(meta.contents()))
            assert sum(one.entries for one in stretches) == 5_000
            contents = meta.contents().values()
            assert sum(one.bytes for one in stretches) == sum(one.bytes for one in contents)
    assert steps > 4
    store.reopen()
    store.check()
    store.engine.close()


def test_a_step_that_something_waits_for_ends_early_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_packer, "_SLICE_COMPRESSED", 100_000)
    store = Telemetry(tmp_path / "data", 4 << 20)
    store.publish(1, telemetry(3000))
    store.seal()
    compressing = compress_with("zstd", percent=1)._replace(hurried=lambda: True)
    steps = reclaim_all(store.engine, compressing)
    assert len(steps) > 4, "at one percent of a core it would take a minute, were it to wait"
    store.check()
    assert sum(entries for (_, tag, _), (entries, _, _) in store.usage().items() if tag == b"zstd") == 3000
    store.reopen()
    store.check()
    store.engine.close()


def test_a_damaged_block_is_a_damaged_entry(store: DiskStore) -> None:
    sealed(store)
    reclaim_all(store.now, compress_with("zlib"))
    volumes = store.now._volumes
    with volumes.metas.using(0) as meta:
        stretch = meta.stretch_of(1, 0)
    assert stretch is not None and stretch.volume >= PACKED
    with volumes.pool.using(stretch.volume) as volume:
        position = volume.position_of(1, 1)
        value = bytearray(volume.value(position))
    at = value.index(
        b"\x78\x9c",
        value.index(ENTRY_HEADER.pack(1, EntryFlag.CHECKSUM, 104, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)[8:24]),
    )
    store.close()
    file = volumes.directory.volume(stretch.volume) / "data.mdb"
    data = file.read_bytes()
    whole = data.index(bytes(value))
    with file.open("r+b") as out:
        out.seek(whole + at + 6)
        out.write(bytes([value[at + 6] ^ 0xFF]))
    store.open()
    assert [entry.entry_id for entry in store.now.read(ReadRequest(1, 1, 0, 5, 1 << 20))] == [0]
    with pytest.raises(EntryDamaged) as caught:
        store.now.read(ReadRequest(1, 1, 1, 5, 1 << 20))
    assert (caught.value.first, caught.value.last) == (1, 1)
    assert caught.value.counts is not None and caught.value.counts[1] == SIZE + 6
    assert [entry.entry_id for entry in store.now.read(ReadRequest(1, 1, 2, 3, 1 << 20))] == [2, 3]


class Crash(BaseException):
    """Simulated crash of the machine."""


STEPS = ("packed copied", "packed renamed", "remapped", "source removed")


@pytest.mark.parametrize("step", STEPS)
def test_after_a_crash_at_any_step_all_is_there(store: DiskStore, step: str) -> None:
    sealed(store)
    crashed = False

    def crash(name: str) -> None:
        nonlocal crashed
        if not crashed and name == step:
            crashed = True
            raise Crash

    store.on_step = crash
    with contextlib.suppress(Crash):
        reclaim_all(store.now, compress_with("zstd"))
    assert crashed
    for _ in range(2):
        store.open()
        store.check()
    reclaim_all(store.now, compress_with("zstd"))
    store.check()
    store.drop(*LEDGERS[:7])
    reclaim_all(store.now, compress_with("zstd"))
    store.check()
    store.open()
    store.check()


def test_closing_ends_a_step_that_waits(store: DiskStore) -> None:
    sealed(store)
    store.now.reclaim(None)
    store.now._reclaimer.stop()
    with pytest.raises(PersistenceError, match="closed"):
        reclaim_all(store.now, compress_with("zlib", percent=1))
