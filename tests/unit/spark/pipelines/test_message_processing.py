"""Functions without Spark: values, retries, dead letters, state and timers, on a controlled clock."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pulsarbox.pipelines import Function, FunctionError, PipelineError, Trial, frame, function
from pulsarbox.spark.pipelines.message_processing import EncodedMessage, Incoming, Processor


def trial(process: Any, **more: Any) -> Trial:
    declared = {"inputs": "raw", "output": "clean", "dead_letter": "DLQ", "name": "tried"} | more
    return Trial(Function(process=process, **declared))


def texts(sent: Any) -> list[str]:
    return [each.text for each in sent]


@pytest.mark.parametrize(
    ("gives", "sent"),
    [
        (None, []),
        (b"\x00", ["\x00"]),
        ("é", ["é"]),
        ({"a": 1}, ['{"a": 1}']),
        (7, ["7"]),
        (["a", None, "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        (iter("ab"), ["a", "b"]),
        ([], []),
    ],
)
def test_what_a_function_gives(gives: Any, sent: list[str]) -> None:
    assert texts(trial(lambda value, ctx: gives).send("x")) == sent


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [("bytes", b"\xff", b"\xff"), ("text", "é", "é"), ("json", {"a": [1]}, {"a": [1]}), ("json", None, None)],
)
def test_what_a_function_is_given(kind: str, given: Any, value: Any) -> None:
    seen: list[Any] = []
    trial(lambda value, ctx: seen.append(value), value=kind).send(given)
    assert seen == [value]


def test_key_and_event_time_go_on_and_properties_do_not() -> None:
    made = trial(lambda value, ctx: value)
    (sent,) = made.send("x", key="k", properties={"a": "b"}, event_time=5)
    assert sent == ("clean", b"x", "k", {}, 5)


def test_a_message_says_where_it_goes_and_with_what() -> None:
    def route(value: bytes, ctx: Any) -> Any:
        yield ctx.message(value, "acme/shop/other", key="new", properties={"from": ctx.topic}, event_time=7)
        yield ctx.message(value, key=None)

    first, second = trial(route).send("x", key="k", event_time=5)
    topic = "persistent://public/default/raw"
    assert first == ("persistent://acme/shop/other", b"x", "new", {"from": topic}, 7)
    assert second == ("clean", b"x", None, {}, 5)


def test_what_ctx_tells() -> None:
    seen: list[Any] = []

    def look(value: Any, ctx: Any) -> None:
        seen.append((ctx.topic, ctx.key, ctx.properties, ctx.publish_time, ctx.message_id, ctx.attempt, ctx.config))
        seen.append(ctx.now())

    made = trial(look, config={"limit": 3})
    made.advance("1s")
    made.send("x", key="k", properties={"a": "b"}, topic="other")
    start = 1_700_000_001_000
    topic = "persistent://public/default/other"
    assert seen == [(topic, "k", {"a": "b"}, start, "1:1:-1:-1", 1, {"limit": 3}), start]


def flaky(failures: int) -> Any:
    left = [failures]

    def process(value: Any, ctx: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise OSError(f"attempt {ctx.attempt}")
        return f"attempt {ctx.attempt}"

    return process


def test_what_fails_is_tried_again_and_then_a_dead_letter_with_the_reason() -> None:
    assert texts(trial(flaky(2)).send("x")) == ["attempt 3"]
    made = trial(flaky(3), name="cleaning")
    assert made.send("x", key="k", properties={"a": "b"}, event_time=5) == []
    (letter,) = made.dead_letters
    assert (letter.topic, letter.value, letter.key, letter.event_time) == ("DLQ", b"x", "k", 5)
    reason = letter.properties["FAILURE_REASON"]
    assert reason.startswith("test_message_processing.py:")
    assert reason.endswith(": OSError: attempt 3")
    assert {**letter.properties, "FAILURE_REASON": ""} == {
        "a": "b",
        "FAILURE_REASON": "",
        "PIPELINE_ATTEMPTS": "3",
        "PIPELINE_QUERY": "cleaning",
        "REAL_TOPIC": "persistent://public/default/raw",
        "ORIGIN_MESSAGE_ID": "1:1:-1:-1",
    }
    assert made.sent == []


def test_a_dead_letter_that_fails_again_is_still_known_where_it_came_from_first() -> None:
    made = trial(flaky(3))
    made.send("x", properties={"REAL_TOPIC": "first", "ORIGIN_MESSAGE_ID": "9:9:-1"})
    (letter,) = made.dead_letters
    assert (letter.properties["REAL_TOPIC"], letter.properties["ORIGIN_MESSAGE_ID"]) == ("first", "9:9:-1")


def test_an_exception_that_says_nothing_is_told_by_its_name() -> None:
    def silent(value: Any, ctx: Any) -> None:
        raise LookupError

    made = trial(silent)
    made.send("x")
    place, _, name = made.dead_letters[0].properties["FAILURE_REASON"].partition(": ")
    assert (place.partition(":")[0], name) == ("test_message_processing.py", "LookupError")


def test_a_value_that_cannot_be_read_is_not_tried_again() -> None:
    made = trial(flaky(0), value="json")
    made.send("{")
    (letter,) = made.dead_letters
    assert (letter.value, letter.properties["PIPELINE_ATTEMPTS"]) == (b"{", "1")
    assert "the value is not valid json" in letter.properties["FAILURE_REASON"]


def test_without_a_topic_for_dead_letters_the_message_is_named() -> None:
    with pytest.raises(FunctionError, match=r"OSError: attempt 1 \(message 1:1:-1:-1 of .*/raw, 1 times"):
        trial(flaky(9), dead_letter=None, retries=0).send("x")


def test_what_cannot_be_sent_is_a_dead_letter_too() -> None:
    made = trial(lambda value, ctx: object())
    made.send("x")
    assert "not JSON serializable" in made.dead_letters[0].properties["FAILURE_REASON"]
    made = trial(lambda value, ctx: "y", output=None)
    made.send("x")
    assert "no topic" in made.dead_letters[0].properties["FAILURE_REASON"]


def test_who_ends_the_process_ends_its_message_alone() -> None:
    made = trial(lambda value, ctx: sys.exit(f"no {value!r}"), retries=1)
    made.send("x")
    told = made.dead_letters[0].properties
    assert told["FAILURE_REASON"].endswith(": SystemExit: no b'x'")
    assert told["PIPELINE_ATTEMPTS"] == "2"
    trial(lambda value, ctx: None, key=lambda value, ctx: sys.exit()).send("x")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"properties": {"n": 1}}, "property 'n' is 1: names and values must be text"),
        ({"properties": {"n": "\ud800"}}, "surrogates not allowed"),
        ({"event_time": 1.5}, "1.5 is not a time in whole milliseconds since 1970"),
        ({"event_time": -1}, "-1 is not a time"),
        ({"event_time": 1 << 63}, "is not a time"),
    ],
)
def test_what_no_message_can_have_is_a_dead_letter_and_no_end_of_the_query(more: Any, why: str) -> None:
    made = trial(lambda value, ctx: ctx.message(value, **more), retries=0)
    assert made.send("x") == []
    assert why in made.dead_letters[0].properties["FAILURE_REASON"]


def test_a_reason_that_is_no_text_can_be_sent() -> None:
    def refuse(value: Any, ctx: Any) -> None:
        raise ValueError(value["name"])

    made = trial(refuse, value="json", retries=0)
    made.send(b'{"name": "a\\ud800"}')
    assert made.dead_letters[0].properties["FAILURE_REASON"].encode().endswith(b"ValueError: a\\ud800")


def count(value: str, ctx: Any) -> Any:
    total = ctx.state.get(default=0) + 1
    ctx.state.put(total)
    if value == "bad":
        raise ValueError("bad")
    return total


def test_state_is_kept_by_key_and_a_failed_message_leaves_none_behind() -> None:
    made = trial(count, value="text", state=True)
    for key, value in (("a", "x"), ("a", "bad"), ("b", "x"), ("a", "x")):
        made.send(value, key=key)
    assert texts(made.sent) == ["1", "1", "2"]
    assert (made.state("a"), made.state("b"), made.state("c")) == ({"value": 2}, {"value": 1}, {})
    assert len(made.dead_letters) == 1


def test_state_by_another_key_than_the_messages() -> None:
    made = trial(count, value="json", key=lambda value, ctx: value["user"])
    made.send({"user": "ann"}, key="k1")
    made.send({"user": "ann"}, key="k2")
    assert made.state("ann") == {"value": 2}
    made.send({"nobody": 1}, key="k3")  # its key cannot be created
    assert "KeyError: 'user'" in made.dead_letters[0].properties["FAILURE_REASON"]
    assert made.state("k3") == {}


def test_a_key_that_nothing_can_be_kept_by_is_a_dead_letter() -> None:
    made = trial(count, value="text", key=lambda value, ctx: {value}, retries=0)
    made.send("x", key="k")
    assert "not JSON serializable" in made.dead_letters[0].properties["FAILURE_REASON"]
    assert made.state("k") == {}


def test_several_values_and_deleting() -> None:
    def process(value: str, ctx: Any) -> Any:
        ctx.state.put(value, "last")
        ctx.state.put([1], "other")
        assert ctx.state.names() == ["last", "other"]
        ctx.state.delete("other")
        return ",".join(ctx.state.names())

    assert texts(trial(process, value="text", state=True).send("x")) == ["last"]


def test_state_has_to_be_declared() -> None:
    made = trial(count, value="text", retries=0)
    made.send("x")
    assert "requires @function(..., state=True)" in made.dead_letters[0].properties["FAILURE_REASON"]


def silent(value: str, ctx: Any) -> None:
    ctx.state.put(value)
    ctx.state.timer(after="5m")
    ctx.state.timer("daily", at=1_700_000_000_000 + 86_400_000)


def told(name: str, ctx: Any) -> Iterator[str]:
    yield f"{name} {ctx.key} {ctx.state.get()} {ctx.now() - 1_700_000_000_000}"
    if name == "daily":
        raise RuntimeError("no more")


def test_timers_are_called_when_the_clock_comes_to_them() -> None:
    made = trial(silent, value="text", state=True, on_timer=told, retries=0)
    made.send("x", key="a")
    made.advance("4m")
    made.send("y", key="b")
    made.send("z", key="a")  # restarts its timer
    assert made.advance("4m59s") == []
    assert texts(made.advance("1s")) == ["timer a z 540000", "timer b y 540000"]
    assert list(made.timers("a")) == ["daily"]
    assert made.advance("1d") == []
    (first, second) = made.dead_letters
    assert (first.key, second.key, first.value) == ("a", "b", None)
    assert "RuntimeError: no more" in first.properties["FAILURE_REASON"]
    assert made.timers("a") == {}


def test_a_timer_can_be_cancelled_and_takes_one_time() -> None:
    def process(value: str, ctx: Any) -> None:
        ctx.state.timer(after="1s")
        ctx.state.cancel()
        with pytest.raises(ValueError, match="takes either after= or at="):
            ctx.state.timer()

    made = trial(process, value="text", state=True, on_timer=told)
    made.send("x")
    assert made.timers() == {}


@pytest.mark.parametrize("at", [1_700_000_000_000.5, -1, "soon"])
def test_a_timer_at_no_time_is_a_dead_letter_and_leaves_nothing_behind(at: Any) -> None:
    def process(value: str, ctx: Any) -> None:
        ctx.state.put(value)
        ctx.state.timer(at=at)

    made = trial(process, value="text", state=True, on_timer=told, retries=0)
    made.send("x", key="a")
    assert "is not a time in whole milliseconds since 1970" in made.dead_letters[0].properties["FAILURE_REASON"]
    assert (made.state("a"), made.timers("a"), made.advance("1d")) == ({}, {}, [])


def test_a_trial_is_of_functions() -> None:
    with pytest.raises(PipelineError, match="Trial requires a @function"):
        Trial(frame(inputs="a", output="b")(lambda df: df))
    with pytest.raises(PipelineError, match="neither a @frame nor a @function"):
        Trial(count)
    assert texts(Trial(function(inputs="a", output="b", name="same")(lambda value, ctx: value)).send("x")) == ["x"]


def test_a_key_that_is_no_text() -> None:
    made = Processor(Function(process=lambda value, ctx: repr(ctx.key), inputs="a", output="b"), lambda: 0)
    assert made.process(Incoming(b"x", b"\xff")) == [
        EncodedMessage("persistent://public/default/b", b"b'\\xff'", b"\xff", {}, None)
    ]
