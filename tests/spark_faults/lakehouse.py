"""Campaign for tables: kills workers and drivers while a stream writes, and counts the files with pyarrow.

``python -m tests.spark_faults.lakehouse --kills 25`` strikes the named points of the sink in turn, each in a separate
epoch. Every death of the driver restarts it with another number of partitions. The count reads the files of the last
snapshot with pyarrow, and the number of snapshots of each epoch.

With ``--delta``, a pipeline writes a topic to a Delta table instead, with Delta's jar and the Spark that it was built
for. The count reads the table's log and the files that it has, without Delta.
"""

import argparse
import collections
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pulsarbox.spark.lakehouse.catalogs import opened
from pulsarbox.spark.lakehouse.epoch_commit import EPOCH as COMMITTED
from pulsarbox.spark.lakehouse.iceberg_sink import IcebergSource, IcebergStreamWriter, _prepared
from pulsarbox.spark.lakehouse.sink_options import parse_options
from pulsarbox.spark.sink.data_sink import EPOCH
from tests.spark_faults.faulty import _committing, _writing
from tests.spark_faults.job import CONF
from tests.spark_faults.pipelines import PipelineCase, client_of
from tests.spark_faults.run import Case, Count, FaultsError, Keeper, Outcome, say

POINTS: Final = (
    "jvm commit-during",
    "worker task-during",
    "jvm commit-after",
    "worker task-after",
    "jvm task-during",
    "worker task-before",
    "jvm commit-before",
    "fail task-after",
    "jvm task-after",
)
SHORT: Final = POINTS[:3]
DELTA_POINTS: Final = (
    "jvm log-written",
    "worker task-during",
    "jvm commit-after",
    "jvm file-opened",
    "worker task-after",
    "jvm task-during",
    "worker task-before",
    "jvm commit-before",
    "fail task-after",
    "jvm task-after",
)
DELTA_SPARK: Final = "4.2."
DELTA_CONF: Final = {
    "spark.jars.packages": "io.delta:delta-spark_2.13:4.4.0",
    "spark.jars.excludes": "org.xerial.snappy:snappy-java",  # in Spark's own jars
}
NAME: Final = "shop.orders"
ROWS_OF_EPOCH: Final = 200


