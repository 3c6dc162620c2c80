"""Cost of a commit with several copies, in the engine without a broker: time, processor time, and syncs."""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.storage_engine import bodies_of
from pulsarbox.server.replica.replica_connector import ReplicaConnector
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.member_writers import ThreadWriters
from pulsarbox.storage.ensemble.remote.remote_member import RemoteMember
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Entry, pack_entry

ENTRIES: Final = (1, 100)
"""Entries of 1 KiB in a batch: one in flight, and group commit under load."""
VOLUME_BYTES: Final = 256 << 20
SUFFIX: Final = "+replica"
"""Marks numbers of copies of which one is on a replica: 2/2/2+replica."""


class ReplicaOnLoopback(NamedTuple):
    """A running replica."""

    address: str
    secret_file: Path


def engine_lines(quorums: Sequence[str], disks: Sequence[Path], commits: int, rounds: int) -> Iterator[str]:
    """Yield a line for each batch size and number of copies; rounds alternate between these."""
    for entries in ENTRIES:
        found: dict[str, list[tuple[float, float, float]]] = {each: [] for each in quorums}
        for number in range(rounds):
            for each in quorums if number % 2 == 0 else quorums[::-1]:
                found[each].append(measure(each, disks, entries, commits))
        base = statistics.median(p50 for p50, _, _ in found[quorums[0]])
        for each, measured in found.items():
            p50, p99, cpu = (statistics.median(values) for values in zip(*measured, strict=True))
            yield (
                f"commit of {entries} KiB, {each}: p50 {p50:.0f} us ({p50 / base:.2f}), p99 {p99:.0f} us,"
                f" processor {cpu:.0f} us"
            )


def measure(quorums: str, disks: Sequence[Path], entries: int, commits: int) -> tuple[float, float, float]:
    """Return the median and p99 of a commit and its processor time, in microseconds."""
    asked = tuple(map(int, quorums.removesuffix(SUFFIX).split("/")))
    with ExitStack() as stack:
        folders = [
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="copies-", dir=disk)))
            for disk in disks[: asked[0]]
        ]
        served = stack.enter_context(replica(folders.pop())) if quorums.endswith(SUFFIX) else None
        engine = open_store(folders, served)
        stack.callback(engine.close)
        return timed(engine, asked, entries, commits)


def open_store(folders: Sequence[Path], served: ReplicaOnLoopback | None) -> Engine:
    """Open an engine on one directory, or on several and a replica."""
    options: dict[str, Any] = {"volume_size": VOLUME_BYTES}
    engine: Engine
    if len(folders) == 1 and served is None:
        engine = LmdbEngine(folders[0] / "data", **options)
    else:
        members: list[Member] = [LmdbMember(folder / "data", **options) for folder in folders]
        members += [] if served is None else [remote_member(served)]
        engine = EnsembleEngine(members, writers=ThreadWriters(), monotonic=time.monotonic)
    engine.recover()
    return engine


def remote_member(served: ReplicaOnLoopback) -> RemoteMember:
    """Return a member on a replica."""
    connector = ReplicaConnector(served.secret_file, None, 30.0)
    return RemoteMember(served.address, connector.connect, lambda: {"run": "benchmark", "generation": 0}, "")


def timed(engine: Engine, asked: tuple[int, ...], entries: int, commits: int) -> tuple[float, float, float]:
    """Commit batches one after the other."""
    took: list[float] = []
    cpu = 0.0
    for batch in itertools.islice(batches(asked, entries), commits):
        before, begin = time.process_time(), time.perf_counter()
        engine.commit(batch)
        took.append(time.perf_counter() - begin)
        cpu += time.process_time() - before
    took.sort()
    return 1e6 * took[len(took) // 2], 1e6 * took[len(took) * 99 // 100], 1e6 * cpu / commits


def batches(asked: tuple[int, ...], entries: int) -> Iterator[Batch]:
    """Yield batches with entries of 1 KiB, endlessly."""
    bodies, number = bodies_of(1 << 10), itertools.count()
    flags: int = EntryFlag.CHECKSUM
    for position in itertools.count(1):
        batch = Batch(position)
        for entry_id in itertools.islice(number, entries):
            body = bodies[entry_id % len(bodies)]
            entry = Entry(1, entry_id, flags, 1, entry_id + 1, entry_id << 10, 7, 1, 2, 0, body.checksum, body.data)
            batch.add_entry(1, entry_id, pack_entry(entry), body.data)
        batch.ask(*asked)
        yield batch


def sync_seconds(folder: Path, count: int = 200, size: int = 4096) -> float:
    """Return the median time of a write and an fdatasync on the device of a folder."""
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(count):
            begin = time.perf_counter()
            os.write(file.fileno(), bytes(size))
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - begin)
    return statistics.median(took)


@contextmanager
def replica(folder: Path) -> Iterator[ReplicaOnLoopback]:
    """Serve a directory in ``folder``."""
    secret = folder / "secret"
    secret.write_text("the secret of a benchmark\n")
    secret.chmod(0o600)
    command = [sys.executable, "-m", "pulsarbox", "storage", "serve", str(folder / "replica"), "--listen"]
    command += ["127.0.0.1:0", "--secret-file", str(secret), "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ReplicaOnLoopback("replica://" + process.stdout.readline().split()[-1], secret)
        finally:
            process.terminate()
