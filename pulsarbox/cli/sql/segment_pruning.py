"""Segments that a filter excludes: Arrow decides from what is known about each, as for files of a dataset."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from pulsarbox.names import parse_topic
from pulsarbox.spark.decode.row_columns import ALL
from pulsarbox.spark.schema.arrow_types import arrow_schema
from pulsarbox.spark.schema.column_types import of_row
from pulsarbox.spark.topic_segments import TopicSegment

TIME: Final = "__publishTime"
_LAST_MS: Final = 1 << 42
"""A time in the year 2109; filters on later ones do not prune."""
_FORMAT: Final = ds.ParquetFileFormat()
_FILES: Final = LocalFileSystem()


class TimeRange(NamedTuple):
    """Publish times that a filter permits, in ms since 1970, both ends included. None is unlimited."""

    first: int | None
    last: int | None


class SegmentFilter:
    """Filter of a query on the columns of a topic."""

    def __init__(self, condition: ds.Expression, schema: pa.Schema) -> None:
        self._condition = condition
        own = [field for field in arrow_schema([of_row(each) for each in ALL]) if field.name not in schema.names]
        self._schema = pa.schema([*schema, *own])

    def permits(self, known: ds.Expression) -> bool:
        """Return whether a row of which ``known`` is true may pass."""
        fragment = _FORMAT.make_fragment("-", _FILES, partition_expression=known)  # never opened
        dataset = ds.FileSystemDataset([fragment], self._schema, _FORMAT, _FILES)
        return any(True for _ in dataset.get_fragments(filter=self._condition))

    def segments(self, segments: Sequence[TopicSegment]) -> list[TopicSegment]:
        """Return the segments with rows that may pass."""
        return [each for each in segments if self.permits(_known(each))]

    def times(self) -> TimeRange:
        """Return a range of publish times outside of which no row passes."""
        time = ds.field(TIME)
        first = _last_true(lambda ms: not self.permits(time < _moment(ms)))
        last = _last_true(lambda ms: self.permits(time > _moment(ms)))
        return TimeRange(first or None, None if last >= _LAST_MS else last + 1)


def _last_true(holds: Callable[[int], bool]) -> int:
    """Return the last number of ms for which ``holds``, which never holds again after it did not; 0 if none."""
    low, high = 0, _LAST_MS + 1
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _known(segment: TopicSegment) -> ds.Expression:
    name = parse_topic(segment.topic)
    part = ds.field("__partition")
    found: Any = (ds.field("__topic") == segment.topic) & (
        part == name.partition_index if name.partition_index >= 0 else part.is_null()
    )
    if segment.end is not None:
        return found
    ledger, entry = ds.field("__ledgerId"), ds.field("__entryId")
    return found & (ledger == segment.ledger) & (entry >= segment.first) & (entry <= segment.last)


def _moment(ms: int) -> pa.Scalar:
    return pa.scalar(ms * 1000, pa.timestamp("us", tz="UTC"))
