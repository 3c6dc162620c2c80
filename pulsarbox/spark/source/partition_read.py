"""Reading of one partition in a worker: segments to record batches. Pickled by the driver."""

import gc
import pickle
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from struct import unpack
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pulsarbox.client.errors import passes
from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.access import behind
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.decode.message_columns import Messages
from pulsarbox.spark.decode.record_batches import RecordBatches
from pulsarbox.spark.decode.value_decoder import UnreadableValues
from pulsarbox.spark.decode.value_programs import Node
from pulsarbox.spark.source.jvm_plan import ValuePlan, jvm_plan
from pulsarbox.spark.source.partition_plan import Partition
from pulsarbox.spark.topic_segments import Reach, TopicSegment
from pulsarbox.spark.worker_gc import settle

_PAUSE_SECONDS: Final = 0.5
_SELDOM: Final = 100_000
"""Garbage collection threshold, in objects, while reading."""


class PartitionPart(InputPartition):
    """Input of one task."""

    def __init__(self, segments: Partition, plan: bytes = b"") -> None:
        self.plan = plan
        """The same for the reader inside the JVM; empty if only Python can read it."""
        self.value = segments


def rest_of_part(pickled: bytes, entries: bytes) -> PartitionPart:
    """Return what remains of a pickled partition, by the first remaining entry of each segment (64 bits, big-endian).

    Called by a pickle of the JVM's reader (``jvm/PickledPart.java``), which has read the entries before.
    """
    part: PartitionPart = pickle.loads(pickled)  # noqa: S301 - Spark's own, passed through the JVM
    firsts = unpack(f">{len(entries) // 8}q", entries)
    both = zip(part.value, firsts, strict=True)
    return PartitionPart(tuple(_from(segment, first) for segment, first in both if first <= segment.last))


def _from(segment: TopicSegment, first: int) -> TopicSegment:
    return segment if first <= segment.visible[0][0] else behind(segment, first)


class PartReading:
    """Pickled description of how to read partitions."""

    def __init__(self, tables: RecordBatches, reach: Reach) -> None:
        self._tables = tables
        self.reach = reach
        self._programs: dict[str, dict[str, Node] | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_programs": {}}

    def parts(self, partitions: Iterable[Partition]) -> list[PartitionPart]:
        """Return the inputs of the tasks, with plans for the JVM if it can read the segments."""
        try:
            return list(map(self._part, partitions))
        finally:
            self._tables.close()

    def _part(self, segments: Partition) -> PartitionPart:
        tables = self._tables
        if tables.is_raw or not tables.values:
            return PartitionPart(segments, jvm_plan(segments, self.reach, is_raw=tables.is_raw))
        values = ValuePlan(tables.values, tables.mode, self._programs_of, is_strict=tables.drops_rows)
        return PartitionPart(segments, jvm_plan(segments, self.reach, values=values))

    def _programs_of(self, topic: str) -> dict[str, Node] | None:
        if topic not in self._programs:
            found = None
            with suppress(UnreadableValues, PulsarBoxError):  # reported by the task that reads the topic
                found = self._tables.programs(topic)
            self._programs[topic] = found
        return self._programs[topic]

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
