"""Live messages as a dataset: which entries a scan reads."""

import pytest

from pulsarbox.cli.sql.live_dataset import _cut
from pulsarbox.spark.topic_segments import ReadPosition, TopicSegment

SEGMENT = TopicSegment("persistent://public/default/t", 5, 10, 19, 10, 100, hidden=((12, 15),), from_batch=2)


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
