"""Storage benchmark of the engine without a broker: packing old volumes, and reading a ledger from end to end."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.storage_table import Line, Options, folder, say
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Entry, pack_entry

VOLUME_BYTES: Final = 256 << 20
PACKED_VOLUMES: Final = 4
READ_BYTES: Final = 512 << 20
ENTRY_SIZES: Final = (1 << 10, 10 << 10)
LEDGERS: Final = 10
DROPPED: Final = 6
"""Number of deleted ledgers, so that 40 % of the data stays live."""
BATCH_BYTES: Final = 1 << 20
BATCH_ENTRIES: Final = 30
READ_ENTRIES: Final = 100
READ_BYTES_MAX: Final = 5 << 20


class Body(NamedTuple):
    """Bytes of an entry as sent by a client, and their checksum."""

    checksum: int
    data: bytes


def bodies_of(size: int) -> list[Body]:
    """Return some distinct, incompressible bodies."""
    dice, bodies = random.Random(1), []
    for _ in range(64):
        text = dice.randbytes(size)
        checksum = crc32c(text)
        bodies.append(Body(checksum, b"\x0e\x01" + checksum.to_bytes(4, "big") + text))
    return bodies


def batches_of(ledgers: int, size: int, entries: int) -> Iterator[Batch]:
    """Yield batches of ``entries`` entries endlessly, over the ledgers in turn."""
    bodies, number, position = bodies_of(size), 0, 0
    flags: int = EntryFlag.CHECKSUM
    while True:
        position += 1
        batch = Batch(position)
        for _ in range(entries):
            body = bodies[number % len(bodies)]
            ledger_id, entry_id = number % ledgers + 1, number // ledgers
            entry = Entry(
                ledger_id, entry_id, flags, 1, entry_id + 1, (entry_id + 1) * size, 7, 1, 2, 0, body.checksum, body.data
            )
            batch.add_entry(ledger_id, entry_id, pack_entry(entry), body.data)
            number += 1
        yield batch


@contextmanager
def opened(path: Path, volume_bytes: int) -> Iterator[LmdbEngine]:
    """Provide an engine that packs at full speed and leaves the page cache alone."""
    engine = LmdbEngine(path, volume_size=volume_bytes)
    engine.recover()
    try:
        yield engine
    finally:
        engine.close()


def seal(engine: LmdbEngine, position: int) -> None:
    """Make a checkpoint that covers everything, and seal every full volume."""
    engine.checkpoint(Checkpoint(position, {}, ()))
    while engine.reclaim() is not None:
        pass


def fill(engine: LmdbEngine, batches: Iterator[Batch], count: int) -> int:
    """Commit ``count`` batches; return the last one's position."""
    position = 0
    for batch in islice(batches, count):
        engine.commit(batch)
        position = batch.position
    return position


def mb(size: float) -> float:
    return size / 1e6


def packing(options: Options) -> Iterator[Line]:
    """Measure copying the live data of full volumes into new ones."""
    volume_bytes = max(1 << 20, int(VOLUME_BYTES * options.scale))
    for size in ENTRY_SIZES:
        title = f"packing, {size >> 10} KiB entries, 40 % alive"
        with folder(options) as path, opened(path / "data", volume_bytes) as engine:
            say(f"{title}: filling {PACKED_VOLUMES} volumes of {volume_bytes / 2**20:,.1f} MiB")
            entries = BATCH_BYTES // size
            # One more batch starts the next volume, which is not packed.
            count = PACKED_VOLUMES * (volume_bytes // BATCH_BYTES + 1) + 1
            position = fill(engine, batches_of(LEDGERS, size, entries), count)
            seal(engine, position)
            engine.checkpoint(Checkpoint(position, {}, tuple(range(1, DROPPED + 1))))
            steps, source, written, seconds = 0, 0, 0, 0.0
            while True:
                begin = time.perf_counter()
                done = engine.reclaim()
                took = time.perf_counter() - begin
                if done is None:
                    break
                if done.what == "packed":
                    steps, seconds = steps + 1, seconds + took
                    source, written = source + done.bytes_before, written + done.bytes_after
        if not steps:
            say(f"{title}: nothing was packed")
            continue
        yield Line(title, "source", mb(source) / seconds, "MB/s")
        yield Line(title, "written", mb(written) / seconds, "MB/s")
        yield Line(title, "steps", steps, "")
        yield Line(title, "taken", seconds, "s")


def forget_pages(path: Path) -> None:
    """Drop the volumes' pages from the page cache, so that the next reads go to disk."""
    for file in path.rglob("data.mdb"):
        fd = os.open(file, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def read_all(engine: LmdbEngine, ledger_id: int, entries: int) -> float:
    """Read a ledger as a lagging dispatcher does; return the seconds."""
    begin, first, token = time.perf_counter(), 0, 0
    while first < entries:
        token += 1
        last = min(first + READ_ENTRIES, entries) - 1
        first += len(engine.read(ReadRequest(token, ledger_id, first, last, READ_BYTES_MAX)))
    return time.perf_counter() - begin


def reading(options: Options) -> Iterator[Line]:
    """Measure reading a ledger that spans a few volumes, from the page cache and from disk."""
    volume_bytes = max(1 << 20, int(VOLUME_BYTES * options.scale))
    for size in ENTRY_SIZES:
        with folder(options) as path:
            data = path / "data"
            count = max(2, int(READ_BYTES * options.scale) // (size * BATCH_ENTRIES))
            entries = count * BATCH_ENTRIES
            say(f"catch-up, {size >> 10} KiB entries: filling a ledger with {entries:,}")
            with opened(data, volume_bytes) as engine:
                seal(engine, fill(engine, batches_of(1, size, BATCH_ENTRIES), count))
            for temperature in ("cached", "cold"):
                if temperature == "cold":
                    forget_pages(data)
                with opened(data, volume_bytes) as engine:
                    seconds = read_all(engine, 1, entries)
                title = f"catch-up from the engine, {size >> 10} KiB entries, {temperature}"
                yield Line(title, "entries", entries / seconds, "entries/s")
                yield Line(title, "bytes", mb(entries * size) / seconds, "MB/s")
