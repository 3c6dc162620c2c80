"""The progress of an offload, as JSON in the snapshots of a table."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.spark.decode.entry_decoder import BACK_ENTRIES
from pulsarbox.spark.offload.manifest import Gap, OffloadError
from pulsarbox.spark.offload.table_progress import PartitionProgress, decode, encode, ranges
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition

TOPIC = "persistent://public/default/t"


def begun() -> PartitionProgress:
    first = Mark(ReadPosition(3, 0), 5)
    return PartitionProgress("box", first, first)


def test_progress_is_read_as_it_was_written() -> None:
    progress = {TOPIC: begun(), f"{TOPIC}-partition-1": begun()}
    progress[TOPIC].add(3, 10, 15, [ReadPosition(3, 8)])
    progress[TOPIC].skip(Gap(ReadPosition(3, 10), Mark(ReadPosition(6, 0), 40), "gone"))
    assert decode(encode(progress), "shop.t") == progress
    assert progress[TOPIC].next == Mark(ReadPosition(6, 0), 40) and progress[TOPIC].held == ReadPosition(3, 8)
    assert ranges({}, progress) == json.dumps({TOPIC: ["3:0", "6:0"]}, separators=(",", ":"))
    assert ranges(progress, progress) == "{}"


@pytest.mark.parametrize(
    "stored", ["", "[]", "{}", '{"version": 2, "topics": {}}', '{"version": 1, "topics": {"t": 1}}']
)
def test_invalid_progress_is_an_error(stored: str) -> None:
    with pytest.raises(OffloadError, match=r"table shop.t: invalid progress in its properties"):
        decode(stored, "shop.t")


def test_first_chunks_are_held_as_far_back_as_readers_search() -> None:
    progress = begun()
    progress.add(3, 10, 10, [ReadPosition(3, 9)])
    progress.add(4, BACK_ENTRIES - 1, 20, [])
    assert progress.held == ReadPosition(3, 9), "exactly as far back"
    progress.add(5, 1, 21, [])
    assert progress.held == ReadPosition(5, 1) and progress.unfinished == []


@given(st.lists(st.tuples(st.integers(1, 3000), st.booleans()), max_size=300))
def test_no_first_chunk_that_a_reader_may_need_is_released(ledgers: list[tuple[int, bool]]) -> None:
    progress = begun()
    needed: list[tuple[ReadPosition, int]] = []
    for number, (entries, unfinished) in enumerate(ledgers, 3):
        first = ReadPosition(number, entries - 1)
        progress.add(number, entries, 0, [first] if unfinished else [])
        needed = [(place, since + entries) for place, since in needed] + ([(first, 1)] if unfinished else [])
        assert all(progress.held <= place for place, since in needed if since <= BACK_ENTRIES)
        assert len(progress.unfinished) <= 64