class FaultyIceberg(IcebergStreamWriter):
    """The streaming writer, with faults."""

    def write(self, iterator: "Iterator[Any]") -> Any:
        context = TaskContext.get()
        assert context is not None
        return _writing(int(context.getLocalProperty(EPOCH) or -1), super().write, iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803 - Spark's name
        _committing(batchId, lambda: IcebergStreamWriter.commit(self, messages, batchId))


class FaultyIcebergSource(IcebergSource):
    """The format, with the faulty writer."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyIceberg:  # noqa: N802 - Spark's name
        return FaultyIceberg(*_prepared(self.options, schema, overwrite, is_stream=True))


def place(folder: Path) -> str:
    """Return the table of a case."""
    return str(folder / "lake" / NAME)


def drive(plan: dict[str, Any]) -> None:
    """Write all files of a folder to the table."""
    folder, partitions = Path(plan["folder"]), plan["partitions"]
    builder = SparkSession.builder.master(plan["master"]).appName("lakehouse-faults")
    for name, value in (CONF | plan["conf"]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    pid = folder / "jvm.pid"
    pid.with_suffix(".new").write_text(str(gateway.proc.pid))
    pid.with_suffix(".new").replace(pid)
    spark.dataSource.register(FaultyIcebergSource)
    rows = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    rows = rows.repartition(partitions).selectExpr("CAST(value AS INT) AS n", "CAST(value AS INT) % 3 AS part")
    writer = rows.writeStream.format("pulsarbox-iceberg").option("table", place(folder)).option("partitionBy", "part")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


def counted(folder: Path, rows: int) -> Count:
    """Count the rows in the files of the last snapshot, and the snapshots of each epoch."""
    found: collections.Counter[int] = collections.Counter()
    strange = []
    with opened(parse_options({"table": place(folder)})) as catalog:
        table = catalog.load_table(NAME)
        paths = [urlsplit(each).path for each in table.inspect.files()["file_path"].to_pylist()]
        epochs = collections.Counter(each.summary[COMMITTED] for each in table.snapshots() if each.summary)
    for path in paths:
        found.update(pq.ParquetFile(path).read(columns=["n"])["n"].to_pylist())
    strange += [f"epoch {epoch} has {times} snapshots" for epoch, times in epochs.items() if times > 1]
    left = sum(1 for _ in (folder / "lake").rglob("*.parquet")) - len(paths)
    strange += [f"{left} files are left that no snapshot has"] if left else []
    strange += [str(row) for row in found if row not in range(rows)]
    return Count(
        [row for row in range(rows) if not found[row]], [row for row in range(rows) if found[row] > 1], strange
    )


def table(root: Path, keeper: Keeper, points: Sequence[str]) -> Outcome:
    """Strike each point in a separate epoch."""
    epochs = len(points) + 2
    case = Case("iceberg", root, keeper, epochs * ROWS_OF_EPOCH, epochs)
    case.more = {"module": "tests.spark_faults.lakehouse"}
    for epoch, point in enumerate(points, 1):
        case.plan(epoch, point)
    case.until_written(itertools.cycle([3, 2, 4, 1]))
    left = [each.read_text() for each in (case.folder / "faults").iterdir() if each.suffix != ".struck"]
    if left:
        raise FaultsError(f"points that were never reached: {', '.join(left)}")
    return case.ended(counted(case.folder, case.rows))


def delta_table(root: Path, keeper: Keeper, points: Sequence[str]) -> Outcome:
    """Strike each point in a separate epoch of a pipeline that writes a topic to a Delta table."""
    case = PipelineCase("delta", root, keeper, "delta", tuple(points))
    case.conf = dict(DELTA_CONF)
    client = client_of(case)
    producer = client.create_producer(case.topic)
    for number in range(case.rows):
        producer.send(b"%d" % number)
    client.close()
    case.run()
    return case.ended(counted_in_log(case.folder / "table", case.rows))


def counted_in_log(table: Path, rows: int) -> Count:
    """Count the rows in the files of a Delta table's last version, and the transactions of each epoch."""
    files: set[str] = set()
    epochs: collections.Counter[int] = collections.Counter()
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, entry.read_text().splitlines()):
            if "add" in action:
                files.add(unquote(action["add"]["path"]))
            elif "remove" in action:
                files.discard(unquote(action["remove"]["path"]))
            elif "txn" in action:
                epochs[action["txn"]["version"]] += 1
    found: collections.Counter[int] = collections.Counter()
    for file in files:
        found.update(pq.ParquetFile(table / file).read(columns=["n"])["n"].to_pylist())
    left = sum(1 for _ in table.glob("part=*/*.parquet")) - len(files)
    say(f"delta: {len(epochs)} epochs in {len(files)} files; {left} files of killed tasks are not in the log")
    strange = [f"epoch {epoch} has {times} transactions" for epoch, times in epochs.items() if times > 1]
    strange += [str(row) for row in found if row not in range(rows)]
    return Count(
        [row for row in range(rows) if not found[row]], [row for row in range(rows) if found[row] > 1], strange
    )


def main() -> int:
    """Drive a case if a plan is given, else run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, nargs="?")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--delta", action="store_true", help="a Delta table; requires Spark 4.2")
    arguments = parser.parse_args()
    if arguments.plan is not None:
        drive(json.loads(arguments.plan.read_text()))
        return 0
    with tempfile.TemporaryDirectory() as folder, Keeper(Path(folder)) as keeper:
        run, named = (delta_table, DELTA_POINTS) if arguments.delta else (table, POINTS)
        outcome = run(Path(folder), keeper, list(itertools.islice(itertools.cycle(named), arguments.kills)))
    say(f"{len(outcome.points)} points, {outcome.drivers} drivers, {outcome.rows} rows in {outcome.seconds:.0f} s")
    count = outcome.count
    print(f"missing {len(count.missing)}, duplicated {len(count.doubled)}, {count.strange or 'nothing unexpected'}")
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
