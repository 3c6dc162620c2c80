"""Batch reads: ``spark.read``, with the topics' current entries split into partitions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructType

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.brief_errors import brief, brief_rows
from pulsarbox.spark.connect.broker_api import Range, Service
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.connect.target import in_place, reach
from pulsarbox.spark.decode.record_batches import RecordBatches
from pulsarbox.spark.decode.row_columns import CORRUPT, NAMES, VALUE
from pulsarbox.spark.options import EARLIEST, SparkOptions
from pulsarbox.spark.source import partition_plan, topic_selection
from pulsarbox.spark.source.jvm_plan import plan_of_nothing
from pulsarbox.spark.source.offsets import IN_FRONT, Mark
from pulsarbox.spark.source.partition_read import PartitionPart, PartReading
from pulsarbox.spark.topic_segments import Reach, ReadPosition, TopicSegment
from pulsarbox.spark.worker_gc import settle

SKEW_MS: Final = 3_600_000
"""Assumed maximum clock skew between producers, when a filter on publish times excludes entries."""


def reading(options: SparkOptions, schema: StructType, to: Reach, found: Sequence[str]) -> PartReading:
    """Return how workers read some topics, with the topics' current schemas."""
    form = "bytes" if options.different_schemas else options.value_format
    registry = Registry(to)
    values = [field for field in schema.fields if field.name not in NAMES and field.name != CORRUPT]
    known: list[Schema | None] = []
    if values and form in ("auto", "avro", "json"):
        known = registry.newest_of(found)
        is_plain = [field.name for field in values] == [VALUE] and isinstance(values[0].dataType, BinaryType)
        if form == "auto" and is_plain and not any(known):
            form = "bytes"
    registry.close()
    tables = RecordBatches(to_arrow_schema(schema, timezone="UTC"), registry, form, options.mode)
    tables.check(known)
    return PartReading(tables, in_place(to))


class BatchReader(DataSourceReader):
    """Reader of the entries that exist at planning time."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        """Select the topics. Raises OptionError and the broker's errors."""
        self._options = options
        self._reach = reach(options)
        with Service(self._reach) as service:
            self._topics = topic_selection.awaited(service, options)
        topic_selection.check_named(options, self._topics)
        self._reading = reading(options, schema, self._reach, self._topics)

    @brief
    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions, one per task. Raises OptionError, DataLost."""
        with Service(self._reach) as service:
            found = self._segments(service)
        options = self._options
        bounds = options.min_partitions, options.max_partition_bytes, options.parallelism
        parts = partition_plan.partitions(found, *bounds, in_place=self._reading.reach.is_in_place)
        made = self._reading.parts(parts) or [PartitionPart((), plan_of_nothing())]
        settle()
        return made

    def _chosen(self) -> list[str]:
        return self._topics

    def _segments(self, service: Service) -> list[TopicSegment]:
        ranges = []
        for topic in self._chosen():
            start, end = self._range(service, topic)
            ranges.append(Range(topic, start.place, end, start.seen))
        found = service.many_segments(ranges, compacted=self._options.read_compacted)
        return [each for some in found for each in some]

    def _range(self, service: Service, topic: str) -> tuple[Mark, ReadPosition]:
        options = self._options
        start = topic_selection.start(service, options, topic, EARLIEST)
        return start, topic_selection.end(service, options, topic)

    @brief_rows
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition. Runs in a worker."""
        return self._reading.batches(partition)


class PrunedBatchReader(BatchReader):
    """Batch reader that skips what the query's filters exclude. Spark still applies the filters."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        """Select the topics. Raises OptionError and the broker's errors."""
        super().__init__(options, schema)
        self._only: set[str] | None = None
        self._ledgers: list[tuple[float, float]] = []
        self._times: list[tuple[float, float]] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Note which entries the filters exclude, and return all filters: pruning is conservative."""
        for each in filters:
            name = ".".join(getattr(each, "attribute", ()))
            if name == "__topic":
                values = _values(each)
                if values is not None:
                    self._only = set(values) if self._only is None else self._only & set(values)
            elif name == "__ledgerId":
                self._ledgers += _range_of(each, lambda value: value)
            elif name == "__publishTime":
                self._times += _range_of(each, lambda value: value.timestamp() * 1000)
        return filters

    def _chosen(self) -> list[str]:
        return [topic for topic in self._topics if self._only is None or topic in self._only]

    def _range(self, service: Service, topic: str) -> tuple[Mark, ReadPosition]:
        start, end = super()._range(service, topic)
        for low, high in self._times:
            if low > SKEW_MS:
                at = service.at_time(topic, int(low) - SKEW_MS)
                start = max(start, Mark(at, IN_FRONT)) if at > start.place else start
            if high < 2**62:
                end = min(end, service.at_time(topic, int(high) + SKEW_MS))
        return start, end

    def _segments(self, service: Service) -> list[TopicSegment]:
        found = super()._segments(service)
        return [
            each
            for each in found
            if each.end is not None or all(low <= each.ledger <= high for low, high in self._ledgers)
        ]


def _values(found: Filter) -> list[Any] | None:
    if isinstance(found, EqualTo):
        return [found.value]
    return list(found.value) if isinstance(found, In) else None


def _range_of(found: Filter, number: Any) -> list[tuple[float, float]]:
    """Return the inclusive ranges that a filter permits; none if it implies no range."""
    values = _values(found)
    if values is not None:
        numbers = [number(value) for value in values if value is not None]
        return [(min(numbers), max(numbers))] if numbers else []
    if isinstance(found, GreaterThan | GreaterThanOrEqual):
        return [(number(found.value), float("inf"))]
    if isinstance(found, LessThan | LessThanOrEqual):
        return [(float("-inf"), number(found.value))]
    return []
