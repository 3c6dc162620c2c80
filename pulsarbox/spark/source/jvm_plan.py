"""Plans for the reader inside the JVM (``jvm/ReadPlan.java``): the segments that it can read, as JSON. Pure.

A plan is part of a pickled partition. The JVM finds it by MAGIC, which no text in a pickle contains: text is UTF-8.
Whatever has no plan is read by Python, as is the rest of a partition from the first entry on that the JVM cannot read.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import Any, Final

from pulsarbox.names import parse_topic
from pulsarbox.spark.topic_segments import Reach, TopicSegment

VERSION: Final = 2
MAGIC: Final = b"\xffpulsarbox\xff"
_SIZE: Final = Struct(">I")


Programs = Callable[[str], Mapping[str, Any] | None]
"""How the JVM decodes a topic's values, by version of their schema; None if only Python can."""


def jvm_plan(
    segments: Sequence[TopicSegment], reach: Reach, *, is_raw: bool = False, values: "ValuePlan | None" = None
) -> bytes:
    """Return the plan of a partition; empty if it has entries that the JVM cannot read.

    ``is_raw``: whether the column ``value`` is the payload, unchanged. ``values``: how the JVM decodes other values.
    """
    if reach.is_wire or not reach.data_dir or not segments or not all(map(_is_readable, segments)):
        return b""
    if len({each.instance for each in segments}) > 1:
        return b""
    made: dict[str, Any] = {
        "v": VERSION,
        "directory": str(Path(reach.data_dir).expanduser()),
        "instance": segments[0].instance,
        "raw": is_raw,
        "segments": list(map(_segment, segments)),
    }
    told = None if values is None else values.of([segment.topic for segment in segments])
    if told is not None:
        made["values"] = told
    elif values is not None and values.is_strict:
        return b""
    return _packed(made)


def plan_of_nothing() -> bytes:
    """Return the plan of a read without entries, which needs no worker of Python. Spark requires a partition."""
    return _packed({"v": VERSION, "directory": "", "instance": "", "raw": False, "segments": []})


def _packed(made: Mapping[str, Any]) -> bytes:
    found = json.dumps(made, separators=(",", ":")).encode()
    return MAGIC + _SIZE.pack(len(found)) + found


class ValuePlan:
    """How values are decoded, for the plans of a read."""

    def __init__(self, columns: Sequence[str], mode: str, programs: Programs, *, is_strict: bool) -> None:
        """Store the columns of the value. ``mode``: the option. ``is_strict``: a row depends on its value even if the
        query does not use it."""
        self._columns = columns
        self._mode = mode
        self._programs = programs
        self.is_strict = is_strict

    def of(self, topics: Sequence[str]) -> dict[str, Any] | None:
        """Return how the values of segments of these topics are decoded; None if the JVM cannot."""
        programs: dict[str, int] = {}
        schemas: dict[str, int] = {}
        numbers = []
        for topic in topics:
            found = self._programs(topic)
            if found is None:
                return None
            places = [
                [version, programs.setdefault(json.dumps(each), len(programs))] for version, each in found.items()
            ]
            numbers.append(schemas.setdefault(json.dumps(places), len(schemas)))
        return {
            "mode": self._mode,
            "columns": list(self._columns),
            "programs": list(map(json.loads, programs)),
            "schemas": list(map(json.loads, schemas)),
            "of": numbers,
        }


def _is_readable(segment: TopicSegment) -> bool:
    is_plain = segment.end is None and not segment.compacted
    return is_plain and bool(segment.instance and segment.visible)


def _segment(segment: TopicSegment) -> list[object]:
    runs = segment.visible
    first, last = runs[0][0], runs[-1][1]
    return [
        segment.topic,
        parse_topic(segment.topic).partition_index,
        segment.ledger,
        segment.from_batch if first == segment.first else 0,
        segment.to_batch if last == segment.last else 0,
        [entry for run in runs for entry in run],
    ]
