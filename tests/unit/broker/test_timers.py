"""Deadlines of the core."""

import pytest

from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now


def test_the_others_stay_due_where_an_action_raises() -> None:
    timers, done = Timers(), list[str]()

    def fails(now: Now) -> None:
        raise RuntimeError("of one")

    timers.at(1.0, fails)
    timers.at(2.0, lambda now: done.append("monotonic"))
    timers.at_wall(5, lambda now: done.append("wall"))
    timers.at(9.0, lambda now: done.append("later"))
    with pytest.raises(RuntimeError, match="of one"):
        timers.run(Now(wall=5, monotonic=3.0))
    assert done == []
    timers.run(Now(wall=5, monotonic=3.0))
    assert done == ["monotonic", "wall"]
    assert timers.next().monotonic == 9.0


def test_an_action_may_cancel_one_that_is_due() -> None:
    timers, done = Timers(), list[str]()
    timers.at(1.0, lambda now: second.cancel())
    second = timers.at(2.0, lambda now: done.append("second"))
    timers.run(Now(wall=0, monotonic=3.0))
    assert done == []
