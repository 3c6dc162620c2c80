"""Benchmark of Spark writing to a box, and of the latency from a message through a stream to its republication.

``make bench-spark`` runs it after benchmarks/spark.py. It writes frames of 1 KB and of 100 bytes, exactly once and at
least once. Spark's own no-op sink on the same frame is the reference, so compare figures of one run as ratios. Frames
with a unique key in each row follow. Then messages that carry a timestamp pass through a stream from topic to topic,
exactly once, with the settings of docs/spark.md, after all of Spark's processes have started. One session, two
concurrent tasks, a box on disk; everything on this machine.
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

from tests.tools.box import BoxProcess, admin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WARM_UP: Final = 5
"""Messages that are not counted, sent one at a time: their micro-batches start Spark's processes."""

KEYED: Final = 4
"""Divisor of the rows of the frame with unique keys, as each row becomes a batch."""


def session(folder: Path) -> "SparkSession":
    """Return Spark as a user runs it on one machine."""
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
def stage() -> "Iterator[tuple[Path, BoxProcess, SparkSession]]":
    """Provide a directory, a box on it whose topics retain everything, and a Spark session."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        box = BoxProcess(folder / "data")
        box.start()
        spark = session(folder)
        try:
            keep = json.dumps({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
            admin(box.web_url, "POST", "namespaces/public/default/retention", keep)
            yield folder, box, spark
        finally:
            spark.stop()
            box.kill()


def seconds_of(frame: "DataFrame", box: BoxProcess, **options: str) -> float:
    """Return the duration of a write."""
    writer = frame.write.mode("append").format("pulsarbox")
    for name, value in {"service.url": box.url, "admin.url": box.web_url, **options}.items():
        writer = writer.option(name, value)
    begin = time.perf_counter()
    writer.save()
    return time.perf_counter() - begin


def rates(spark: "SparkSession", box: BoxProcess, folder: Path, size: int, rows: int) -> dict[str, float]:
    """Return the rows per second of each way to write the same frame, including the no-op sink."""
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
    """Publisher of messages with timestamps, and reader of the output topic."""

    def __init__(self, url: str, came_in: str, went_out: str) -> None:
        self._client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        self._producer = self._client.create_producer(came_in)
        self._reader = self._client.create_reader(went_out, pulsar.MessageId.earliest)
        self.delays: list[float] = []

    def warm(self) -> float:
        """Start all processes; return the latency of the first message in seconds."""
        for _ in range(WARM_UP):
            self._publish(1, 0)
            self._take()
        first, self.delays = self.delays[0], []
        return first

    def run(self, count: int, every: float) -> None:
        """Publish ``count`` messages, one ``every`` seconds, and receive them all."""
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


def latency(spark: "SparkSession", box: BoxProcess, folder: Path, count: int) -> dict[str, Any]:
    """Measure the latency from publishing a message to receiving it after a stream has republished it, and Spark's
    breakdown of a micro-batch."""
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
    """Measure, and print JSON."""
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
