"""Messages are acknowledged only once their output has been read."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.messages.loops.pipe_acknowledgement import Unread

BATCHES = st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6)


def made() -> tuple[Unread, list[int]]:
    seen: list[int] = []

    def acknowledge(messages: Sequence[Any]) -> None:
        assert messages
        seen.extend(messages)

    return Unread(acknowledge), seen


@given(BATCHES, st.lists(st.integers(-5, 400), max_size=10))
def test_a_message_is_acknowledged_once_its_last_byte_and_all_before_are_read(
    batches: list[list[int]], reads: list[int]
) -> None:
    unread, seen = made()
    ends: list[int] = []
    for sizes in batches:
        begin = ends[-1] if ends else 0
        unread.add(begin, cast(Any, range(len(ends), len(ends) + len(sizes))), sizes)
        for size in sizes:
            ends.append((ends[-1] if ends else 0) + size)
    furthest = -1
    for read in reads:
        unread.release(read)
        furthest = max(furthest, read)
        # Empty output is acknowledged with the output after it, or by the next check.
        through = [number for number, size in enumerate(chain(*batches)) if size and ends[number] <= furthest]
        least = through[-1] + 1 if through else 0
        assert seen == list(range(len(seen)))
        assert all(ends[number] <= furthest for number in seen)
        assert len(seen) >= least
    unread.release(ends[-1] if ends else 0)
    assert seen == list(range(len(ends))) and not unread


def test_a_part_of_a_batch() -> None:
    unread, seen = made()
    unread.add(0, cast(Any, [1, 2, 3]), [10, 10, 10])
    unread.release(19)
    assert (seen, bool(unread)) == ([1], True)
    unread.release(20)
    assert seen == [1, 2]
    unread.release(30)
    assert (seen, bool(unread)) == ([1, 2, 3], False)
