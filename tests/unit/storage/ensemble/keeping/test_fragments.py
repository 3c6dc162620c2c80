"""Ranges of entries, missing and surplus copies, and the choice of sources and targets."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.ensemble.keeping.fragments import (
    MemberPlace,
    Run,
    Runs,
    common,
    compare,
    length,
    merged,
    sources_of,
    target_of,
    without,
)
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import Fragment

ANY_RUNS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6).map(merged)


def entries(runs: Runs) -> set[int]:
    """The entries in runs."""
    return {entry for first, end in runs for entry in range(first, end)}


def places(**states: str) -> dict[str, MemberPlace]:
    """Members with these states."""
    return {name: MemberPlace(name, state) for name, state in states.items()}


@given(ANY_RUNS, ANY_RUNS)
def test_operations_on_runs_are_those_on_sets(some: Runs, others: Runs) -> None:
    assert entries(merged([*some, *others])) == entries(some) | entries(others)
    assert entries(without(some, others)) == entries(some) - entries(others)
    assert entries(common(some, others)) == entries(some) & entries(others)
    assert length(some) == len(entries(some))


@given(ANY_RUNS)
def test_runs_are_sorted_and_do_not_touch(runs: Runs) -> None:
    assert all(first < end for first, end in runs)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(runs))


@given(ANY_RUNS, ANY_RUNS, ANY_RUNS, st.integers(1, 3))
def test_every_entry_is_classified_by_its_copies(exists: Runs, one: Runs, two: Runs, want: int) -> None:
    found = compare(7, exists, want, {"a": one, "b": two}, places(a=MemberState.ACTIVE, b=MemberState.FULL))
    for entry in entries(exists):
        copies = (entry in entries(one)) + (entry in entries(two))
        of = [[(each.first, each.end)] for each in found.missing if entry in range(each.first, each.end)]
        assert (len(of) == 1) == (0 < copies < want)
        assert (entry in entries(found.lost)) == (copies == 0)
        assert any(entry in range(each.first, each.end) for each in found.surplus) == (copies > want)


def test_fragments_end_where_their_members_change() -> None:
    covered: dict[str, list[Run]] = {"a": [(0, 10)], "b": [(3, 5)]}
    found = compare(7, [(0, 10)], 2, covered, places(a=MemberState.ACTIVE, b=MemberState.ACTIVE))
    assert found.missing == [Fragment(7, 0, 3, ("a",), 2), Fragment(7, 5, 10, ("a",), 2)]
    assert (found.lost, found.surplus) == ([], [])


def test_copies_of_a_leaving_member_do_not_count() -> None:
    covered: dict[str, list[Run]] = {"a": [(0, 4)], "b": [(0, 2)]}
    found = compare(7, [(0, 4)], 1, covered, places(a=MemberState.LEAVING, b=MemberState.ACTIVE))
    assert found.missing == [Fragment(7, 2, 4, ("a",), 1)]


def test_the_target_is_the_least_filled_member_without_a_copy() -> None:
    known = [MemberPlace(name, MemberState.ACTIVE, bytes_used=used) for name, used in (("a", 1), ("b", 9), ("c", 5))]
    assert target_of(("a",), 2, known) == known[2]
    assert target_of(("a",), 2, known, refused=("c",)) == known[1]
    assert target_of(("a", "b", "c"), 4, known) is None


def test_members_that_do_not_receive_copies_are_no_target() -> None:
    states = [value for name, value in vars(MemberState).items() if name.isupper() and value != MemberState.ACTIVE]
    assert target_of(("a",), 2, [MemberPlace(state, state) for state in states]) is None


def test_a_second_copy_on_a_device_is_the_last_choice() -> None:
    known = [
        MemberPlace("a", MemberState.ACTIVE, 1, 0),
        MemberPlace("b", MemberState.ACTIVE, 1, 0),
        MemberPlace("c", MemberState.ACTIVE, 2, 9),
    ]
    assert target_of(("a",), 2, known) == known[2]
    assert target_of(("a", "c"), 3, known) == known[1]  # two devices for three copies
    assert target_of(("a", "c"), 2, known) is None
    full = [known[0], known[1], known[2]._replace(state=MemberState.FULL)]
    assert target_of(("a",), 2, full) == known[1]
    assert target_of(("a",), 2, known, refused=("c",)) is None  # for the moment


def test_the_copy_of_a_leaving_member_does_not_occupy_its_device() -> None:
    known = [
        MemberPlace("a", MemberState.LEAVING, 1),
        MemberPlace("b", MemberState.ACTIVE, 1),
        MemberPlace("c", MemberState.ACTIVE, 2),
    ]
    assert target_of(("a", "c"), 2, known) == known[1]


def test_active_members_without_errors_are_read_first() -> None:
    known = [
        MemberPlace("a", MemberState.ACTIVE),
        MemberPlace("b", MemberState.LEAVING),
        MemberPlace("c", MemberState.ACTIVE),
        MemberPlace("d", MemberState.LOST),
    ]
    assert [place.name for place in sources_of("abcd", known, avoided=("a",))] == ["c", "b", "a"]
