"""Counting of Arrow batches of messages into rollup windows, column by column. Does not import pyspark."""

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pulsarbox.names import parse_topic
from pulsarbox.spark.pipelines.shipped.rollup_windows import GROWTH, Rolling, TaskCounts, WindowCounts

if TYPE_CHECKING:
    from pyarrow import RecordBatch


def counted(batches: "Iterable[RecordBatch]", how: Rolling) -> list[TaskCounts]:
    """Count the messages of a task, by topic; partitions are merged."""
    found: dict[str, TaskCounts] = {}
    for batch in batches:
        if batch.num_rows:
            for part in _parts(batch, how):
                if part.topic in found:
                    found[part.topic].add(part, how.keys)
                else:
                    found[part.topic] = part
    return list(found.values())


def _parts(batch: "RecordBatch", how: Rolling) -> list[TaskCounts]:
    messages = _messages(batch, how)
    newest = messages.group_by("topic").aggregate([("time", "max"), ("published", "max")]).to_pylist()
    parts = {row["topic"]: TaskCounts(row["topic"], row["time_max"], row["published_max"]) for row in newest}
    for number in range(how.length // how.slide):
        start = pc.subtract(pc.multiply(_floor(messages["time"], how.slide), how.slide), number * how.slide)
        _count(messages.append_column("start", start), parts)
    return list(parts.values())


def _messages(batch: "RecordBatch", how: Rolling) -> pa.Table:
    """Return the relevant columns of each message; times in milliseconds."""
    published = _milliseconds(batch.column("__publishTime"))
    happened = _milliseconds(batch.column("__eventTime"))
    ahead = pc.fill_null(pc.greater(happened, pc.add(published, how.delay)), False)
    happened = pc.if_else(ahead, pa.scalar(None, pa.int64()), happened)
    latency = pc.max_element_wise(pc.subtract(published, happened), 0, skip_nulls=False)
    logarithm = pc.ceil(pc.divide(pc.ln(pc.max_element_wise(latency, 1, skip_nulls=False)), GROWTH))
    number = pc.if_else(pc.equal(latency, 0), 0, pc.add(pc.cast(logarithm, pa.int64()), 1))
    return pa.table(
        {
            "topic": _bases(batch.column("__topic")),
            "key": batch.column("__key"),
            "size": pc.fill_null(pc.cast(pc.binary_length(batch.column("value")), pa.int64()), 0),
            "published": published,
            "time": pc.coalesce(happened, published),
            "ahead": pc.cast(ahead, pa.int64()),
            "latency": latency,
            "bucket": number,
        }
    )


def _count(messages: pa.Table, parts: dict[str, TaskCounts]) -> None:
    window = ["topic", "start"]
    sums = messages.group_by(window).aggregate(
        [([], "count_all"), ("size", "sum"), ("ahead", "sum"), ("latency", "count"), ("latency", "max")]
    )
    for row in sums.to_pylist():
        numbers = (row["count_all"], row["size_sum"], row["ahead_sum"], row["latency_count"], row["latency_max"] or 0)
        parts[row["topic"]].windows[row["start"]] = WindowCounts(*numbers)
    for column in ("bucket", "key"):
        some = messages.filter(pc.is_valid(messages[column]))
        for row in some.group_by([*window, column]).aggregate([([], "count_all")]).to_pylist():
            counts = parts[row["topic"]].windows[row["start"]]
            if column == "bucket":
                counts.latencies[row["bucket"]] = row["count_all"]
            else:
                counts.keys[_text(row["key"])] = row["count_all"]


def _milliseconds(column: Any) -> Any:
    return _floor(pc.cast(pc.cast(column, pa.timestamp("us", column.type.tz)), pa.int64()), 1000)


def _floor(column: Any, by: int) -> Any:
    """Divide and round down, also for times before 1970."""
    whole = pc.divide(column, by)  # rounds towards zero
    return pc.if_else(pc.greater(pc.multiply(whole, by), column), pc.subtract(whole, 1), whole)


def _bases(column: Any) -> Any:
    """Return the base topics of partitions."""
    encoded = pc.dictionary_encode(column)
    names = pa.array([str(parse_topic(name).base) for name in encoded.dictionary.to_pylist()], pa.string())
    return names.take(encoded.indices)


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(key).decode()}"
