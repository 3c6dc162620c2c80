"""Choosing rows of many things, a little at a time."""

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.server.live import choosing
from pulsarbox.server.live.choosing import CHUNK, DEAR_CHUNK, Chosen, Order, choose


def run(choice: Generator[None, None, Chosen]) -> tuple[Chosen, int]:
    """What was chosen, and in how many turns."""
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
    """Where a value stands, said in another way than choosing says it."""
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
        chosen, _ = run(choose(values, None, Order(itself, descending), (offset, limit)))
    finally:
        choosing.FEW = before  # type: ignore[misc]
    expected = sorted(values, key=lambda value: place(value, descending))
    assert chosen == Chosen(len(values), len(values), expected[offset : offset + limit])


def test_what_is_not_wanted_is_counted_and_left_out() -> None:
    chosen, _ = run(choose(range(1000), lambda each: each % 10 == 0, Order(itself), (2, 3)))
    assert chosen == Chosen(1000, 100, [970, 960, 950])


def test_equals_stay_in_their_order() -> None:
    things = [(1, "a"), (2, "b"), (1, "c"), (2, "d")]
    chosen, _ = run(choose(things, None, Order(lambda each: each[0]), (0, 4)))
    assert [name for _, name in chosen.things] == ["b", "d", "a", "c"]


@pytest.mark.parametrize(("dear", "at_once"), [(False, CHUNK), (True, DEAR_CHUNK)])
def test_others_are_served_in_between(dear: bool, at_once: int) -> None:
    seen: list[int] = []

    def saw(each: int) -> bool:
        seen.append(each)
        return True

    choice = choose(range(10_000), saw, Order(itself), (0, 10), dear=dear)
    next(choice)
    assert len(seen) == at_once
    assert run(choice)[1] == 10_000 // at_once - 1


def test_who_leafs_far_into_a_long_list_is_answered_in_turns_too() -> None:
    chosen, turns = run(choose(range(20_000), None, Order(itself, descending=False), (15_000, 50)))
    assert chosen.things == list(range(15_000, 15_050))
    assert turns > 20_000 // CHUNK
