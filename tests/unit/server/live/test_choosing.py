"""Incremental selection of rows among many objects."""

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.server.live import choosing
from pulsarbox.server.live.answering import cache_seconds
from pulsarbox.server.live.choosing import CHUNK, DEAR_CHUNK, SHORT_FILTER, Chosen, Order, choose, chunk_of


def run(choice: Generator[None, None, Chosen]) -> tuple[Chosen, int]:
    """Return the chosen rows and the number of turns."""
    turns = 0
    while True:
        try:
            next(choice)
            turns += 1
        except StopIteration as stop:
            return stop.value, turns


def itself(thing: Any) -> Any:
    return thing


VALUES = st.lists(st.one_of(st.none(), st.integers(-5, 5), st.floats(-2, 2), st.text(max_size=2)), max_size=60)


def place(value: Any, descending: bool) -> Any:
    """Return the sort key of a value, computed independently of the tested module."""
    if value is None:
        return (2, 0)
    if isinstance(value, str):
        return (1, (*(-ord(each) for each in value), 1) if descending else value)
    return (0, -value if descending else value)


@pytest.mark.parametrize("few", [3, 2000])
@given(VALUES, st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_it_is_a_window_of_all_that_is_sorted(
    few: int, values: list[Any], offset: int, limit: int, descending: bool
) -> None:
    before, choosing.FEW = choosing.FEW, few  # type: ignore[misc]
    try:
        things = [(value,) for value in values]
        chosen, _ = run(choose(things, None, Order(lambda each: each[0], descending), (offset, limit)))
    finally:
        choosing.FEW = before  # type: ignore[misc]
    expected = sorted(values, key=lambda value: place(value, descending))
    assert chosen[:3] == (len(values), len(values), [(value,) for value in expected[offset : offset + limit]])


@pytest.mark.parametrize("descending", [True, False])
def test_what_is_no_number_comes_last_and_hides_nothing(descending: bool) -> None:
    things = [(value,) for value in (1.0, float("nan"), 3.0, None, 2.0, True, float("inf"))]
    chosen, _ = run(choose(things, None, Order(lambda each: each[0], descending), (0, 9)))
    best = [1.0, True, 2.0, 3.0, float("inf")]
    assert [value for (value,) in chosen.things[:5]] == (sorted(best, reverse=True) if descending else best)
    assert {str(value) for (value,) in chosen.things[5:]} == {"nan", "None"}


def test_what_is_not_wanted_is_counted_and_left_out() -> None:
    chosen, _ = run(choose(range(1000), lambda each: each % 10 == 0, Order(itself), (2, 3)))
    assert chosen == Chosen(1000, 100, [970, 960, 950], 1000)


def test_equals_stay_in_their_order() -> None:
    things = [(1, "a"), (2, "b"), (1, "c"), (2, "d")]
    chosen, _ = run(choose(things, None, Order(lambda each: each[0]), (0, 4)))
    assert [name for _, name in chosen.things] == ["b", "d", "a", "c"]


@pytest.mark.parametrize("at_once", [CHUNK, DEAR_CHUNK])
def test_others_are_served_in_between(at_once: int) -> None:
    seen: list[int] = []

    def saw(each: int) -> bool:
        seen.append(each)
        return True

    choice = choose(range(10_000), saw, Order(itself), (0, 10), at_once=at_once)
    next(choice)
    assert len(seen) == at_once
    assert run(choice)[1] == 10_000 // at_once - 1


def test_who_leafs_far_into_a_long_list_is_answered_in_turns_too() -> None:
    chosen, turns = run(choose(range(20_000), None, Order(itself, descending=False), (15_000, 50)))
    assert chosen.things == list(range(15_000, 15_050))
    assert turns > 20_000 // CHUNK


def test_who_looks_for_the_next_takes_turns_as_well() -> None:
    chosen, turns = run(
        choose((each if each % 1000 == 0 else None for each in range(10_000)), None, Order(itself), (0, 3))
    )
    assert chosen == Chosen(10, 10, [9000, 8000, 7000], 10_000)
    assert turns == 10_000 // CHUNK


def test_a_long_filter_looks_at_fewer_in_a_turn() -> None:
    assert chunk_of("", dear=False) == chunk_of("a" * SHORT_FILTER, dear=False) == CHUNK
    assert chunk_of("a" * SHORT_FILTER * 4, dear=False) == CHUNK // 4
    assert chunk_of("a" * 100_000, dear=False) == chunk_of("", dear=True) == DEAR_CHUNK


def test_the_value_of_each_is_made_once() -> None:
    """Compute the values of the best rows once, not per chunk: the value of a connection counts all its clients."""
    made: list[int] = []

    def value(each: int) -> int:
        made.append(each)
        return -each

    chosen, _ = run(choose(range(1000), None, Order(value), (0, 5), at_once=DEAR_CHUNK))
    assert chosen.things == [0, 1, 2, 3, 4]
    assert made == list(range(1000))


@pytest.mark.parametrize(
    ("total", "looked", "seconds"), [(0, 0, 1), (500, 500, 1), (10_000, 10_000, 10), (0, 10_000, 2.5), (200, 200, 1)]
)
def test_what_is_dear_is_made_seldom_and_so_is_what_is_looked_for_in_vain(
    total: int, looked: int, seconds: float
) -> None:
    """Scanned rows count even without a result, such as ten thousand subscriptions without limits."""
    assert cache_seconds(Chosen(total, 0, [], looked)) == seconds
