"""Benchmark of Spark reading topics, relative to its own Parquet scan of the same rows, alternately in one run.

Frames are as real clients sent them, interleaved over many topics; checksums are verified. Every query reads all
columns by adding up their lengths. The upper bound for any source in Python is measured too, with prepared record
batches of given numbers of rows (``floor``). Besides elapsed time, the CPU time of Spark and its workers is shown:
compare that on a busy machine. ``python -m benchmarks.spark --messages 1000000``, or ``--gib 10`` for the memory use of
a large backlog; a table on stdout.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psutil

from benchmarks import floor
from benchmarks.reading import FIELDS, Case, publish
from pulsarbox import PulsarBox
from pulsarbox.spark import accelerator
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.topic_segments import Reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

METADATA_READ: Final = (
    "sum(length(__key)) + sum(length(__topic)) + sum(length(__messageId)) "
    "+ count(__publishTime) + count(__eventTime) + sum(size(__messageProperties))"
)
BYTES_READ: Final = "sum(length(value))"
ORDER_READ: Final = "sum(id) + sum(length(customer)) + sum(amount) + sum(quantity) + sum(int(paid)) + sum(length(note))"
ORDER: Final = "id bigint, customer string, amount double, quantity int, paid boolean, note string"


def hash_of(values: str) -> tuple[str, str]:
    """Return the expressions that are equal for the same rows in any order."""
    columns = "value" if values == "bytes" else ", ".join(FIELDS)
    own = "__key, __topic, __messageId, __publishTime, __eventTime, to_json(__messageProperties)"
    return "count(*)", f"sum(cast(xxhash64({columns}, {own}) as decimal(38, 0)))"


def session(workers: int) -> "SparkSession":
    """Return a local session with ``workers`` concurrent tasks, on a default JVM."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(f"local[{workers}]").appName("pulsarbox bench")
    settings = {"ui.enabled": "false", "sql.shuffle.partitions": "2", "driver.memory": "2g", "log.level": "ERROR"}
    if reader := accelerator.jar():
        settings["jars"] = str(reader)
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    return builder.getOrCreate()


class Taken(NamedTuple):
    """Cost of a query."""

    seconds: float
    processor: float
    """CPU seconds of this process's children: Spark, its planner and its workers."""
    of_python: float
    """The part of it outside the JVM."""


def taken_by(frame: "Callable[[], DataFrame]", expression: str) -> Taken:
    """Return the cost of a query that reads the columns in the expression, including planning."""
    begin, busy = time.perf_counter(), processor_seconds()
    frame().selectExpr(expression).collect()
    seconds, after = time.perf_counter() - begin, processor_seconds()
    return Taken(seconds, *(now - before for now, before in zip(after, busy, strict=True)))


def processor_seconds() -> tuple[float, float]:
    """Return the CPU seconds of all child processes except boxes, and the part outside JVMs."""
    total = of_jvm = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            if "pulsarbox.embed.child" not in child.cmdline():
                times = child.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
                of_jvm += times.user + times.system if child.name() == "java" else 0
        except psutil.Error:
            continue
    return total, total - of_jvm


def memory_mb(process: psutil.Process) -> float:
    """Return the unique memory of a process."""
    return float(process.memory_full_info().uss) / 2**20


