"""Reading of one partition in a worker: segments to record batches. Pickled by the driver."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pulsarbox.client.errors import passes
from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.decode.message_columns import Messages
from pulsarbox.spark.decode.record_batches import RecordBatches
from pulsarbox.spark.source.partition_plan import Partition
from pulsarbox.spark.topic_segments import Reach
from pulsarbox.spark.worker_gc import settle

_PAUSE_SECONDS: Final = 0.5
_SELDOM: Final = 100_000
"""Garbage collection threshold, in objects, while reading."""


class PartitionPart(InputPartition):
    """Input of one task."""

    def __init__(self, segments: Partition) -> None:
        self.value = segments


class PartReading:
    """Pickled description of how to read partitions."""

    def __init__(self, tables: RecordBatches, reach: Reach) -> None:
        self._tables = tables
        self.reach = reach

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition. Raises DataLost, MalformedError, Unreadable, and the broker's errors."""
        try:
            with _collecting_seldom():
                for some in _patiently(part.value or (), self._tables, self.reach):
                    yield self._tables.batch(some)
        finally:
            self._tables.close()
            settle()


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Raise the collector's threshold: rows have no cycles, but their number would trigger it constantly."""
    before = gc.get_threshold()
    gc.set_threshold(_SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _patiently(segments: Partition, tables: RecordBatches, reach: Reach) -> Iterator[Messages]:
    """Yield the messages of some segments, retrying while the broker is unavailable and nothing was yielded."""
    deadline = time.monotonic() + reach.seconds
    while True:
        try:
            mixed = tables.mixes({segment.topic for segment in segments})
            found = messages(segments, tables.wanted, reach, mixed=mixed)
            first = next(found, None)
        except PulsarBoxError as error:
            if not passes(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
            continue
        if first is not None:
            yield first
            yield from found
        return
