"""Benchmark of the connector's part of a micro-batch, by Spark call, without a JVM.

``make bench-spark`` runs it before those with Spark. One process makes the calls that Spark makes in five, in the same
order: offsets, the sink's plan, reading, staging, the commit. After some calls it runs the garbage collection that
Spark runs after each task of a reused worker. One message per micro-batch, from topic to topic, with a subscription,
exactly once. Requests are those to the Admin API.
"""

import argparse
import collections
import contextlib
import gc
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pulsar
from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarbox.client.transport.web import Web
from pulsarbox.spark.sink.data_sink import StreamWriter
from pulsarbox.spark.sink.write_job import Attempt
from pulsarbox.spark.source.data_source import PulsarboxSource
from pulsarbox.spark.worker_gc import REUSED
from tests.tools.box import BoxProcess

VALUE: Final = StructType([StructField("value", BinaryType())])
_once: Final = Web._once


class Clock:
    """Elapsed and CPU milliseconds, and requests, by step."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = collections.defaultdict(list)
        self.used: dict[str, list[float]] = collections.defaultdict(list)
        self.asked: collections.Counter[str] = collections.Counter()
        self._step = ""

        def counting(web: Web, *args: Any) -> Any:
            self.asked[self._step] += 1
            return _once(web, *args)

        Web._once = counting  # type: ignore[assignment, method-assign]

    @contextlib.contextmanager
    def step(self, name: str, cycles: bool = True) -> Iterator[None]:
        """Measure one step, and the garbage collection after it."""
        self._step = name
        with self._clocked(name):
            yield
        if cycles:
            with self._clocked(f"{name}: cycles"):
                gc.collect()

    @contextlib.contextmanager
    def _clocked(self, name: str) -> Iterator[None]:
        began, used = time.perf_counter(), time.process_time()
        yield
        self.took[name].append(1000 * (time.perf_counter() - began))
        self.used[name].append(1000 * (time.process_time() - used))

    def rows(self) -> dict[str, dict[str, float]]:
        """Return the median of each step, with the first micro-batch apart."""
        return {
            name: {
                "first, ms": round(took[0], 1),
                "p50, ms": round(statistics.median(took[1:]), 1),
                "processor, ms": round(statistics.median(self.used[name][1:]), 1),
                "requests": round(self.asked[name] / len(took), 2),
            }
            for name, took in self.took.items()
        }


def run(box: BoxProcess, clock: Clock, epochs: int) -> None:
    """Run ``epochs`` micro-batches."""
    urls = {"service.url": box.url, "admin.url": box.web_url}
    client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer("in")
    options = {**urls, "topic": "in", "startingOffsets": "earliest", "subscription": "bench"}
    reader: Any = PulsarboxSource(options).streamReader(VALUE)
    at, limit = reader.initialOffset(), reader.getDefaultReadLimit()
    for epoch in range(epochs):
        producer.send(b"x" * 100)
        with clock.step("latestOffset, reportLatestOffset", cycles=False):
            end = json.loads(json.dumps(reader.latestOffset(at, limit)))
            reader.reportLatestOffset()
        with clock.step("commit of the source", cycles=False):
            reader.commit(at)
        with clock.step("partitions", cycles=False):
            parts = reader.partitions(at, end)
        with clock.step("plan of the sink"):
            sinking = _writer(urls)._sinking
        with clock.step("read"):
            batches = [batch for part in parts for batch in reader.read(part)]
        with clock.step("stage"):
            part = sinking.write(Attempt(sinking.sink_of_query("q", "r"), epoch, 0), batches)
        with clock.step("commit of the sink"):
            _writer(urls)._sinking.commit([part])
        at = end
    reader.stop()
    client.close()


def _writer(urls: dict[str, str]) -> StreamWriter:
    return PulsarboxSource({**urls, "topic": "out"}).streamWriter(VALUE, False)


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=100, help="micro-batches")
    arguments = parser.parse_args()
    os.environ[REUSED] = "1"
    clock = Clock()
    with tempfile.TemporaryDirectory() as name:
        box = BoxProcess(Path(name) / "data")
        box.start()
        try:
            run(box, clock, arguments.epochs)
        finally:
            box.kill()
    found = clock.rows()
    whole = {
        what: round(sum(row[what] for row in found.values()), 1) for what in ("p50, ms", "processor, ms", "requests")
    }
    print(json.dumps({"load": os.getloadavg()[0], "steps": found, "all": whole}, indent=1))


if __name__ == "__main__":
    main()
