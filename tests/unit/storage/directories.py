"""Data directories built from the format table, and a process that writes to one."""

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import lmdb

from pulsarbox.storage.catalog import acks_chunk_key
from pulsarbox.storage.entry_index import UnindexedRuns
from pulsarbox.storage.format import CONTENT, FORMAT, INDEX_KEY, LOG_KEY, PACKED, STRETCH
from pulsarbox.storage.inspection.box import name_of
from pulsarbox.storage.inspection.scan import StoredEntries, entry_ids, records
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import (
    Acked,
    AckedRange,
    MarkDelete,
    Meta,
    Position,
    pack_acked,
    pack_mark_delete,
    pack_meta,
)
from tests.unit.storage.batches import batch_of

TOPIC = "persistent://public/default/orders"
NEWER = "persistent://public/default/newer"
INSTANCE = "7a0c5d9e-0000-4000-8000-000000000001"

Rows = Iterable[tuple[bytes, bytes]]


def write(path: Path, tables: dict[bytes, Rows]) -> None:
    """Write tables of an environment, which is created if missing."""
    path.mkdir(parents=True, exist_ok=True)
    with lmdb.open(str(path), map_size=64 << 20, max_dbs=16) as env:
        for name, rows in tables.items():
            table = env.open_db(name)
            with env.begin(write=True) as txn:
                for key, value in rows:
                    txn.put(key, value, db=table)


def write_volume(path: Path, batches: list[Batch], *, indexed: int) -> StoredEntries:
    """Write a volume whose index covers its log up to a position; return its entries."""
    runs, held = UnindexedRuns(), StoredEntries()
    log = [(LOG_KEY.pack(batch.position), batch.value()) for batch in batches]
    for batch, (_, value) in zip(batches, log, strict=True):
        if batch.position <= indexed:
            runs.add(batch.position, batch.runs)
        for record in records(value):
            if record.kind == 1:
                held.add(*entry_ids(value, record.offset), record.size)
    write(path, {b"log": log, b"index": runs.rows(), b"mark": [(b"indexed", LOG_KEY.pack(indexed))]})
    return held


class Maker:
    """Builder of a data directory, environment by environment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        instance = {"format": FORMAT, "instance": INSTANCE, "created": 1_700_000_000_000}
        (path / "INSTANCE").write_text(json.dumps(instance))
        (path / "LOCK").write_text("1")
        (path / "volumes").mkdir()
        self.stretches: list[tuple[bytes, bytes]] = []
        self.contents: list[tuple[bytes, bytes]] = []

    def volume(self, number: int, batches: list[Batch], *, sealed: bool, indexed: int = -1) -> None:
        """Write one volume; a sealed or packed one is recorded for ``meta``."""
        last = batches[-1].position
        folder = self.path / name_of(number)
        held = write_volume(folder, batches, indexed=last if sealed or indexed < 0 else indexed)
        if not sealed:
            return
        entries = size = 0
        for ledger_id, parts in held.ledgers.items():
            for part in parts:
                key = INDEX_KEY.pack(ledger_id, part.first)
                self.stretches.append((key, STRETCH.pack(number, part.entries, part.bytes)))
                entries += part.entries
                size += part.bytes
        file_size = (folder / "data.mdb").stat().st_size
        content = CONTENT.pack(batches[0].position, last, file_size, entries, size)
        self.contents.append((LOG_KEY.pack(number), content))

    def meta(self, rows: Mapping[str, object], mark: int, sealed: int) -> None:
        """Write the checkpoint and the volume tables."""
        packed = [
            (key.encode(), value if isinstance(value, bytes) else json.dumps(value).encode())
            for key, value in rows.items()
        ]
        marks = [(b"position", LOG_KEY.pack(mark)), (b"sealed", LOG_KEY.pack(sealed))]
        tables: dict[bytes, Rows] = {b"rows": packed, b"mark": marks, b"volumes": self.stretches}
        tables |= {b"contents": self.contents, b"dropped": []}
        write(self.path / "meta", {**tables, b"compressed": [], b"needs": [], b"dictionaries": []})


def ledger_row(entries: int, closed: int) -> dict[str, int]:
    """The row of a ledger."""
    size = 46 * entries
    return {
        "created": 1, "closed": closed, "messages_before": 0, "bytes_before": 0, "entries": entries, "size": size
    }  # fmt: skip


def rows_of_the_sample() -> dict[str, object]:
    """The checkpoint rows of the sample, up to batch 5."""
    return {
        "ids": {"next": 9, "boot": 1},
        f"topic/{TOPIC}": {"id": 1, "created": 1, "properties": {}},
        "owner/0000000000000001": TOPIC,
        "ledger/0000000000000001/0000000000000002": ledger_row(10, 5),
        "ledger/0000000000000001/0000000000000003": ledger_row(3, 0),
        "cursor/0000000000000001/0000000000000004": {"name": "sub", "properties": {}, "created": 1},
        "acks/0000000000000004": pack_mark_delete(MarkDelete(4, Position(2, 3), 4, 184, reset=True)),
        acks_chunk_key(4, 2, 0): pack_acked(Acked(4, (AckedRange(2, 5, 6, 5, 7, 230, 322),))),
        "x" * 10: {"long": False},
    }


def make_sample(path: Path) -> Path:
    """Create a packed volume (batch 1), a sealed one (2 to 4) and the current one (5 to 8); the checkpoint covers batch
    5.

    Ledger 2 of ``orders`` has entries 0 to 9 and is closed; ledger 3 grows with each batch from batch 4. Ledger 7 of
    ``newer`` begins in batch 6. Ledger 99 is dead.
    """
    maker = Maker(path)
    maker.volume(PACKED + 1, [batch_of(1, [(2, 0, 4)])], sealed=True)
    maker.volume(2, [batch_of(2, [(2, 4, 4)]), batch_of(3, [(2, 8, 2)]), batch_of(4, [(3, 0, 2)])], sealed=True)
    newer = batch_of(6, [(3, 3, 1)])
    newer.add(pack_meta(Meta(f"topic/{NEWER}".encode(), json.dumps({"id": 6, "created": 2}).encode())))
    row = json.dumps(ledger_row(0, 0)).encode()
    newer.add(pack_meta(Meta(b"ledger/0000000000000006/0000000000000007", row)))
    acked = batch_of(7, [(7, 0, 3), (99, 0, 1)])
    acked.add(pack_mark_delete(MarkDelete(4, Position(2, 9), 10, 460, reset=True)))
    current = [batch_of(5, [(3, 2, 1)]), newer, acked, batch_of(8, [(7, 3, 1)])]
    maker.volume(3, current, sealed=False, indexed=6)
    maker.meta(rows_of_the_sample(), mark=5, sealed=2)
    return path


def keep_live(path: Path) -> None:
    """Hold the sample open as a daemon does, and write to it until killed."""
    lock = os.open(path / "LOCK", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    with lmdb.open(str(path / name_of(3)), map_size=1 << 30, max_dbs=16) as env:
        log = env.open_db(b"log")
        for count in range(100_000):
            batch = batch_of(9 + count, [(7, 4 + count, 1)])
            with env.begin(write=True) as txn:
                txn.put(LOG_KEY.pack(batch.position), batch.value(), db=log)
            if count == 10:
                sys.stdout.write("ready\n")
                sys.stdout.flush()
            time.sleep(0.001)


if __name__ == "__main__":
    keep_live(Path(sys.argv[1]))
