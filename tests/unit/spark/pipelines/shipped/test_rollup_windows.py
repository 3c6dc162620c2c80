"""Rollup windows: each message counts once, in time or late; latencies within 1 %; truncation is reported."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.spark.pipelines.shipped.rollup_windows import (
    ROW,
    Rolling,
    Row,
    TaskCounts,
    TopicWindows,
    WindowCounts,
    bucket,
    latency_of,
)
from pulsarbox.spark.pipelines.shipped.window_counting import counted
from tests.tools.campaigns import examples

HOW = Rolling(length=1000, slide=1000, delay=500, idle=2000)
TOPIC = "persistent://public/default/t"
SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("__key", pa.binary()),
        ("__topic", pa.string()),
        ("__publishTime", pa.timestamp("us", "UTC")),
        ("__eventTime", pa.timestamp("us", "UTC")),
    ]
)


def message(event: int | None, published: int, key: bytes | None = None, topic: str = TOPIC, size: int = 1) -> Any:
    return {
        "value": b"x" * size,
        "__key": key,
        "__topic": topic,
        "__publishTime": at(published),
        "__eventTime": None if event is None else at(event),
    }


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def batch(*messages: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(messages), SCHEMA)


def windows_of(how: Rolling = HOW) -> TopicWindows:
    return TopicWindows(how, TOPIC)


def told(windows: TopicWindows, *messages: Any, how: Rolling = HOW, clock: int = 0) -> list[tuple[int, bool, int]]:
    """Return start, late flag and message count of the rows that a micro-batch outputs."""
    return seen(windows.count(counted([batch(*messages)], how), clock))


def seen(rows: list[Row]) -> list[tuple[int, bool, int]]:
    return [(row["windowStart"], row["late"], row["messages"]) for row in rows]


def test_a_window_is_told_of_once_its_topic_is_behind_its_end_by_the_delay() -> None:
    windows = windows_of()
    assert told(windows, message(100, 100), message(900, 950)) == []
    assert told(windows, message(1499, 1499)) == []
    assert told(windows, message(1500, 1500)) == [(0, False, 2)]


def test_batches_of_a_task_add_up() -> None:
    (part,) = counted([batch(message(100, 100)), batch(message(200, 200), message(1500, 1500))], HOW)
    assert (part.newest, {start: each.messages for start, each in part.windows.items()}) == (1500, {0: 2, 1000: 1})


def test_what_comes_later_goes_out_at_once_and_is_marked() -> None:
    windows = windows_of()
    told(windows, message(100, 100), message(1600, 1600))
    assert told(windows, message(200, 1700), message(1601, 1700)) == [(0, True, 1)]
    assert told(windows, message(2600, 2600)) == [(1000, False, 2)]


def test_a_message_without_event_time_goes_by_its_publish_time() -> None:
    windows = windows_of()
    assert told(windows, message(None, 100), message(None, 1500)) == [(0, False, 1)]


def test_an_event_time_far_ahead_is_not_believed_and_counted() -> None:
    windows = windows_of()
    windows.count(counted([batch(message(10_000_000, 100), message(550, 100))], HOW), 0)
    (row,) = windows.count(counted([batch(message(1500, 1500))], HOW), 0)
    assert (row["messages"], row["ahead"], row["timed"]) == (2, 1, 1)


def test_windows_of_an_idle_topic_are_due_when_others_have_messages() -> None:
    windows = windows_of()
    times = [windows.expires_at]
    told(windows, message(100, 100), clock=10_000)
    times.append(windows.expires_at)
    assert seen(windows.expire(12_499)) == []
    assert seen(windows.expire(12_500)) == [(0, False, 1)]
    assert [*times, windows.expires_at] == [None, 12_500, None], "delay and idle behind the last message"
    assert told(windows, message(100, 3600), clock=13_000) == [(0, True, 1)]


def test_a_window_that_has_not_ended_waits_for_its_end() -> None:
    windows = windows_of()
    told(windows, message(9999, 9999), message(100, 100), clock=9000)
    assert windows.expires_at == 12_500, "the window ends at 10,000"
    assert seen(windows.expire(11_500)) == []


def test_windows_that_are_open_go_out_where_that_is_asked_for() -> None:
    how = HOW._replace(flush=True)
    windows = windows_of(how)
    assert told(windows, message(100, 100), how=how) == [(0, False, 1)]
    assert told(windows, message(100, 100), how=how) == [(0, True, 1)]


def test_windows_that_slide_hold_each_message_several_times() -> None:
    how = HOW._replace(slide=500, flush=True)
    assert told(windows_of(how), message(700, 700), message(-100, 10), how=how) == [
        (-1000, False, 1),
        (-500, False, 1),
        (0, False, 1),
        (500, False, 1),
    ]


def test_what_a_row_says() -> None:
    parts = [message(0, 100 * n, b"k%d" % (n % 2), f"{TOPIC}-partition-{n % 2}", 10) for n in range(10)]
    windows = windows_of(HOW._replace(top=1))
    windows.count(counted([batch(*parts, message(None, 500, b"\xff"))], HOW), 0)
    (row,) = windows.count(counted([batch(message(1500, 1500))], HOW), 0)
    assert list(row) == list(ROW)
    assert row | {"latencyP50": 0, "latencyP95": 0, "latencyP99": 0} == {
        "topic": TOPIC,
        "windowStart": 0,
        "windowEnd": 1000,
        "late": False,
        "messages": 11,
        "bytes": 101,
        "messageRate": 11.0,
        "byteRate": 101.0,
        "ahead": 0,
        "keys": 3,
        "keysExact": True,
        "topKeys": [{"key": "k0", "messages": 5}],
        "timed": 10,
        "latencyP50": 0,
        "latencyP95": 0,
        "latencyP99": 0,
        "latencyMax": 900,
    }
    assert row["latencyP50"] == pytest.approx(400, rel=0.011)
    assert row["latencyP99"] == pytest.approx(900, rel=0.011)


@given(st.integers(0, 10**10))
def test_a_latency_is_told_to_one_percent(latency: int) -> None:
    assert latency_of(bucket(latency)) == pytest.approx(latency, rel=0.0101, abs=0.51)


def test_keys_are_cut_to_the_most_frequent() -> None:
    counts = WindowCounts(keys={"a": 3, "b": 1})
    counts.add(WindowCounts(keys={"b": 1, "c": 1, "d": 9}), keys=3)
    assert (counts.keys, counts.cut) == ({"d": 9, "a": 3, "b": 2}, True)


EVENTS = st.lists(
    st.lists(
        st.tuples(st.none() | st.integers(0, 20_000), st.integers(0, 20_000), st.sampled_from([TOPIC, f"{TOPIC}2"])),
        max_size=6,
    ),
    max_size=6,
)


@settings(deadline=None, max_examples=examples(60))
@given(EVENTS, st.booleans())
def test_every_message_is_in_one_row_whatever_comes_when(batches: Any, flush: bool) -> None:
    """Each message is counted once in any order, and a window has at most one row that is not late.

    The state between two micro-batches survives serialization.
    """
    how = HOW._replace(flush=flush)
    state: dict[str, TopicWindows] = {each: TopicWindows(how, each) for each in (TOPIC, f"{TOPIC}2")}
    rows, wanted = list[Row](), dict[tuple[str, int], int]()
    for clock, each in enumerate(batches):
        messages = [message(event, published, topic=topic) for event, published, topic in each]
        for event, published, topic in each:
            time = published if event is None or event > published + how.delay else event
            wanted[topic, time // 1000 * 1000] = wanted.get((topic, time // 1000 * 1000), 0) + 1
        for part in counted([batch(*messages)], how):
            sent = TaskCounts.of_json(json.loads(json.dumps(part.as_json())))
            kept = json.loads(json.dumps(state[part.topic].as_json()))
            state[part.topic] = TopicWindows.of_json(how, part.topic, kept)
            rows += state[part.topic].count([sent], 1000 * clock)
        for windows in state.values():
            rows += windows.expire(1000 * clock)
    for windows in state.values():
        rows += windows.expire(10**9)
    found: dict[tuple[str, int], int] = {}
    for row in rows:
        place = row["topic"], row["windowStart"]
        found[place] = found.get(place, 0) + row["messages"]
    assert found == wanted
    in_time = [(row["topic"], row["windowStart"]) for row in rows if not row["late"]]
    assert len(in_time) == len(set(in_time))


def test_windows_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of its slide"):
        HOW._replace(slide=300).check()
    with pytest.raises(ValueError, match="more than 1000 windows"):
        HOW._replace(length=100_000, slide=1).check()
    with pytest.raises(
        ValueError, match=r"the window, 0\.7 s, must be a multiple of its slide, 0\.3 s, such as 0\.6 s"
    ):
        HOW._replace(length=700, slide=300).check()
    with pytest.raises(ValueError, match="at least one millisecond"):
        HOW._replace(length=0).check()
    HOW.check()
