"""Benchmark of offloading ledgers to Parquet, and of ``table()`` against Spark's own scan of the same files.

Alternates in one run, so that the ratios hold on a busy machine. ``python -m benchmarks.spark_table --messages
200000``; a table on stdout.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.reading import Case, publish
from benchmarks.spark import session
from pulsarbox import PulsarBox
from pulsarbox.spark import table
from pulsarbox.spark.offload.layout import folder_of
from pulsarbox.spark.offload.manifest import OffloadManifest
from pulsarbox.spark.offload.offloading import Offload, OffloadRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def offloaded(box: PulsarBox, directory: Path, topic: str, access: str) -> None:
    """Offload a topic and print the speed. Raises AssertionError on failure."""
    urls = {"service.url": box.service_url, "admin.url": box.admin_url, "access": access}
    begin, before = time.perf_counter(), time.process_time()
    (done,) = Offload(OffloadRequest(directory=directory, box=urls, topics=(topic,)), lambda _: None).round()
    taken, worked = time.perf_counter() - begin, time.process_time() - before
    assert not done.problem and done.rows, done
    (history,) = OffloadManifest(folder_of(directory, topic)).histories.values()
    payload = sum(each.payload_bytes for each in history.ledgers)
    print(
        f"offload, {'in place' if access == 'auto' else 'wire':9} {done.rows:>9} rows, {done.ledgers} ledgers"
        f"{taken:>9.2f} s{payload / taken / 1e6:>8.1f} MB/s of payload, {worked:.2f} s of processor time, files "
        f"{done.bytes / 1e6:.1f} MB",
        flush=True,
    )


def measure(cases: dict[str, tuple[Callable[[], Any], Callable[[], Any]]], turns: int) -> None:
    """Print a line per case: Parquet alone, the table, and the ratio."""
    for name, both in cases.items():
        found: tuple[list[float], list[float]] = ([], [])
        answers = []
        for turn in range(turns + 1):  # the first turn warms up and is not counted
            for number, run in enumerate(both):
                begin = time.perf_counter()
                answers.append(run())
                if turn:
                    found[number].append(time.perf_counter() - begin)
        assert len(set(answers)) == 1, (name, answers)
        alone, whole = map(statistics.median, found)
        print(f"{name:32}{alone:>9.2f} s{whole:>9.2f} s{alone / whole:>9.2f}", flush=True)


def cases_of(
    alone: "DataFrame", history: "DataFrame", whole: "DataFrame", ledger: int
) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Return queries of the files, by Spark alone and through the table."""

    def asked(frame: "DataFrame", expression: str, where: str = "true") -> Callable[[], Any]:
        return lambda: frame.where(where).selectExpr(expression).collect()[0][0]

    one = f"__ledgerId = {ledger}"
    return {
        "history, count": (asked(alone, "count(*)"), asked(history, "count(*)")),
        "history, one column": (asked(alone, "max(__entryId)"), asked(history, "max(__entryId)")),
        "history, one ledger, value": (
            asked(alone, "sum(length(value))", one),
            asked(history, "sum(length(value))", one),
        ),
        "history, value": (asked(alone, "sum(length(value))"), asked(history, "sum(length(value))")),
        "with tail, one ledger, value": (
            asked(alone, "sum(length(value))", one),
            asked(whole, "sum(length(value))", one),
        ),
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=1024, help="bytes of a payload")
    parser.add_argument("--ledgers", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
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
            (history,) = OffloadManifest(folder_of(directory, topic)).histories.values()
            files = [f"file://{folder_of(directory, topic) / each.file}" for each in history.ledgers]
            spark = session(arguments.workers)
            alone = spark.read.parquet(*files)
            past = table(spark, topic, directory, tail=False, columns="all")
            urls: dict[str, Any] = {"service.url": box.service_url, "admin.url": box.admin_url}
            whole = table(spark, topic, directory, columns="all", **urls)
            print(f"{'':32}{'Parquet':>11}{'table()':>11}{'x':>9}")
            measure(cases_of(alone, past, whole, history.ledgers[3].ledger), arguments.turns)
            spark.stop()


if __name__ == "__main__":
    main()
