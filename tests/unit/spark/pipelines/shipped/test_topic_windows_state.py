"""Windows of a rollup in the state store: one value and one timer per topic."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.spark.pipelines.shipped.rollup_windows import Rolling, TaskCounts, WindowCounts
from pulsarbox.spark.pipelines.shipped.topic_windows_state import Added

HOW = Rolling(length=1000, slide=1000, delay=500, idle=2000)
TOPIC = "persistent://public/default/t"


class Handle:
    """Substitute for Spark's handle of the state of one key."""

    def __init__(self) -> None:
        self.value: tuple[bytes] | None = None
        self.timers: set[int] = set()

    def getValueState(self, name: str, schema: str) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(get=lambda: self.value, update=lambda value: setattr(self, "value", value))

    def registerTimer(self, at: int) -> None:  # noqa: N802 - Spark's name
        assert at not in self.timers
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:  # noqa: N802 - Spark's name
        self.timers.remove(at)


@pytest.fixture
def handle() -> Handle:
    return Handle()


def processor(handle: Handle) -> Added:
    """Return a processor of a new micro-batch, which knows only the state."""
    made = Added(HOW)
    made.init(handle)  # type: ignore[arg-type]
    return made


def count(handle: Handle, at: int, *events: int) -> list[tuple[int, bool, int]]:
    parts = [TaskCounts(TOPIC, event, event, {event // 1000 * 1000: WindowCounts(messages=1)}) for event in events]
    rows = iter([{"part": json.dumps(part.as_json()), "at": at} for part in parts])
    return shown(processor(handle).handleInputRows((TOPIC,), rows, None))  # type: ignore[arg-type]


def expire(handle: Handle, now: int) -> list[tuple[int, bool, int]]:
    handle.timers = {each for each in handle.timers if each > now}  # Spark removes expired timers
    times: Any = SimpleNamespace(getCurrentWatermarkInMs=lambda: now)
    return shown(processor(handle).handleExpiredTimer((TOPIC,), times, None))  # type: ignore[arg-type]


def shown(rows: Any) -> list[tuple[int, bool, int]]:
    found = [json.loads(row["row"]) for row in rows]
    return [(row["windowStart"], row["late"], row["messages"]) for row in found]


def test_parts_of_all_tasks_and_micro_batches_add_up(handle: Handle) -> None:
    assert count(handle, 10_000, 100, 200) == []
    assert count(handle, 11_000, 300) == []
    assert handle.timers == {13_500}, "one timer, of the last micro-batch"
    assert count(handle, 12_000, 1600) == [(0, False, 3)]


def test_an_idle_topic_has_its_windows_closed_by_its_timer(handle: Handle) -> None:
    count(handle, 10_000, 100)
    assert expire(handle, 12_500) == [(0, False, 1)]
    assert handle.timers == set()
    assert count(handle, 13_000, 200) == [(0, True, 1)]
    assert handle.timers == set(), "no window is open"


def test_a_later_window_gets_another_timer(handle: Handle) -> None:
    count(handle, 10_000, 11_900, 12_100)
    assert handle.timers == {14_500}, "the window from 11,000 ends at 12,000"
    assert expire(handle, 14_500) == [(11_000, False, 1)]
    assert handle.timers == {15_500}
