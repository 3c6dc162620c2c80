"""Storage benchmark of compression: packing sealed volumes, and reads of packed and unpacked data."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.storage_engine import LEDGERS, forget_pages, mb, opened, seal
from benchmarks.storage_table import Line, Options, folder, say
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.compression.decompressed_cache import ENTRY_BYTES, KEPT_BYTES, DecompressedCache
from pulsarbox.storage.engine import Compressing, CompressionChoice, ReadRequest
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Entry, pack_entry

BYTES: Final = 48 << 20
"""Total size of the bodies of each kind."""
VOLUME_BYTES: Final = 32 << 20
BATCH_ENTRIES: Final = 100
READ_BYTES: Final = 1 << 20
CODECS: Final = ("zstd", "lz4")


class Measure(NamedTuple):
    """Label and unit of a figure."""

    said: str
    unit: str


MEASURES: Final = {
    "packing": Measure("source", "MB/s"),
    "bodies": Measure("bodies, compression ratio", ""),
    "files": Measure("files, compression ratio", ""),
    "cold_plain": Measure("read cold, plain", "MB/s"),
    "cold": Measure("read cold, packed", "MB/s"),
    "warm_plain": Measure("read warm, plain", "MB/s"),
    "warm": Measure("read warm, packed", "MB/s"),
    "kept_plain": Measure("read again, cached, plain", "MB/s"),
    "kept": Measure("read again, cached, packed", "MB/s"),
}
"""Figures by key; read speeds are MB of bodies."""


def telemetry(dice: random.Random, number: int) -> bytes:
    """Return a device reading of some 110 bytes."""
    fields = {
        "device": f"sensor-{dice.randrange(900):04d}",
        "temperature": round(dice.gauss(20, 5), 2),
        "humidity": round(dice.random() * 100, 1),
        "status": dice.choice(("ok", "low", "fault")),
        "at": 1_763_000_000_000 + number * 37,
    }
    return json.dumps(fields).encode()


def order(dice: random.Random, number: int) -> bytes:
    """Return an order of a few articles, of some 500 bytes."""
    articles = [
        {"sku": f"A-{dice.randrange(5000):05d}", "count": dice.randrange(1, 9), "price": dice.randrange(100, 99_999)}
        for _ in range(dice.randrange(1, 10))
    ]
    fields = {
        "order": f"{number:012d}",
        "customer": f"C-{dice.randrange(10**6):07d}",
        "status": dice.choice(("new", "paid", "sent", "returned")),
        "street": f"{dice.randrange(1, 200)} {dice.choice(('Mill', 'High', 'Church', 'Station'))} Road",
        "articles": articles,
        "currency": "EUR",
    }
    return json.dumps(fields).encode()


def noise(dice: random.Random, number: int) -> bytes:
    """Return 1 KiB of random bytes."""
    return dice.randbytes(1024)


KINDS: Final[dict[str, Callable[[random.Random, int], bytes]]] = {
    "telemetry": telemetry,
    "JSON orders": order,
    "random bytes": noise,
}


def _fill(engine: LmdbEngine, make: Callable[[random.Random, int], bytes], size: int) -> tuple[int, dict[int, int]]:
    """Fill some ledgers with ``size`` bytes of bodies; return the last position, and the entries of each ledger."""
    dice = random.Random(1)
    ends = dict.fromkeys(range(1, LEDGERS + 1), 0)
    written = position = number = 0
    while written < size:
        position += 1
        batch = Batch(position)
        for _ in range(BATCH_ENTRIES):
            body = make(dice, number)
            ledger_id = number % LEDGERS + 1
            number += 1
            written += len(body)
            flags: int = EntryFlag.OWN_CHECKSUM
            entry = Entry(ledger_id, ends[ledger_id], flags, 1, number, written, 0, 1, 2, 0, crc32c(body), body)
            ends[ledger_id] += 1
            batch.add_entry(ledger_id, entry.entry_id, pack_entry(entry), body)
        engine.commit(batch)
    return position, ends


def compressing(options: Options) -> Iterator[Line]:
    """Pack live volumes only to compress them, with a whole core; then read them, cold and warm."""
    for kind in KINDS:
        for codec in CODECS if kind != "random bytes" else CODECS[:1]:
            title = f"compressing, {kind}, {codec}"
            for key, value in measured(options, kind, codec).items():
                yield Line(title, MEASURES[key].said, value, MEASURES[key].unit)


def measured(options: Options, kind: str, codec: str) -> dict[str, float]:
    """Return the figures of one kind of bodies by the keys of MEASURES; empty if nothing was packed."""
    title = f"compressing, {kind}, {codec}"
    volume_bytes = max(1 << 20, int(VOLUME_BYTES * options.scale))
    with folder(options) as path:
        say(f"{title}: filling")
        with opened(path / "data", volume_bytes) as engine:
            position, ends = _fill(engine, KINDS[kind], int(BYTES * options.scale))
            seal(engine, position)
            plain = _reads(engine, path, ends)
            seconds, source, written = _compress(engine, codec)
            with engine._volumes.metas.using(0) as meta:
                found = list(meta.usage().values())
            packed = _reads(engine, path, ends)
    if not seconds:
        say(f"{title}: nothing was packed")
        return {}
    came, stands = sum(each.came for each in found), sum(each.stands for each in found)
    figures = {"packing": mb(source) / seconds, "bodies": came / max(stands, 1), "files": source / max(written, 1)}
    for key in ("cold", "warm", "kept"):
        figures |= {f"{key}_plain": plain[key], key: packed[key]}
    return figures


def _compress(engine: LmdbEngine, codec: str) -> tuple[float, int, int]:
    """Return the seconds, and the bytes of the files before and after."""
    wanted = Compressing(lambda rows: lambda ledger_id: CompressionChoice(1, codec), 100, 1)
    seconds = 0.0
    volumes = set(engine._volumes.directory.packed_numbers())
    before = _disk(engine)
    while True:
        begin = time.perf_counter()
        done = engine.reclaim(wanted)
        took = time.perf_counter() - begin
        if done is None:
            break
        if done.what in ("compressed", "packed"):
            seconds += took
    if set(engine._volumes.directory.packed_numbers()) == volumes:
        return 0.0, 0, 0
    return seconds, before, _disk(engine)


def _disk(engine: LmdbEngine) -> int:
    """Return the bytes of sealed and packed volumes."""
    with engine._volumes.metas.using(0) as meta:
        return sum(content.size for content in meta.contents().values())


def _reads(engine: LmdbEngine, path: Path, ends: dict[int, int]) -> dict[str, float]:
    """Return MB of bodies per second: from disk, from the page cache, and from the decompressed cache."""
    engine._unpacked = DecompressedCache(0)
    forget_pages(path)
    found = {"cold": _read(engine, ends), "warm": _read(engine, ends)}
    engine._unpacked = DecompressedCache()
    (one,) = engine.read(ReadRequest(1, 1, 0, 0, READ_BYTES))
    fit = KEPT_BYTES // 4 // (ENTRY_BYTES + len(one.body)) // len(ends)  # bodies vary in size: a quarter surely fits
    few = {ledger_id: min(end, max(fit, 1)) for ledger_id, end in ends.items()}
    _read(engine, few)
    return found | {"kept": _read(engine, few)}


def _read(engine: LmdbEngine, ends: dict[int, int]) -> float:
    size, begin = 0, time.perf_counter()
    for ledger_id, end in ends.items():
        at = 0
        while at < end:
            entries = engine.read(ReadRequest(1, ledger_id, at, end - 1, READ_BYTES))
            at += len(entries)
            size += sum(len(entry.body) for entry in entries)
    return mb(size) / (time.perf_counter() - begin)
