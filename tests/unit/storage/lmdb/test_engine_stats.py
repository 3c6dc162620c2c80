"""Statistics of an open store."""

import subprocess
import sys
from pathlib import Path

from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.engine_stats import _readers
from tests.unit.storage.batches import batch_of

READER = """
import sys, lmdb
env = lmdb.open(sys.argv[1], readonly=True, create=False, max_dbs=16)
txn = env.begin()
print("reads", flush=True)
sys.stdin.read()
"""


def test_the_list_of_readers_is_read() -> None:
    text = "    pid     thread     txnid\n  12 7fab 7\n  13 7fac -\n 14 7fad 9\n"
    assert _readers(text, 9) == [{"pid": 12, "behind": 2}, {"pid": 14, "behind": 0}]
    assert _readers("(no active readers)\n", 9) == []


def filled(path: Path) -> LmdbEngine:
    engine = LmdbEngine(path, volume_size=64 << 10, reserve_bytes=1 << 16)
    engine.recover()
    for position in range(1, 60):
        engine.commit(batch_of(position, [(1, position * 10, 10)], 400))
    return engine


def test_volumes_maps_and_disk(tmp_path: Path) -> None:
    engine = filled(tmp_path / "data")
    try:
        found = engine.statistics()
        rows = found["rows"]
        assert rows[0]["state"] == "current"
        assert len(rows) == found["volumes"] > 2
        assert {row["state"] for row in rows[1:]} == {"unsealed"}
        assert rows[0]["lastPosition"] == 59
        assert all(row["mapSize"] > row["fileSize"] > 0 and row["freePages"] >= 0 for row in rows)
        assert found["volumeBytes"] == sum(row["diskUsed"] for row in rows) > 59 * 10 * 400
        assert found["meta"]["mapSize"] > found["meta"]["fileSize"] > 0
        assert found["meta"].keys() >= {"freePages", "pageSize", "readers", "oldestReader", "diskUsed"}
        assert [found[f"unpacked{what}"] for what in ("Hits", "Misses", "Bytes")] == [0, 0, 0]
        assert (found["reserveHeld"], found["diskFree"] > 0) == (True, True)
        engine.checkpoint(Checkpoint(59, {b"a": b"b"}, ()))
        while engine.reclaim() is not None:
            pass
        sealed = [row for row in engine.statistics()["rows"] if row["state"] == "sealed"]
        assert len(sealed) == len(rows) - 1
        assert sum(row["liveEntries"] for row in sealed) > 500
        assert all(0.2 < row["liveShare"] <= 1 for row in sealed)
    finally:
        engine.close()


def test_a_reader_that_holds_pages_is_told_with_its_process(tmp_path: Path) -> None:
    engine = filled(tmp_path / "data")
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(tmp_path / "data" / "meta")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reads\n"
        for position in (30, 59):
            engine.checkpoint(Checkpoint(position, {b"a": b"%d" % position}, ()))
        oldest = engine.statistics()["meta"]["oldestReader"]
        assert oldest["pid"] == reader.pid
        assert oldest["behind"] >= 2
    finally:
        reader.communicate(b"")
        engine.close()
