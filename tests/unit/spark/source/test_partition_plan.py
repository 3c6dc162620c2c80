"""Partitions contain every entry exactly once, have the requested size, and preserve the order of topics."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.spark.source.partition_plan import SMALL, partitions
from pulsarbox.spark.topic_segments import TopicSegment

MIB = 1 << 20
TASKS = 8
"""Tasks that run at a time."""


@st.composite
def ledgers(draw: st.DrawFn) -> list[TopicSegment]:
    """Segments of some topics that share volumes, as returned by a box."""
    found = []
    for number in range(draw(st.integers(0, 12))):
        first, entries = draw(st.integers(0, 50)), draw(st.integers(1, 400))
        size = entries * draw(st.sampled_from([1, 100, 1000, 100_000]))
        volumes = tuple(f"volumes/{each:08}" for each in sorted(draw(st.sets(st.integers(1, 6), max_size=4))))
        topic = f"persistent://public/default/t-{number % 3}"
        found.append(TopicSegment(topic, number, first, first + entries - 1, entries, size, volumes=volumes))
    return found


def entries(segments: list[TopicSegment]) -> Counter[tuple[str, int, int]]:
    return Counter((each.topic, each.ledger, entry) for each in segments for entry in range(each.first, each.last + 1))


@given(ledgers(), st.integers(1, 20), st.integers(1, 8 * MIB))
def test_every_entry_is_read_exactly_once(segments: list[TopicSegment], at_least: int, bytes_max: int) -> None:
    planned = partitions(segments, at_least, bytes_max, TASKS)
    assert entries([piece for partition in planned for piece in partition]) == entries(segments)
    assert all(planned)


@given(ledgers(), st.integers(1, 20))
def test_there_are_as_many_partitions_as_asked_for_where_there_are_entries(
    segments: list[TopicSegment], at_least: int
) -> None:
    there = sum(each.last - each.first + 1 for each in segments)
    assert len(partitions(segments, at_least, 64 * MIB, TASKS)) >= min(at_least, there)


@given(ledgers(), st.integers(1, 8 * MIB))
def test_no_partition_is_larger_than_asked_for_but_by_an_entry(segments: list[TopicSegment], bytes_max: int) -> None:
    for partition in partitions(segments, 1, bytes_max, TASKS):
        assert sum(each.bytes for each in partition) <= bytes_max or len(partition) == 1
        assert all(each.bytes <= bytes_max + each.bytes / (each.last - each.first + 1) + 1 for each in partition)


@given(ledgers(), st.integers(1, 20), st.integers(1, 8 * MIB))
def test_a_task_reads_a_ledger_in_its_order(segments: list[TopicSegment], at_least: int, bytes_max: int) -> None:
    for partition in partitions(segments, at_least, bytes_max, TASKS):
        behind: dict[tuple[str, int], int] = {}
        for piece in partition:
            assert piece.first > behind.get((piece.topic, piece.ledger), -1)
            behind[piece.topic, piece.ledger] = piece.last


def test_a_small_read_is_one_task() -> None:
    segments = [TopicSegment(f"t-{number}", number, 0, 9, 10, 10_000) for number in range(100)]
    assert len(partitions(segments, 1, 64 * MIB, TASKS)) == 1


def test_a_larger_read_is_several_although_one_would_hold_it() -> None:
    segment = TopicSegment("t", 1, 0, 9_999, 10_000, 8 * SMALL)
    assert len(partitions([segment], 1, 64 * MIB, TASKS)) == 8


def test_what_stands_in_one_volume_is_read_by_one_task() -> None:
    """A hundred topics, written in turn into ten volumes of 64 MiB."""
    volumes = tuple(f"volumes/{number:08}" for number in range(10))
    segments = [
        TopicSegment(f"t-{number}", number, 0, 9_999, 10_000, 640 * MIB // 100, volumes=volumes)
        for number in range(100)
    ]
    planned = partitions(segments, 1, 64 * MIB, TASKS)
    assert len(planned) == 16
    assert all({(piece.first, piece.last) for piece in partition} == {(at * 625, at * 625 + 624)}
               for at, partition in enumerate(planned))  # fmt: skip


def test_a_task_reads_a_stretch_of_a_volume() -> None:
    """A hundred topics, written in turn into one volume: each task reads the same share of each topic."""
    segments = [
        TopicSegment(f"t-{number}", number, 0, 9_999, 10_000, 1 << 23, volumes=("volumes/00000001",))
        for number in range(100)
    ]
    planned = partitions(segments, 1, 105 << 20, TASKS)
    assert len(planned) == 8
    for number, partition in enumerate(planned):
        assert len(partition) == 100
        assert {piece.first for piece in partition} == {number * 1_250}


@given(st.lists(st.integers(1_900, 2_100), min_size=100, max_size=100))
def test_a_task_reads_a_stretch_of_a_volume_where_topics_are_not_alike(sizes: list[int]) -> None:
    """A hundred topics of about 2 MiB: the remainder of a division neither adds a partition nor shifts one."""
    segments = [
        TopicSegment(f"t-{at}", at, 0, size - 1, size, size * 1_100, volumes=("volumes/00000001",))
        for at, size in enumerate(sizes)
    ]
    planned = partitions(segments, 1, 128 * MIB, TASKS)
    assert len(planned) == 8
    for number, partition in enumerate(planned):
        of_their_place = [each for each in partition if each.first == number * sizes[each.ledger] // 8]
        assert len(of_their_place) >= 98, len(of_their_place)


@given(st.integers(1, 1 << 34), st.integers(64 << 20, 1 << 30), st.sampled_from([1, 2, 3, 8]))
def test_parallel_tasks_end_together_where_there_are_many(total: int, bytes_max: int, parallelism: int) -> None:
    segment = TopicSegment("t", 1, 0, 1 << 30, 1 << 30, total)
    count = len(partitions([segment], 1, bytes_max, parallelism))
    assert count <= parallelism or count % parallelism == 0


@pytest.mark.parametrize(("parallelism", "count"), [(1, 1), (2, 2), (4, 4), (100, 8)])
def test_a_read_that_is_not_small_is_a_task_for_each_that_runs_at_a_time(parallelism: int, count: int) -> None:
    segment = TopicSegment("t", 1, 0, 9_999, 10_000, 8 * SMALL)
    assert len(partitions([segment], 1, 64 * MIB, parallelism)) == count


def test_the_parts_of_batches_that_are_not_wanted_stay_with_the_first_and_last_entry() -> None:
    segment = TopicSegment("t", 1, 0, 9, 100, 1000, hidden=((2, 7),), from_batch=3, to_batch=4)
    pieces = [piece for partition in partitions([segment], 10, 64 * MIB, TASKS) for piece in partition]
    assert [(each.from_batch, each.to_batch) for each in (pieces[0], pieces[-1])] == [(3, 0), (0, 4)]
    assert not any(each.from_batch or each.to_batch for each in pieces[1:-1])
    hidden = {entry for each in pieces for first, last in each.hidden for entry in range(first, last + 1)}
    assert hidden == {2, 3, 4, 5, 6, 7}


@given(ledgers(), st.integers(1, 8 * MIB))
def test_over_the_network_what_fits_into_a_task_is_not_cut(segments: list[TopicSegment], bytes_max: int) -> None:
    planned = partitions(segments, 1, bytes_max, TASKS, in_place=False)
    pieces = [piece for partition in planned for piece in partition]
    assert entries(pieces) == entries(segments)
    total = sum(each.bytes for each in segments)
    whole = min(bytes_max, max(SMALL, total // 8)) // 2
    assert all(each._replace(volumes=()) in pieces for each in segments if each.bytes <= whole)
