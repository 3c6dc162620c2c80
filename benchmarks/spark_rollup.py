"""Benchmark of ``pulsarbox pipeline rollup``: throughput, and the delay of closed windows.

``make bench-spark`` runs it last. Messages of 100 bytes with keys and event times are counted into windows of a second,
exactly once into a topic, after all of Spark's processes have started. Then a live topic is rolled up; the delay of a
row is from the message that closed its window to the row's arrival. Two concurrent tasks, a box on disk; output is
JSON.
"""

import argparse
import json
import os
import statistics
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pulsar

from benchmarks.spark_sink import stage
from pulsarbox.spark.pipelines.shipped.rollup import Rollup, pipeline
from pulsarbox.spark.pipelines.shipped.rollup_windows import Rolling
from tests.tools.box import BoxProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WINDOW_MS: Final = 1000
START_MS: Final = 1_700_000_000_000
EVERY_SECONDS: Final = 0.02
WARM_UP: Final = 5
"""Rows that are not counted, during which Spark's processes start."""


def started(spark: "SparkSession", box: BoxProcess, folder: Path, topic: str, *, live: bool) -> "StreamingQuery":
    """Start the query of a rollup, as the runner does."""
    how = Rolling(WINDOW_MS, WINDOW_MS, delay=0, idle=60_000)
    options = {"startingOffsets": "earliest", "maxEntriesPerTrigger": "500000"}
    asked = Rollup(topic, f"{topic}-rolled", how, folder / topic, options=options)
    (step,) = pipeline(asked).steps
    urls = {"service.url": box.url, "admin.url": box.web_url}
    rows = spark.readStream.format("pulsarbox").options(**urls, **dict(step.options)).option("topics", topic).load()
    writer = step.code(rows).writeStream.format("pulsarbox").options(**urls, **dict(step.sink))
    writer = writer.option("topic", f"{topic}-rolled").option("checkpointLocation", str(folder / topic / "checkpoint"))
    writer = writer.trigger(processingTime="0 seconds") if live else writer.trigger(availableNow=True)
    query: StreamingQuery = writer.start()
    return query


def filled(client: pulsar.Client, topic: str, messages: int) -> None:
    """Fill a topic with messages, 10,000 per window, over 1,000 keys in turn."""
    producer = client.create_producer(topic, batching_enabled=True, block_if_queue_full=True)
    for number in range(messages):
        time_ms = START_MS + number * WINDOW_MS // 10_000
        producer.send_async(b"x" * 100, None, partition_key=f"k{number % 1000}", event_timestamp=time_ms)
    producer.flush()
    producer.close()


def throughput(
    spark: "SparkSession", box: BoxProcess, folder: Path, client: pulsar.Client, messages: int
) -> dict[str, Any]:
    """Return the messages per second of a warmed-up query."""
    filled(client, "warm", 20_000)
    started(spark, box, folder, "warm", live=False).awaitTermination()
    filled(client, "many", messages)
    query = started(spark, box, folder, "many", live=False)
    query.awaitTermination()
    rows = sum(each["numInputRows"] for each in query.recentProgress)
    seconds = sum(each["durationMs"]["triggerExecution"] for each in query.recentProgress) / 1000
    return {"messages": rows, "seconds": round(seconds, 2), "messages/s": round(rows / seconds)}


def latency(
    spark: "SparkSession", box: BoxProcess, folder: Path, client: pulsar.Client, windows: int
) -> dict[str, Any]:
    """Return the delays from the message that closes a window to its row, in milliseconds."""
    ended: dict[int, float] = {}
    over = threading.Event()
    producer = client.create_producer("live")

    def publish() -> None:
        newest = 0
        while not over.is_set():
            now = time.time()
            if int(now * 1000) // WINDOW_MS > newest:
                newest = int(now * 1000) // WINDOW_MS
                ended[newest * WINDOW_MS] = now
            producer.send(b"x", event_timestamp=int(now * 1000))
            time.sleep(EVERY_SECONDS)

    thread = threading.Thread(target=publish)
    thread.start()
    reader = client.create_reader("live-rolled", pulsar.MessageId.earliest)
    query = started(spark, box, folder, "live", live=True)
    delays = []
    try:
        for _ in range(WARM_UP + windows):
            row = json.loads(reader.read_next(timeout_millis=120_000).data())
            delays.append(1000 * (time.time() - ended[row["windowEnd"]]))
    finally:
        over.set()
        thread.join()
        query.stop()
    counted = sorted(delays[WARM_UP:])
    return {"p50": round(statistics.median(counted)), "max": round(counted[-1]), "windows": len(counted)}


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=500_000, help="of the throughput")
    parser.add_argument("--windows", type=int, default=30, help="of the latency, a second each")
    arguments = parser.parse_args()
    with stage() as (folder, box, spark):
        client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        try:
            found: dict[str, Any] = {"load before": os.getloadavg()[0]}
            found["rollup"] = throughput(spark, box, folder, client, arguments.messages)
            found["end of a window to its row, ms"] = latency(spark, box, folder, client, arguments.windows)
        finally:
            client.close()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
