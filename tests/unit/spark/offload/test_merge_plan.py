"""Which small files are merged, and how often their rows are written again."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.spark.offload.manifest import OffloadedFile
from pulsarbox.spark.offload.merge_plan import LEAST, FileRun, runs_to_merge

LIMIT = 128


def files(*sizes: int, schema: str = "s") -> list[OffloadedFile]:
    return [OffloadedFile(f"{at}", size, "", schema, ()) for at, size in enumerate(sizes)]


def test_small_files_at_the_end_are_merged_once_there_are_enough() -> None:
    assert runs_to_merge(files(*[1] * (LEAST - 1)), LIMIT) == []
    assert runs_to_merge(files(*[1] * LEAST), LIMIT) == [FileRun(0, LEAST, False)]
    assert runs_to_merge(files(30, *[1] * LEAST), LIMIT) == [FileRun(1, LEAST + 1, False)], "30 is not written again"
    assert runs_to_merge(files(*[3, 1, 20] * 3), LIMIT) == [FileRun(0, 9, False)], "sizes may alternate"


def test_files_that_nothing_can_be_added_to_are_merged_at_once() -> None:
    assert runs_to_merge(files(40, 50, 60), LIMIT) == [FileRun(0, 2, True)], "the third one does not fit"
    assert runs_to_merge(files(1, 2, 64, 3, 4), LIMIT) == [FileRun(0, 2, True)], "a file of half the limit is large"
    mixed = [*files(1, 1), *files(1, 1, 1, schema="other")]
    assert runs_to_merge(mixed, LIMIT) == [FileRun(0, 2, True)], "a file has one set of columns"
    assert runs_to_merge(files(1, 1, 1), 0) == runs_to_merge(files(200, 300), LIMIT) == runs_to_merge([], LIMIT) == []


def merged(found: list[OffloadedFile]) -> tuple[list[OffloadedFile], int]:
    """Merge as planned, and return the bytes written."""
    written = 0
    for run in reversed(runs_to_merge(found, LIMIT)):
        size = sum(each.bytes for each in found[run.first : run.end])
        assert size <= LIMIT and run.end - run.first >= 2
        written += size
        found = [*found[: run.first], *files(size), *found[run.end :]]
    return found, written


@given(st.lists(st.integers(1, 100), max_size=300))
def test_few_files_remain_and_each_byte_is_written_a_few_times(sizes: list[int]) -> None:
    found: list[OffloadedFile] = []
    written = 0
    for size in sizes:
        found, again = merged([*found, *files(size)])
        written += again
    assert sum(each.bytes for each in found) == sum(sizes)
    small = [each for each in found if each.bytes < LIMIT // 2]
    assert len(small) <= 1 + len(found) - len(small) + LEAST + 7
    assert written <= 9 * sum(sizes)
