"""How fast Spark writes to a box, and how soon what is published is read, processed and published again.

``make bench-spark`` runs it behind benchmarks/spark.py. It writes frames of 1 KB and of 100 bytes, exactly once and at
least once, beside Spark's own no-op sink on the same frame: figures of one run are ratios of each other; and frames
with a key of its own in each row. Then messages that carry their time go through a stream of both formats, exactly
once, with the settings that docs/spark.md recommends, when all of Spark's processes have started. One session, two
tasks at a time, a box on the disk; everything on this machine.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pulsar

from tests.tools.box import Box, admin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WARM_UP: Final = 5
"""Messages that are not counted, each waited for before the next: their micro-batches start Spark's processes."""

KEYED: Final = 4
"""Of the frame with a key in each row, so many times fewer rows are written: each is a batch."""


def session(folder: Path) -> "SparkSession":
    """Spark as a user has it on one machine."""
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    from pyspark.sql import SparkSession

    manager = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    made = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    made = made.config("spark.sql.streaming.checkpointFileManagerClass", manager)
    made = made.config("spark.python.daemon.module", "pulsarbox.spark.worker_forking")
    found: SparkSession = made.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


@contextmanager
def stage() -> "Iterator[tuple[Path, Box, SparkSession]]":
    """A folder, a box on the disk in it whose topics keep everything, and Spark beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        box = Box(folder / "data")
        box.start()
        spark = session(folder)
        try:
            keep = json.dumps({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
            admin(box.web_url, "POST", "namespaces/public/default/retention", keep)
            yield folder, box, spark
        finally:
            spark.stop()
            box.kill()


def seconds_of(frame: "DataFrame", box: Box, **options: str) -> float:
    """How long a write takes."""
    writer = frame.write.mode("append").format("pulsarbox")
    for name, value in {"service.url": box.url, "admin.url": box.web_url, **options}.items():
        writer = writer.option(name, value)
    begin = time.perf_counter()
    writer.save()
    return time.perf_counter() - begin


def rates(spark: "SparkSession", box: Box, folder: Path, size: int, rows: int) -> dict[str, float]:
    """Rows a second of each way to write the same frame, the no-op sink's among them."""
    path = str(folder / f"rows-{size}")
    text = f"cast(rpad(cast(id as string), {size}, 'x') as binary) as value"
    spark.range(0, rows, 1, 2).selectExpr(text).write.parquet(path)
    frame = spark.read.parquet(path)
    keyed = spark.range(0, rows // KEYED, 1, 2).selectExpr(text, "cast(id as string) as __key")
    found: dict[str, float] = {}
    for name, (written, options) in {
        "noop": (frame, {}),
        "exactly-once": (frame, {"delivery": "exactly-once"}),
        "at-least-once": (frame, {"delivery": "at-least-once"}),
        "noop again": (frame, {}),
        "a key in each row": (keyed, {"batching": "key"}),
        "a key in each row, batching=mixed": (keyed, {"batching": "mixed"}),
    }.items():
        count = rows if written is frame else rows // KEYED
        if not options:
            begin = time.perf_counter()
            written.write.format("noop").mode("overwrite").save()
            took = time.perf_counter() - begin
        else:
            took = seconds_of(written, box, topic=f"rows-{size}-{len(found)}", **options)
        found[name] = count / took
    return found


class Clocked:
    """Publishes messages that carry the time, and takes them where they come out."""

    def __init__(self, url: str, came_in: str, went_out: str) -> None:
        self._client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        self._producer = self._client.create_producer(came_in)
        self._reader = self._client.create_reader(went_out, pulsar.MessageId.earliest)
        self.delays: list[float] = []

    def warm(self) -> float:
        """Have all processes started; the seconds that the first message took."""
        for _ in range(WARM_UP):
            self._publish(1, 0)
            self._take()
        first, self.delays = self.delays[0], []
        return first

    def run(self, count: int, every: float) -> None:
        """``count`` messages, one ``every`` seconds, and until all have come out."""
        thread = threading.Thread(target=self._publish, args=(count, every))
        thread.start()
        for _ in range(count):
            self._take()
        thread.join()
        self._client.close()

    def _take(self) -> None:
        message = self._reader.read_next(timeout_millis=120_000)
        self.delays.append(time.time() - float(message.data()))

    def _publish(self, count: int, every: float) -> None:
        for _ in range(count):
            self._producer.send(str(time.time()).encode())
            time.sleep(every)


def latency(spark: "SparkSession", box: Box, folder: Path, count: int) -> dict[str, Any]:
    """How long it takes from publishing to having the message at the other end of a stream, published once more, and
    where Spark says the time of a micro-batch goes."""
    clocked = Clocked(box.url, "in", "out")
    urls = {"service.url": box.url, "admin.url": box.web_url}
    reading = spark.readStream.format("pulsarbox").option("topic", "in").option("startingOffsets", "earliest")
    frame = reading.options(**urls).load().select("value")
    writing = frame.writeStream.format("pulsarbox").options(**urls).option("topic", "out")
    query = writing.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        first = clocked.warm()
        clocked.run(count, 0.02)
        steps = [each["durationMs"] for each in query.recentProgress if each["numInputRows"]][WARM_UP:]
    finally:
        query.stop()
    delays = sorted(clocked.delays)
    names = sorted({name for each in steps for name in each})
    return {
        "p50": round(1000 * statistics.median(delays)),
        "p95": round(1000 * delays[int(len(delays) * 0.95)]),
        "messages": len(delays),
        "the first, with Spark's processes to start": round(1000 * first),
        "a micro-batch": {name: round(statistics.median(each.get(name, 0) for each in steps)) for name in names},
    }


def main() -> None:
    """Measure, and say it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="of 1 KB; five times as many of 100 bytes; 0: none")
    parser.add_argument("--messages", type=int, default=1000, help="for the latency")
    arguments = parser.parse_args()
    with stage() as (folder, box, spark):
        found: dict[str, Any] = {"load before": os.getloadavg()[0]}
        if arguments.rows:
            rates(spark, box, folder / "warm", 1024, 10_000)
        for size, rows in ((1024, arguments.rows), (100, 5 * arguments.rows)) if arguments.rows else ():
            found[f"rows/s of {size} B"] = {
                each: round(rate) for each, rate in rates(spark, box, folder, size, rows).items()
            }
        found["source to sink, ms"] = latency(spark, box, folder, arguments.messages)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
