"""Benchmark of the log's layout, one value per entry or per batch, with the committer beside a busy main thread.

    python -m benchmarks.journal_shape [--seconds 2] [--rounds 3] [--json FILE] [--dir FOLDER]

The main thread simulates a broker's work on a message, about 10 us of pure Python for an entry of 1 KiB, and adds it to
the open batch. The committer thread takes a whole batch, writes it in one LMDB transaction with one sync, and takes the
next. Every write to LMDB releases the GIL and has to reacquire it from the busy thread; the layouts differ in how often
that happens:

    entry     one value per entry, put with append=True
    multi     the same through one cursor.putmulti
    bare      one value per batch, without an index: comparable with the two above, which have none either
    batch     one value per batch: LmdbEngine itself, including its index and in-memory tables

Rounds alternate between all combinations; medians are shown. The open batch is bounded, so a slow committer slows the
main thread down, as the broker's backpressure does: entries/s is the throughput of both.
"""

import argparse
import gc
import json
import shutil
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import lmdb

from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Entry, pack_entry

BODY = bytes(range(256)) * 4
BATCH_BYTES_MAX = 16 << 20
INTERVALS = (0.005, 0.001, 0.0005, 0.0001)
SHAPES = ("entry", "multi", "bare", "batch")
TOPICS = (1, 1000)
KEY = struct.Struct(">QI")
FIELDS = struct.Struct(">IIQQ")


class Result(NamedTuple):
    """Figures of one run."""

    entries_per_s: float
    commit_p50_ms: float
    commit_p99_ms: float
    disk_ratio: float
    entries_per_commit: float


class PlainLog:
    """Log keyed by batch and number, without an index: one value per entry, or one per batch (``bare``)."""

    def __init__(self, path: Path, shape: str) -> None:
        self.env = lmdb.open(str(path), map_size=16 << 30, max_dbs=4)
        self.log = self.env.open_db(b"log")
        self.shape = shape

    def commit(self, batch: Batch) -> None:
        """Write a batch; the header and body of an entry form one value."""
        parts = batch.parts
        position = batch.position
        if self.shape == "bare":
            with self.env.begin(write=True, db=self.log) as txn:
                txn.put(KEY.pack(position, 0), batch.value(), append=True)
            return
        values = map(bytes.__add__, parts[::2], parts[1::2])
        pairs = ((KEY.pack(position, number), value) for number, value in enumerate(values))
        with self.env.begin(write=True, db=self.log) as txn:
            if self.shape == "multi":
                with txn.cursor() as cursor:
                    cursor.putmulti(pairs, append=True)
            else:
                for key, value in pairs:
                    txn.put(key, value, append=True)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


class Pipe:
    """The open batch shared by the two threads, and the commit times."""

    def __init__(self, commit: Callable[[Batch], None]) -> None:
        self.commit = commit
        self.lock = threading.Condition()
        self.batch = Batch(1)
        self.stop = False
        self.committed = 0
        self.times: list[float] = []

    def run(self) -> None:
        """Run the committer thread."""
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.batch or self.stop)
                batch = self.batch
                if not batch:
                    return
                self.batch = Batch(batch.position + 1)
                self.lock.notify_all()
            begin = time.perf_counter()
            self.commit(batch)
            self.times.append(time.perf_counter() - begin)
            self.committed += len(batch.parts) // 2


def produce(pipe: Pipe, topics: int, seconds: float) -> float:
    """Run the main thread: parse, pack and add entries at full speed; return the start time."""
    frame = FIELDS.pack(1, 2, 3, 4) * 18
    ends = [0] * topics
    begin = time.perf_counter()
    number = 0
    while number & 255 or time.perf_counter() - begin < seconds:
        checked = 0
        for at in range(0, len(frame), FIELDS.size):  # simulates parsing of a command and its metadata
            for field in FIELDS.unpack_from(frame, at):
                checked = (checked * 31 + field) & 0xFFFFFFFF
        attributes = {f"property-{key}": str(checked + key) for key in range(8)}
        topic = number % topics
        entry_id = ends[topic]
        ends[topic] = entry_id + 1
        entry = Entry(topic, entry_id, 0, 1, entry_id, 0, len(attributes), 0, 0, 0, 0, BODY)
        header = pack_entry(entry)
        with pipe.lock:
            if pipe.batch.size > BATCH_BYTES_MAX:
                pipe.lock.wait_for(lambda: pipe.batch.size <= BATCH_BYTES_MAX)
            pipe.batch.add_entry(topic, entry_id, header, BODY)
            if len(pipe.batch.parts) == 2:
                pipe.lock.notify_all()
        number += 1
    with pipe.lock:
        pipe.stop = True
        pipe.lock.notify_all()
    return begin


def measure(shape: str, interval: float, topics: int, seconds: float, folder: Path) -> Result:
    """Run once in a new directory."""
    path = Path(tempfile.mkdtemp(dir=folder))
    store: PlainLog | LmdbEngine
    if shape == "batch":
        store = LmdbEngine(path)
        store.recover()
    else:
        store = PlainLog(path, shape)
    pipe = Pipe(store.commit)
    committer = threading.Thread(target=pipe.run, daemon=True)
    gc.collect()
    sys.setswitchinterval(interval)
    try:
        committer.start()
        begin = produce(pipe, topics, seconds)
        committer.join()
        took = time.perf_counter() - begin
    finally:
        sys.setswitchinterval(0.005)
    store.close()
    used = sum(file.stat().st_blocks * 512 for file in path.rglob("data.mdb") if file.parent.name != "meta")
    shutil.rmtree(path)
    times = sorted(pipe.times)
    return Result(
        pipe.committed / took,
        times[len(times) // 2] * 1000,
        times[min(len(times) - 1, len(times) * 99 // 100)] * 1000,
        used / (pipe.committed * len(BODY)),
        pipe.committed / len(times),
    )


def main() -> None:
    """Run all combinations alternately and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--topics", nargs="+", type=int, default=TOPICS)
    parser.add_argument("--intervals", nargs="+", type=float, default=INTERVALS, help="in seconds")
    parser.add_argument("--json", type=Path, help="write all runs there")
    parser.add_argument("--dir", type=Path, help="folder on the disk to measure")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.dir))
    cases = [
        (topics, interval, shape)
        for topics in options.topics
        for interval in options.intervals
        for shape in options.shapes
    ]
    runs: dict[tuple[int, float, str], list[Result]] = {case: [] for case in cases}
    try:
        for number in range(options.rounds):
            for case in cases if number % 2 == 0 else cases[::-1]:
                topics, interval, shape = case
                runs[case].append(measure(shape, interval, topics, options.seconds, folder))
    finally:
        shutil.rmtree(folder)
    print(
        "| topics | switch interval, ms | shape | entries/s | commit p50, ms | p99, ms | entries a commit | disk/data |"
    )
    print("|--:|--:|---|--:|--:|--:|--:|--:|")
    for topics, interval, shape in cases:
        of_case = runs[topics, interval, shape]
        result = Result(*map(statistics.median, zip(*of_case, strict=True)))
        print(
            f"| {topics} | {interval * 1000:g} | {shape} | {result.entries_per_s:,.0f} | {result.commit_p50_ms:.1f} "
            f"| {result.commit_p99_ms:.1f} | {result.entries_per_commit:.0f} | {result.disk_ratio:.2f} |"
        )
    if options.json:
        rows = [
            {"topics": topics, "interval_s": interval, "shape": shape, "runs": [run._asdict() for run in of_case]}
            for (topics, interval, shape), of_case in runs.items()
        ]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
