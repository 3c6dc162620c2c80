"""How fast Spark writes to a box, and how soon what is published is read, processed and published again.

``python -m benchmarks.spark_sink`` writes frames of 1 KB and of 100 bytes, exactly once and at least once, beside
Spark's own no-op sink on the same frame: figures of one run are ratios of each other. Then messages that carry their
time go through a stream of both formats, exactly once, with the settings that docs/spark.md recommends. One session,
two tasks at a time, a box on the disk; everything on this machine.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pulsar

from tests.tools.box import Box, admin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WARM_UP: Final = 20
"""Messages that are not counted: of the first micro-batches, which start the workers."""


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
    found: SparkSession = made.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


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
    found = {}
    for name in ("noop", "exactly-once", "at-least-once", "noop again"):
        if name.startswith("noop"):
            begin = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            took = time.perf_counter() - begin
        else:
            took = seconds_of(frame, box, topic=f"rows-{size}-{name}", delivery=name)
        found[name] = rows / took
    return found


class Clocked:
    """Publishes messages that carry the time, and takes them where they come out."""

    def __init__(self, url: str, came_in: str, went_out: str) -> None:
        self._client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        self._producer = self._client.create_producer(came_in)
        self._reader = self._client.create_reader(went_out, pulsar.MessageId.earliest)
        self.delays: list[float] = []

    def run(self, count: int, every: float) -> None:
        """``count`` messages, one ``every`` seconds, and until all have come out."""
        thread = threading.Thread(target=self._publish, args=(count, every))
        thread.start()
        for _ in range(count):
            message = self._reader.read_next(timeout_millis=120_000)
            self.delays.append(time.time() - float(message.data()))
        thread.join()
        self._client.close()

    def _publish(self, count: int, every: float) -> None:
        for _ in range(count):
            self._producer.send(str(time.time()).encode())
            time.sleep(every)


def latency(spark: "SparkSession", box: Box, folder: Path, count: int) -> list[float]:
    """Seconds from publishing to having the message at the other end of a stream, published once more, sorted."""
    clocked = Clocked(box.url, "in", "out")
    urls = {"service.url": box.url, "admin.url": box.web_url}
    reading = spark.readStream.format("pulsarbox").option("topic", "in").option("startingOffsets", "earliest")
    frame = reading.options(**urls).load().select("value")
    writing = frame.writeStream.format("pulsarbox").options(**urls).option("topic", "out")
    query = writing.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        clocked.run(count, 0.02)
    finally:
        query.stop()
    return sorted(clocked.delays[WARM_UP * 10 :] or clocked.delays)


def main() -> None:
    """Measure, and say it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="of 1 KB; five times as many of 100 bytes")
    parser.add_argument("--messages", type=int, default=1000, help="for the latency")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        box = Box(folder / "data")
        box.start()
        spark = session(folder)
        try:
            keep = json.dumps({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
            admin(box.web_url, "POST", "namespaces/public/default/retention", keep)
            rates(spark, box, folder / "warm", 1024, 10_000)
            found: dict[str, Any] = {"load before": os.getloadavg()[0]}
            for size, rows in ((1024, arguments.rows), (100, 5 * arguments.rows)):
                found[f"rows/s of {size} B"] = {
                    each: round(rate) for each, rate in rates(spark, box, folder, size, rows).items()
                }
            delays = latency(spark, box, folder, arguments.messages)
            found["source to sink, ms"] = {
                "p50": round(1000 * statistics.median(delays)),
                "p95": round(1000 * delays[int(len(delays) * 0.95)]),
                "messages": len(delays),
            }
        finally:
            spark.stop()
            box.kill()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
