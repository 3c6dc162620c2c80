"""Unused topics are unloaded a few at a time."""

from typing import Any

from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.maintenance.unloading import AT_ONCE, IdleTopics
from pulsarbox.clock import Now


def test_many_that_are_idle_at_once_are_looked_at_over_turns() -> None:
    timers, looked = Timers(), list[Any]()

    def unload(topic: Any, now: Now) -> bool:
        looked.append(topic)
        return True

    idle = IdleTopics(timers, 60.0, unload)
    topics: list[Any] = list(range(4 * AT_ONCE + 1))
    for topic in topics:
        idle.used(topic, Now(100.0, 0))
    turns = 0
    while (at := timers.next().monotonic) is not None:
        assert at >= 160.0
        before = len(looked)
        timers.run(Now(at, 0))
        assert len(looked) - before <= AT_ONCE
        turns += 1
    assert looked == topics
    assert turns == 5
