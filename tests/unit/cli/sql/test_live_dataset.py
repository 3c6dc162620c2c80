"""Live messages as a dataset: which columns and entries a scan reads."""

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pulsarbox.cli.sql.live_dataset import _cut, with_filtered
from pulsarbox.spark.topic_segments import ReadPosition, TopicSegment

SEGMENT = TopicSegment("persistent://public/default/t", 5, 10, 19, 10, 100, hidden=((12, 15),), from_batch=2)
SCHEMA = pa.schema([("id", pa.int64()), ("__key", pa.binary()), ("a.b c", pa.string()), ("unused", pa.int64())])


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (None, None, (10, 19)),
        (ReadPosition(4, 100), None, (10, 19)),
        (ReadPosition(5, 14), None, (14, 19)),
        (ReadPosition(6, 0), None, None),
        (None, ReadPosition(5, 14), (10, 14)),
        (None, ReadPosition(4, 14), None),
        (ReadPosition(5, 12), ReadPosition(6, 0), (12, 19)),
    ],
)
def test_a_segment_is_cut_to_the_entries_of_a_time_range(
    begin: ReadPosition | None, end: ReadPosition | None, expected: tuple[int, int] | None
) -> None:
    found = _cut(SEGMENT, begin, end)
    assert (None if found is None else (found.first, found.last)) == expected


def test_a_cut_keeps_what_is_hidden_and_skipped() -> None:
    found = _cut(SEGMENT, ReadPosition(5, 14), None)
    assert found is not None and found.hidden == ((14, 15),) and found.from_batch == 0
    assert _cut(SEGMENT, None, ReadPosition(5, 13)) == SEGMENT._replace(last=13, hidden=((12, 13),))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ds.field("id") > 3, ["id", "__key"]),
        (ds.field("a.b c") == "x", ["__key", "a.b c"]),
        ((ds.field("__key") == b"x") & ds.field("id").is_valid(), ["id", "__key"]),
    ],
)
def test_columns_of_the_filter_are_read_too(condition: ds.Expression, expected: list[str]) -> None:
    assert with_filtered(["__key"], condition, SCHEMA) == expected