def workers_mb() -> list[float]:
    """Return the unique memory of each Python worker of this process's JVM."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if "pyspark.daemon" in " ".join(child.cmdline()) or "pyspark/daemon" in " ".join(child.cmdline()):
                found.append(memory_mb(child))
        except psutil.Error:
            continue
    return found


def stored(box: PulsarBox) -> int:
    """Return the number of messages in the box: on a busy machine a client may have dropped some."""
    with Service(Reach(box.service_url, box.admin_url)) as service:
        topics = service.topics("public/default")
        return sum(service.bounds(topic).total for topic in topics)


class Bench:
    """One box with messages, and the same rows in Parquet."""

    def __init__(
        self, box: PulsarBox, data: Path, parquet: Path, rows: int, case: Case, portions: Sequence[int]
    ) -> None:
        """Store the parameters; ``portions``: rows per record batch of the ``floor`` sources."""
        self._size = case.size
        self._values = case.values
        self._columns = "value binary" if case.values == "bytes" else ORDER
        self._value_read = BYTES_READ if case.values == "bytes" else ORDER_READ
        self._all_read = f"{self._value_read} + {METADATA_READ}"
        self._portions = portions
        self._box = box
        self._data = data
        self._parquet = parquet
        self._rows = rows

    def topics(self, spark: "SparkSession", access: str, columns: str = "", jvm: bool = False) -> "DataFrame":
        """Return all topics of the box. ``jvm``: read inside the JVM, which has the columns that a query uses."""
        spark.conf.set("spark.pulsarbox.jvm", str(jvm).lower())
        reader = spark.read.format("pulsarbox").option("service.url", self._box.service_url)
        reader = reader.option("admin.url", self._box.admin_url).option("access", access)
        reader = reader.option("topicsPattern", "public/default/.*")
        if access == "mmap":
            reader = reader.option("data.dir", str(self._data))
        return (reader.schema(columns) if columns else reader).load()

    def write_parquet(self, spark: "SparkSession") -> None:
        """Write the same rows, uncompressed."""
        self.topics(spark, "mmap").write.option("compression", "none").parquet(str(self._parquet))

    def floor(self, spark: "SparkSession", tasks: int, rows: int, columns: str = "") -> "DataFrame":
        """Return as many rows from the ``floor`` source, in batches of ``rows``."""
        reader = spark.read.format(floor.NAME).option("rows", self._rows).option("tasks", tasks)
        reader = reader.option("batch", rows).option("size", self._size)
        return (reader.schema(columns) if columns else reader).load()

    def cases(self, spark: "SparkSession") -> dict[str, Callable[[], Taken]]:
        """Return the cases to measure alternately, the reference first."""
        spark.dataSource.register(floor.FloorSource)
        tasks, first = self.topics(spark, "mmap").rdd.getNumPartitions(), self._portions[0]
        floors = {
            f"floor ({rows}), all columns": partial(
                taken_by, partial(self.floor, spark, tasks, rows), f"{BYTES_READ} + {METADATA_READ}"
            )
            for rows in self._portions
        }
        found: dict[str, Callable[[], Taken]] = {
            **floors,
            f"floor ({first}), value": lambda: taken_by(
                lambda: self.floor(spark, tasks, first, "value binary"), BYTES_READ
            ),
            "Parquet, all columns": lambda: taken_by(lambda: spark.read.parquet(str(self._parquet)), self._all_read),
            "in place, all columns": lambda: taken_by(lambda: self.topics(spark, "mmap"), self._all_read),
            "wire, all columns": lambda: taken_by(lambda: self.topics(spark, "wire"), self._all_read),
            "Parquet, value": lambda: taken_by(lambda: spark.read.parquet(str(self._parquet)), self._value_read),
            "in place, value": lambda: taken_by(lambda: self.topics(spark, "mmap", self._columns), self._value_read),
        }
        return found | (self._in_the_jvm(spark) if accelerator.jar() else {})

    def _in_the_jvm(self, spark: "SparkSession") -> dict[str, Callable[[], Taken]]:
        return {
            "JVM, all columns": lambda: taken_by(lambda: self.topics(spark, "mmap", jvm=True), self._all_read),
            "JVM, value": lambda: taken_by(lambda: self.topics(spark, "mmap", jvm=True), self._value_read),
        }

    def compare(self, spark: "SparkSession") -> None:
        """Raise AssertionError unless all ways to read return the same rows."""
        expected = spark.read.parquet(str(self._parquet)).selectExpr(*hash_of(self._values)).collect()
        for jvm in (False, True):
            assert self.topics(spark, "mmap", jvm=jvm).selectExpr(*hash_of(self._values)).collect() == expected, jvm

    def measure(self, workers: int, turns: int, warm_up: int, is_first: bool, only: str) -> None:
        """Measure and print a line per case. Raises AssertionError if rows are missing.

        ``warm_up``: turns before those that count, for the compilers of the JVM."""
        spark = session(workers)
        if is_first:
            self.write_parquet(spark)
        for access in ("mmap", "wire") if not only else ("mmap",):
            assert self.topics(spark, access, "__ledgerId bigint").count() == self._rows, access
        assert spark.read.parquet(str(self._parquet)).count() == self._rows
        self.compare(spark)
        kept = ("Parquet", "floor") if self._values == "bytes" else ("Parquet",)
        cases = {name: run for name, run in self.cases(spark).items() if only in name or name.startswith(kept)}
        found: dict[str, list[Taken]] = {name: [] for name in cases}
        for turn in range(warm_up + turns):
            for name, run in cases.items():
                taken = run()
                if turn >= warm_up:
                    found[name].append(taken)
        for name in cases:
            self._print(workers, name, found)
        box, workers_now = memory_mb(psutil.Process(self._box.pid)), workers_mb()
        print(
            f"{workers} workers: the box has {box:.0f} MB, a Python worker {max(workers_now, default=0):.0f} MB at most"
        )
        spark.stop()

    def _print(self, workers: int, name: str, found: dict[str, list[Taken]]) -> None:
        seconds, processor, of_python = _middle(found[name])
        yardstick = _middle(found["Parquet, value" if name.endswith("value") else "Parquet, all columns"])
        every = [each.seconds for each in found[name]]
        spread = f"{min(every):.2f}-{max(every):.2f}"
        line = f"{workers:>7} {name:24}{seconds:>8.2f} s  {spread:>12}{self._rows / seconds:>12.0f}"
        line += f"{yardstick.seconds / seconds:>8.2f}{processor / self._rows * 1e6:>12.2f} us"
        line += f"{yardstick.processor / processor:>8.2f}{of_python / self._rows * 1e6:>12.2f} us"
        print(line, flush=True)


def _middle(found: Sequence[Taken]) -> Taken:
    return Taken(*(statistics.median(each) for each in zip(*found, strict=True)))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--gib", type=float, help="payloads of so many GiB, in place of a number of messages")
    parser.add_argument("--only", default="", help="of what is not Parquet, only cases with these words in their name")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a payload")
    parser.add_argument("--batch", type=int, default=1, help="messages of an entry")
    parser.add_argument("--values", choices=("bytes", "json", "avro"), default="bytes", help="payloads, or orders")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument(
        "--floor", type=int, nargs="+", default=[512], help="rows of the batches of a source that has them ready"
    )
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--warm-up", type=int, default=2, help="turns before those that count")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 1])
    arguments = parser.parse_args(words)
    if arguments.gib is not None:
        arguments.messages = int(arguments.gib * 2**30 / arguments.size)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        # without subscriptions, inactive topics and unretained messages would be deleted
        keep: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
        with PulsarBox(data_dir=data, process=True, brokerDeleteInactiveTopicsEnabled=False, **keep) as box:
            print(f"publishing {arguments.messages} messages", file=sys.stderr)
            case = Case("", arguments.size, arguments.batch, arguments.values)
            publish(box, case, arguments.messages, arguments.topics)
            rows = stored(box)
            print(f"{rows} messages of {arguments.size} bytes over {arguments.topics} topics, {os.cpu_count()} cores")
            head = f"{'workers':>7} {'':24}{'median':>10}  {'range':>12}{'rows/s':>12}{'x':>8}"
            print(f"{head}{'processor':>15}{'x':>8}{'of Python':>15}")
            bench = Bench(box, data, Path(folder) / "parquet", rows, case, arguments.floor)
            for number, workers in enumerate(arguments.workers):
                bench.measure(workers, arguments.turns, arguments.warm_up, is_first=not number, only=arguments.only)


if __name__ == "__main__":
    main()
