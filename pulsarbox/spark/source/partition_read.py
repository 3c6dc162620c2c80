"""What a worker does: segments to record batches. It travels from the driver to workers."""

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
from pulsarbox.spark.decode.record_batches import Tables
from pulsarbox.spark.source.partition_plan import Partition
from pulsarbox.spark.topic_segments import Reach
from pulsarbox.spark.worker_gc import settle

_PAUSE_SECONDS: Final = 0.5
_SELDOM: Final = 100_000
"""Objects that there are more of before cycles are looked for."""


class Part(InputPartition):
    """What one task reads."""

    def __init__(self, segments: Partition) -> None:
        self.value = segments


class Reading:
    """How parts are read."""

    def __init__(self, tables: Tables, reach: Reach) -> None:
        self._tables = tables
        self.reach = reach

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part. Raises DataLost, MalformedError, Unreadable, and what the broker tells."""
        try:
            with _collecting_seldom():
                for some in _patiently(part.value or (), self._tables, self.reach):
                    yield self._tables.batch(some)
        finally:
            self._tables.close()
            settle()


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Rows have no cycles, but there are so many that the collector would look at them all the time."""
    before = gc.get_threshold()
    gc.set_threshold(_SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _patiently(segments: Partition, tables: Tables, reach: Reach) -> Iterator[Messages]:
    """The messages of some segments; a broker that is just not there is waited for, while nothing was given away."""
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
