"""Benchmark of offloading ledgers to Parquet, and of ``table()`` against Spark's own scan of the same rows.

Each query runs alternately on the files of single ledgers and on merged files, by Spark alone and by ``table()`` each,
so that the ratios hold on a busy machine. Live messages are in one more file for Spark alone.
``python -m benchmarks.spark_table --messages 200000``; a table on stdout, with processor time of the JVM and its
Python workers.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.reading import Case, publish
from benchmarks.spark import processor_seconds, session
from pulsarbox import PulsarBox
from pulsarbox.spark import table
from pulsarbox.spark.offload.layout import folder_of
from pulsarbox.spark.offload.manifest import OffloadedTopic, OffloadManifest
from pulsarbox.spark.offload.merge_plan import FILE_BYTES
from pulsarbox.spark.offload.offloading import Offload, OffloadRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def offloaded(box: PulsarBox, directory: Path, topic: str, access: str) -> None:
    """Offload a topic to a file per ledger, and print the speed. Raises AssertionError on failure."""
    begin, before = time.perf_counter(), time.process_time()
    (done,) = Offload(asked(box, directory, topic, access, 0), lambda _: None).round()
    taken, worked = time.perf_counter() - begin, time.process_time() - before
    assert not done.problem and done.rows, done
    payload = sum(each.payload_bytes for each in history_in(directory, topic).ledgers)
    print(
        f"offload, {'in place' if access == 'auto' else 'wire':9} {done.rows:>9} rows, {done.ledgers} ledgers"
        f"{taken:>9.2f} s{payload / taken / 1e6:>8.1f} MB/s of payload, {worked:.2f} s of processor time, files "
        f"{done.bytes / 1e6:.1f} MB",
        flush=True,
    )


def asked(box: PulsarBox, directory: Path, topic: str, access: str, file_bytes: int) -> OffloadRequest:
    urls = {"service.url": box.service_url, "admin.url": box.admin_url, "access": access}
    return OffloadRequest(directory=directory, box=urls, topics=(topic,), file_bytes=file_bytes)


def history_in(directory: Path, topic: str) -> OffloadedTopic:
    (history,) = OffloadManifest(folder_of(directory, topic)).histories.values()
    return history


def files_of(directory: Path, topic: str) -> list[str]:
    return [f"file://{folder_of(directory, topic) / each.file}" for each in history_in(directory, topic).files]


def merged(box: PulsarBox, directory: Path, topic: str) -> None:
    """Merge the files of a topic, and print the speed. Raises AssertionError on failure."""
    before = history_in(directory, topic).files
    begin, worked = time.perf_counter(), time.process_time()
    (done,) = Offload(asked(box, directory, topic, "auto", FILE_BYTES), lambda _: None).round()
    taken, worked = time.perf_counter() - begin, time.process_time() - worked
    assert not done.problem, done
    after = history_in(directory, topic).files
    size = f"{sum(each.bytes for each in after) / 1e6:.1f} MB"
    print(
        f"merging {len(before)} files into {len(after)}: {taken:.2f} s, {worked:.2f} s of processor time, {size}",
        flush=True,
    )


class Cost(NamedTuple):
    """Cost of one query, in seconds."""

    wall: float
    processor: float


def measure(cases: dict[str, tuple[Callable[[], Any], ...]], turns: int, warm_up: int) -> None:
    """Print a line per case: Parquet and the table of files of single ledgers, Parquet and the table of merged files,
    and the ratios of the tables to Parquet: of the former, of the merged one to the first, of the merged one.

    ``warm_up``: turns of all cases before those that count, for the compilers of the JVM."""
    for _ in range(warm_up):
        for each in cases.values():
            for run in each:
                run()
    for name, each in cases.items():
        found: list[list[Cost]] = [[] for _ in each]
        answers: list[set[Any]] = [set() for _ in each]
        for _ in range(turns):
            for number, run in enumerate(each):
                begin, busy = time.perf_counter(), processor_seconds()[0]
                answers[number].add(run())
                found[number].append(Cost(time.perf_counter() - begin, processor_seconds()[0] - busy))
        assert len(set.union(*answers)) == 1, (name, answers)
        walls = [statistics.median(cost.wall for cost in costs) for costs in found]
        pairs = ((found[first], found[second]) for first, second in ((0, 1), (0, 3), (2, 3)))
        ratios = [statistics.median(a.wall / b.wall for a, b in zip(*pair, strict=True)) for pair in pairs]
        worked = [statistics.median(cost.processor for cost in costs) for costs in found]
        cells = [*(f"{each:.2f} s" for each in walls), *(f"{each:.2f}" for each in ratios)]
        cells += [f"{each:.2f} s" for each in worked]
        print(f"{name:32}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


def cases_of(frames: "dict[str, tuple[DataFrame, ...]]", ledger: int) -> dict[str, tuple[Callable[[], Any], ...]]:
    """Return queries of frames. ``frames``: by name, of Parquet and of a table, of the files as they are and merged."""

    def query(frame: "DataFrame", expression: str, where: str) -> Callable[[], Any]:
        return lambda: frame.where(where).selectExpr(expression).collect()[0][0]

    queries = {
        "count": ("count(*)", "true"),
        "one column": ("max(__entryId)", "true"),
        "value": ("sum(length(value))", "true"),
        "one ledger, value": ("sum(length(value))", f"__ledgerId = {ledger}"),
    }
    return {
        f"{name}, {what}": tuple(query(frame, *words) for frame in each)
        for name, each in frames.items()
        for what, words in queries.items()
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=1024, help="bytes of a payload")
    parser.add_argument("--ledgers", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=2, help="turns of all queries before those that count")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args(words)
    entries = max(1, arguments.messages // arguments.ledgers)
    keep: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    with tempfile.TemporaryDirectory() as folder:
        data, directory = Path(folder) / "data", Path(folder) / "history"
        with PulsarBox(data_dir=data, process=True, managedLedgerMaxEntriesPerLedger=entries, **keep) as box:
            print(f"publishing {arguments.messages} messages", file=sys.stderr)
            (topic,) = publish(box, Case("", arguments.size, 1), arguments.messages + entries // 2, 1)
            offloaded(box, Path(folder) / "wire", topic, "wire")
            offloaded(box, directory, topic, "auto")
            shutil.copytree(directory, Path(folder) / "merged")
            merged(box, Path(folder) / "merged", topic)
            spark = session(arguments.workers)
            urls: dict[str, Any] = {"service.url": box.service_url, "admin.url": box.admin_url, "columns": "all"}
            places = (directory, Path(folder) / "merged")
            history = [table(spark, topic, each, tail=False, columns="all") for each in places]
            whole = [table(spark, topic, each, **urls) for each in places]
            ledgers = history_in(directory, topic).ledgers
            live = f"file://{folder}/live"
            whole[0].where(f"__ledgerId > {ledgers[-1].ledger}").coalesce(1).write.parquet(live)
            alone = [spark.read.parquet(*files_of(each, topic)) for each in places]
            with_live = [spark.read.parquet(*files_of(each, topic), live) for each in places]
            frames = {
                name: tuple(frame for pair in zip(parquet, tables, strict=True) for frame in pair)
                for name, parquet, tables in (("history", alone, history), ("with tail", with_live, whole))
            }
            names = ("Parquet", "table()", "merged: P.", "table()", "x", "x", "x", "processor", "", "", "")
            print(f"{'':32}" + "".join(f"{name:>10}" for name in names))
            measure(cases_of(frames, ledgers[3].ledger), arguments.turns, arguments.warm_up)
            spark.stop()


if __name__ == "__main__":
    main()
