"""Plans for the reader inside the JVM (``jvm/ReadPlan.java``): the segments that it can read, as JSON. Pure.

A plan is part of a pickled partition. The JVM finds it by MAGIC, which no text in a pickle contains: text is UTF-8.
Whatever has no plan is read by Python, as is the rest of a partition from the first entry on that the JVM cannot read.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Final

from pulsarbox.names import parse_topic
from pulsarbox.spark.topic_segments import Reach, TopicSegment

VERSION: Final = 1
MAGIC: Final = b"\xffpulsarbox\xff"
_SIZE: Final = Struct(">I")


def jvm_plan(segments: Sequence[TopicSegment], reach: Reach, *, is_raw: bool) -> bytes:
    """Return the plan of a partition; empty if it has entries that the JVM cannot read.

    ``is_raw``: whether the column ``value`` is the payload, unchanged.
    """
    if reach.is_wire or not reach.data_dir or not segments or not all(map(_is_readable, segments)):
        return b""
    if len({each.instance for each in segments}) > 1:
        return b""
    made = {
        "v": VERSION,
        "directory": str(Path(reach.data_dir).expanduser()),
        "instance": segments[0].instance,
        "raw": is_raw,
        "segments": list(map(_segment, segments)),
    }
    found = json.dumps(made, separators=(",", ":")).encode()
    return MAGIC + _SIZE.pack(len(found)) + found


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
