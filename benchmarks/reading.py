"""Benchmark of reading messages as columns, without Spark: in place and over the network.

Frames are as real clients sent them, interleaved over many topics; checksums are verified. One process reads, so the
figures are those of one core; over the network, the box uses another. ``python -m benchmarks.reading``; a table on
stdout.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pulsar
from pulsar.schema import AvroSchema, Boolean, BytesSchema, Double, Integer, JsonSchema, Long, Record, String

from pulsarbox import PulsarBox
from pulsarbox.spark.access import mapped_reader
from pulsarbox.spark.connect.broker_api import LATEST, Service
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.decode.message_columns import COLUMNS
from pulsarbox.spark.topic_segments import BEGINNING, Reach

USUAL: Final = frozenset({"payload", "key", "message_id", "publish_time", "event_time", "properties"})
"""Columns of a plain read of a DataFrame."""


class Case(NamedTuple):
    """Messages to publish."""

    name: str
    size: int
    """Payload size in bytes."""
    batch: int
    """Messages per entry; 1 for no batches."""
    values: str = "bytes"
    """``json`` and ``avro``: orders with a schema, whose note has so many bytes."""


CASES: Final = (
    Case("1 KB, single", 1024, 1),
    Case("1 KB, batches of 50", 1024, 50),
    Case("100 B, single", 100, 1),
    Case("100 B, batches of 100", 100, 100),
)


class Order(Record):  # type: ignore[misc]
    """Order of the typed cases."""

    id = Long()
    customer = String()
    amount = Double()
    quantity = Integer()
    paid = Boolean()
    note = String()


FIELDS: Final = ("id", "customer", "amount", "quantity", "paid", "note")
_SCHEMAS: Final[dict[str, Any]] = {
    "bytes": BytesSchema,
    "json": lambda: JsonSchema(Order),
    "avro": lambda: AvroSchema(Order),
}


def _body(case: Case, at: int) -> Any:
    """Return a unique value, as Parquet would deduplicate equal ones."""
    if case.values == "bytes":
        return os.urandom(case.size)
    note = os.urandom(case.size // 2).hex()
    return Order(
        id=at, customer=f"customer {at % 5000}", amount=at % 100_000 / 100, quantity=at % 9, paid=at % 2 == 0, note=note
    )


def publish(box: PulsarBox, case: Case, count: int, topics: int) -> list[str]:
    """Publish messages to the topics in turn; return their names."""
    client = pulsar.Client(box.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    names = [f"persistent://public/default/{case.size}-{case.batch}-{at}" for at in range(topics)]
    batching: dict[str, Any] = {"batching_enabled": case.batch > 1, "batching_max_publish_delay_ms": 1000}
    if case.batch > 1:
        batching["batching_max_messages"] = case.batch
    batching["schema"] = _SCHEMAS[case.values]()
    producers = [client.create_producer(name, block_if_queue_full=True, **batching) for name in names]
    sent = 0
    for at in range(count // (topics * case.batch)):
        for producer in producers:
            for _ in range(case.batch):
                body = _body(case, sent)
                sent += 1
                producer.send_async(body, lambda *_: None, partition_key=f"key-{at % 1000}", properties={"n": "1"})
    for producer in producers:
        producer.flush()
    client.close()
    return names


def rows_per_second(reach: Reach, topics: Sequence[str], wanted: frozenset[str]) -> tuple[int, float, float]:
    """Return the number of messages read, and the rates per second and per CPU second.

    The latter is the rate on an otherwise idle core.
    """
    with Service(reach) as service:
        segments = [each for topic in topics for each in service.segments(topic, BEGINNING, LATEST)]
    rows, begin, busy = 0, time.perf_counter(), time.process_time()
    for some in messages(segments, wanted, reach, mixed=True):  # as a Spark worker reads topics of one schema
        rows += some.rows
    return rows, rows / (time.perf_counter() - begin), rows / (time.process_time() - busy)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000, help="of each case")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--cases", type=int, nargs="+", default=list(range(len(CASES))), help="numbers from 0 on")
    arguments = parser.parse_args(words)
    print(f"{'':24}{'access':8}{'columns':>9}{'rows':>10}{'rows/s':>11}{'a CPU s':>11}")
    for number in arguments.cases:
        case = CASES[number]
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            with PulsarBox(data_dir=data, process=True) as box:
                print(f"{case.name}: publishing", file=sys.stderr)
                topics = publish(box, case, arguments.messages, arguments.topics)
                for access in ("mmap", "mmap", "wire"):
                    for columns, wanted in (("payload", frozenset({"payload"})), ("usual", USUAL), ("all", COLUMNS)):
                        reach = Reach(box.service_url, box.admin_url, str(data), access)
                        rows, speed, alone = rows_per_second(reach, topics, wanted)
                        line = f"{case.name:24}{access:8}{columns:>9}{rows:>10}{speed:>11.0f}{alone:>11.0f}"
                        print(line, flush=True)
                mapped_reader.close_all()


if __name__ == "__main__":
    main()
