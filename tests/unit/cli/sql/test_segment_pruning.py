"""Segments that a filter excludes."""

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pulsarbox.cli.sql.segment_pruning import SegmentFilter, TimeRange
from pulsarbox.spark.topic_segments import TopicSegment

ID, TIME, LEDGER, ENTRY = (ds.field(name) for name in ("id", "__publishTime", "__ledgerId", "__entryId"))
SCHEMA = pa.schema([("id", pa.int64()), ("__publishTime", pa.timestamp("us", tz="UTC"))])
SEGMENTS = [
    TopicSegment(f"persistent://public/default/t-partition-{part}", ledger, 0, 99, 100, 1000)
    for part, ledger in ((0, 5), (0, 7), (1, 6))
]


def at(ms: int) -> pa.Scalar:
    return pa.scalar(ms * 1000, pa.timestamp("us", tz="UTC"))


def ledgers(condition: ds.Expression) -> list[int]:
    return [each.ledger for each in SegmentFilter(condition, SCHEMA).segments(SEGMENTS)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ID == 3, [5, 7, 6]),
        (LEDGER == 7, [7]),
        (LEDGER > 5, [7, 6]),
        (LEDGER.isin([5, 6]), [5, 6]),
        ((LEDGER == 5) | (ID == 3), [5, 7, 6]),
        ((LEDGER == 5) & (ENTRY >= 100), []),
        (ENTRY >= 99, [5, 7, 6]),
        (ds.field("__partition") == 1, [6]),
        (ds.field("__partition").is_null(), []),
        (ds.field("__topic") == "persistent://public/default/t-partition-0", [5, 7]),
    ],
)
def test_only_segments_with_rows_that_may_pass_are_read(condition: ds.Expression, expected: list[int]) -> None:
    assert ledgers(condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ID == 3, TimeRange(None, None)),
        (at(5000) <= TIME, TimeRange(5000, None)),
        ((at(5000) <= TIME) & (ID == 3), TimeRange(5000, None)),
        ((at(5000) <= TIME) | (ID == 3), TimeRange(None, None)),
        (at(9000) > TIME, TimeRange(None, 9000)),
        (at(1_700_000_000_123) == TIME, TimeRange(1_700_000_000_123, 1_700_000_000_123)),
        ((at(5000) < TIME) & (at(9000) >= TIME), TimeRange(5000, 9000)),
    ],
)
def test_the_range_of_publish_times_contains_all_rows_that_pass(condition: ds.Expression, expected: TimeRange) -> None:
    found = SegmentFilter(condition, SCHEMA).times()
    assert found.first == expected.first
    assert found.last is not None if expected.last else found.last is None
    if expected.last and found.last:
        assert expected.last <= found.last <= expected.last + 1
