"""Benchmark of `pulsarbox sql`: a first query over offloaded and live messages, against the same query in Spark.

Each turn is a new process, from its start to its answer. ``python -m benchmarks.sql --messages 200000``; a table on
stdout, with the processor time of the command. Spark needs Java; ``--without-spark`` leaves it out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pulsar

from pulsarbox import PulsarBox
from pulsarbox.client.admin import Admin
from pulsarbox.names import parse_topic
from pulsarbox.spark.offload.offloading import Offload, OffloadRequest
from pulsarbox.spark.topic_segments import hosts_of

TOPIC: Final = "persistent://public/default/orders"
BATCH: Final = 1000
LEDGERS: Final = 10
FIELDS: Final = (("id", "long"), ("item", "string"), ("total", "double"))
QUERIES: Final = {
    "count": "SELECT count(*) FROM orders",
    "group by": "SELECT item, count(*), sum(total) FROM orders GROUP BY item ORDER BY item",
    "one key, last hour": (
        "SELECT max(id) FROM orders WHERE __key = 'key-7' AND __publishTime > now() - INTERVAL '1' HOUR"
    ),
}
_SPARK: Final = """
import sys
from benchmarks.spark import session
from pulsarbox.spark import table
url, web, directory, query = sys.argv[1:]
spark = session(2)
orders = table(spark, "orders", directory, columns="all", **{"service.url": url, "admin.url": web})
orders.createOrReplaceTempView("orders")
print(spark.sql(query).collect())
spark.stop()
"""


class Cost(NamedTuple):
    """Cost of a process."""

    seconds: float
    processor: float
    """Seconds, without child processes."""


def cost_of(command: Sequence[str]) -> Cost:
    """Run a process to its end. Raises CalledProcessError."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command))
    return Cost(time.perf_counter() - begin, used.ru_utime + used.ru_stime)


def publish(box: PulsarBox, first: int, end: int) -> None:
    """Publish JSON records in batches."""
    client = pulsar.Client(box.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        TOPIC, batching_enabled=True, batching_max_messages=BATCH, batching_max_publish_delay_ms=1000,
        block_if_queue_full=True,
    )  # fmt: skip
    for number in range(first, end):
        body = b'{"id": %d, "item": "item %d", "total": %d.5}' % (number, number % 50, number % 1000)
        producer.send_async(body, lambda *_: None, partition_key=f"key-{number % 1000}")
    producer.flush()
    client.close()


def upload_schema(box: PulsarBox) -> None:
    """Give the topic the schema of its records."""
    definition = {"type": "record", "name": "Order", "fields": [{"name": name, "type": kind} for name, kind in FIELDS]}
    with Admin(hosts_of(box.admin_url, 8080)[0], 30) as admin:
        body = {"type": "JSON", "schema": json.dumps(definition), "properties": {}}
        name = parse_topic(TOPIC)
        admin.ask("POST", f"/schemas/{name.tenant}/{name.namespace_local}/{name.local}/schema", body)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000, help="offloaded")
    parser.add_argument("--live", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--without-spark", action="store_true")
    arguments = parser.parse_args(words)
    keep: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    entries = max(1, arguments.messages // BATCH // LEDGERS)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "history"
        with PulsarBox(
            data_dir=Path(folder) / "data", process=True, managedLedgerMaxEntriesPerLedger=entries, **keep
        ) as box:
            upload_schema(box)
            print(f"publishing {arguments.messages} messages", file=sys.stderr)
            publish(box, 0, arguments.messages)
            urls: dict[str, Any] = {"service.url": box.service_url, "admin.url": box.admin_url}
            request = OffloadRequest(directory=directory, box=urls, topics=(TOPIC,), roll_ms=0)
            (done,) = Offload(request, lambda _: None).round()
            assert not done.problem and done.rows, done
            publish(box, arguments.messages, arguments.messages + arguments.live)
            print(f"{done.rows} offloaded rows, {arguments.live} live messages", flush=True)
            measure(box, directory, arguments.turns, with_spark=not arguments.without_spark)


def measure(box: PulsarBox, directory: Path, turns: int, *, with_spark: bool) -> None:
    """Print the median cost of each query."""
    heads = ("sql", "processor", "Spark") if with_spark else ("sql", "processor")
    print(" " * 20 + "".join(f"{each:>11}" for each in heads), flush=True)
    urls = [box.service_url, box.admin_url]
    for name, query in QUERIES.items():
        there = ["--url", urls[0], "--admin-url", urls[1], "--history", str(directory)]
        commands = [[sys.executable, "-m", "pulsarbox", "sql", query, *there]]
        if with_spark:
            spark_query = query.replace("__key = 'key-7'", "CAST(__key AS STRING) = 'key-7'")
            commands.append([sys.executable, "-c", _SPARK, *urls, str(directory), spark_query])
        costs = [[cost_of(command) for _ in range(turns)] for command in commands]
        times = [statistics.median(each.seconds for each in found) for found in costs]
        times.insert(1, statistics.median(each.processor for each in costs[0]))
        print(f"{name:20}" + "".join(f"{each:>9.2f} s" for each in times), flush=True)


if __name__ == "__main__":
    main()
