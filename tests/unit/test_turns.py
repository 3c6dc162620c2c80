"""Each test that takes turns has one, and all run where that is asked for."""

import pytest

from tests.tools.turns import TURNS, turn

ALL = frozenset(name for each in TURNS for name in each)


def test_in_as_many_days_as_there_are_turns_everything_runs() -> None:
    days = [turn(day, {}) for day in range(100, 100 + len(TURNS))]
    assert frozenset().union(*days) == ALL
    assert sum(map(len, days)) == len(ALL)


def test_what_is_asked_for_runs_whatever_the_day() -> None:
    for day in range(len(TURNS)):
        assert turn(day, {"SPARK_TURN": "all"}) == ALL
        assert "demo" in turn(day, {"SPARK_TURN": "demo"})
    with pytest.raises(ValueError, match="SPARK_TURN=nothing: it is all, or one of points, "):
        turn(0, {"SPARK_TURN": "nothing"})
