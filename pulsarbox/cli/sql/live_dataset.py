"""Live messages of a topic as an Arrow dataset."""

import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds

from pulsarbox.cli.sql.query_dataset import QueryDataset, ReadProgress
from pulsarbox.cli.sql.segment_pruning import SegmentFilter, TimeRange
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.schema_registry import NEWEST, Registry
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.decode.record_batches import RecordBatches
from pulsarbox.spark.schema.arrow_types import arrow_schema
from pulsarbox.spark.schema.column_types import ColumnField
from pulsarbox.spark.topic_segments import Reach, ReadPosition, TopicSegment

SKEW_MS: Final = 3_600_000
"""Assumed maximum clock skew between producers, when a filter on publish times excludes entries."""
WORTH_MESSAGES: Final = 1000
"""Live messages from which on positions by time are requested."""
_one_at_a_time: Final = threading.RLock()
"""Held for each step of a read. A process has one reader of a data directory, and DuckDB scans topics in parallel.
Reentrant, because a read may be collected as garbage during a step of another one."""


@dataclass(frozen=True)
class LivePart:
    """Live messages of one topic: the segments to read, and how."""

    topic: str
    """Full name; of a partitioned topic, its base."""
    fields: Sequence[ColumnField]
    segments: Sequence[TopicSegment]
    schemas: Mapping[bytes, Schema | None]
    """Known schemas by version; the newest one under ``NEWEST``. Others are requested from the broker."""
    reach: Reach
    progress: ReadProgress


class LiveDataset(QueryDataset):
    """Dataset of live segments."""

    def __init__(self, part: LivePart) -> None:
        super().__init__(arrow_schema(part.fields), part.progress)
        self._part = part

    def batches(self, schema: pa.Schema, condition: ds.Expression | None) -> Iterator[pa.RecordBatch]:
        """See QueryDataset. Segments without rows that may pass are left out. Raises the broker's errors."""
        segments = list(self._part.segments) if condition is None else self._chosen(condition)
        return self._batches(schema, segments)

    def _chosen(self, condition: ds.Expression) -> list[TopicSegment]:
        """Return the segments, or the parts of them, with rows that may pass."""
        part = self._part
        pruning = SegmentFilter(condition, self._arrow)
        found = pruning.segments(part.segments)
        times = pruning.times() if self._is_worth(found) else TimeRange(None, None)
        if times == TimeRange(None, None):
            return found
        begins, ends = self._positions({each.topic for each in found}, times)
        cut = (_cut(each, begins.get(each.topic), ends.get(each.topic)) for each in found)
        return [each for each in cut if each is not None]

    def _is_worth(self, segments: Sequence[TopicSegment]) -> bool:
        return bool(self._part.reach.admin_url) and sum(each.messages for each in segments) >= WORTH_MESSAGES

    def _positions(self, topics: set[str], times: TimeRange) -> tuple[dict[str, ReadPosition], dict[str, ReadPosition]]:
        """Return the first entries of each topic in and behind a range of publish times."""
        begins, ends = {}, {}
        with Service(self._part.reach) as service:
            for topic in topics:
                if times.first is not None:
                    begins[topic] = service.at_time(topic, max(0, times.first - SKEW_MS))
                if times.last is not None:
                    ends[topic] = service.at_time(topic, times.last + SKEW_MS)
        return begins, ends

    def _batches(self, schema: pa.Schema, segments: list[TopicSegment]) -> Iterator[pa.RecordBatch]:
        """Yield the messages of segments, each step under the lock."""
        reading = self._read(schema, segments)
        try:
            while True:
                with _one_at_a_time:
                    batch = next(reading, None)
                if batch is None:
                    return
                yield batch
        finally:
            with _one_at_a_time:
                reading.close()

    def _read(self, schema: pa.Schema, segments: list[TopicSegment]) -> Generator[pa.RecordBatch, None, None]:
        part = self._part
        registry = Registry(part.reach)
        for version, known in part.schemas.items():
            registry.know(part.topic, version, known)
        form = "bytes" if part.schemas[NEWEST] is None else "auto"
        tables = RecordBatches(schema, registry, form, "permissive")
        try:
            if segments:
                for some in messages(segments, tables.wanted, part.reach, mixed=True):
                    yield tables.batch(some)
        finally:
            tables.close()


def _cut(segment: TopicSegment, begin: ReadPosition | None, end: ReadPosition | None) -> TopicSegment | None:
    """Return the part of a segment from ``begin`` up to ``end``; None if nothing is left."""
    if segment.end is not None:
        return segment
    first, last = segment.first, segment.last
    if begin is not None and begin.ledger >= segment.ledger:
        first = max(first, begin.entry) if begin.ledger == segment.ledger else last + 1
    if end is not None and end.ledger <= segment.ledger:
        last = min(last, end.entry) if end.ledger == segment.ledger else first - 1
    if (first, last) == (segment.first, segment.last):
        return segment
    if first > last:
        return None
    hidden = tuple((max(low, first), min(high, last)) for low, high in segment.hidden if high >= first and low <= last)
    return segment._replace(
        first=first,
        last=last,
        hidden=hidden,
        from_batch=segment.from_batch if first == segment.first else 0,
        to_batch=segment.to_batch if last == segment.last else 0,
    )
