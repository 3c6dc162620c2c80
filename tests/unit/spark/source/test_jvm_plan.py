"""Plans for the reader inside the JVM, and what remains of a partition that it has begun."""

import json
import pickle
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from pulsarbox.spark.source.jvm_plan import MAGIC, ValuePlan, jvm_plan, plan_of_nothing
from pulsarbox.spark.source.partition_read import PartitionPart, rest_of_part
from pulsarbox.spark.topic_segments import Reach, ReadPosition, TopicSegment

TOPIC = "persistent://public/default/t-partition-3"
SEGMENT = TopicSegment(TOPIC, 7, 10, 29, 20, 2000, instance="id")
REACH = Reach("pulsar://localhost:6650", data_dir="/data")


def parsed(plan: bytes) -> dict[str, Any]:
    assert plan.startswith(MAGIC)
    head = len(MAGIC) + 4
    assert len(plan) == head + int.from_bytes(plan[len(MAGIC) : head])
    found: dict[str, Any] = json.loads(plan[head:])
    return found


def test_a_plan_says_where_and_which_entries_to_read() -> None:
    hidden = SEGMENT._replace(hidden=((12, 13), (20, 20)), from_batch=2, to_batch=5)
    found = parsed(jvm_plan([SEGMENT, hidden], REACH, is_raw=True))
    assert found == {
        "v": 2,
        "directory": "/data",
        "instance": "id",
        "raw": True,
        "segments": [[TOPIC, 3, 7, 0, 0, [10, 29]], [TOPIC, 3, 7, 2, 5, [10, 11, 14, 19, 21, 29]]],
    }


def test_a_read_without_entries_has_a_plan() -> None:
    found = parsed(plan_of_nothing())
    assert found["segments"] == []
    assert found["v"] == parsed(jvm_plan([SEGMENT], REACH, is_raw=True))["v"]


def test_a_plan_says_how_to_decode_values() -> None:
    other = SEGMENT._replace(topic="persistent://public/default/u")
    programs = {TOPIC: {"": ["avro", 1], "00": ["avro", 2]}, other.topic: {"": ["avro", 1]}}
    values = ValuePlan(["a", "b"], "dropmalformed", programs.get, is_strict=True)
    assert parsed(jvm_plan([SEGMENT, other, SEGMENT], REACH, values=values))["values"] == {
        "mode": "dropmalformed",
        "columns": ["a", "b"],
        "programs": [["avro", 1], ["avro", 2]],
        "schemas": [[["", 0], ["00", 1]], [["", 0]]],
        "of": [0, 1, 0],
    }


@pytest.mark.parametrize("is_strict", [False, True])
def test_values_that_only_python_decodes(is_strict: bool) -> None:
    values = ValuePlan(["a"], "permissive", {TOPIC: None}.get, is_strict=is_strict)
    plan = jvm_plan([SEGMENT], REACH, values=values)
    assert plan == b"" if is_strict else "values" not in parsed(plan)


def test_limits_within_a_hidden_entry_do_not_count() -> None:
    hidden = SEGMENT._replace(hidden=((10, 11), (29, 29)), from_batch=2, to_batch=5)
    assert parsed(jvm_plan([hidden], REACH, is_raw=False))["segments"] == [[TOPIC, 3, 7, 0, 0, [12, 28]]]


def test_a_directory_in_the_home_of_the_user() -> None:
    plan = jvm_plan([SEGMENT], Reach("pulsar://localhost:6650", data_dir="~/data"), is_raw=True)
    assert parsed(plan)["directory"] == str(Path.home() / "data")


@pytest.mark.parametrize(
    ("segments", "reach"),
    [
        ([SEGMENT], Reach("pulsar://localhost:6650")),
        ([SEGMENT], Reach("pulsar://localhost:6650", data_dir="/data", access="wire")),
        ([], REACH),
        ([SEGMENT, SEGMENT._replace(end=ReadPosition(8, 0))], REACH),
        ([SEGMENT._replace(compacted=9)], REACH),
        ([SEGMENT._replace(instance="")], REACH),
        ([SEGMENT, SEGMENT._replace(instance="other")], REACH),
        ([SEGMENT._replace(hidden=((10, 29),))], REACH),
    ],
)
def test_what_only_python_reads_has_no_plan(segments: list[TopicSegment], reach: Reach) -> None:
    assert jvm_plan(segments, reach, is_raw=True) == b""


def rest(segments: tuple[TopicSegment, ...], *firsts: int) -> tuple[TopicSegment, ...]:
    pickled = pickle.dumps(PartitionPart(segments, b"plan"))
    part = rest_of_part(pickled, pack(f">{len(firsts)}q", *firsts))
    assert part.plan == b""
    found: tuple[TopicSegment, ...] = part.value
    return found


def test_the_rest_of_a_partition() -> None:
    begun, other = SEGMENT._replace(from_batch=4, hidden=((12, 15),)), SEGMENT._replace(ledger=8)
    assert rest((begun, other), 10, 30) == (begun,)
    assert rest((begun, other), 14, 10) == (begun._replace(first=14, from_batch=0, hidden=((14, 15),)), other)
    assert rest((begun, other), 30, 12) == (other._replace(first=12),)


def test_a_first_entry_that_is_hidden_keeps_the_segment_whole() -> None:
    hidden = SEGMENT._replace(hidden=((10, 12),))
    assert rest((hidden,), 13) == (hidden,)
