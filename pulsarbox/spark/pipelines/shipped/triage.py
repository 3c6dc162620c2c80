"""Triage of dead letters with Spark, grouped by failure cause."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.options import READ, parse
from pulsarbox.spark.pipelines.shipped import dead_letter_rows
from pulsarbox.spark.pipelines.shipped.acknowledged_entries import AcknowledgedEntries, acked_of
from pulsarbox.spark.pipelines.shipped.dead_letter_rows import LetterFields
from pulsarbox.spark.pipelines.shipped.one_off_session import topics_of
from pulsarbox.spark.topic_segments import Reach

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

_KNOWN: Final = {
    "fingerprint": "string",
    "reason": "string",
    "origin": "string",
    "subscription": "string",
    "shape": "string",
    "sample": "string",
    "publishTime": "bigint",
    "replays": "int",
}
_KEPT: Final = {
    "value": "binary",
    "__key": "binary",
    "__orderingKey": "binary",
    "__eventTime": "timestamp",
    "__messageProperties": "map<string,string>",
    "__topic": "string",
}


@dataclass(frozen=True)
class Triage:
    """Parameters of a triage."""

    box: Mapping[str, str]
    """The broker, as options of the format."""
    select: Mapping[str, str]
    """The topics, as options of the format."""
    asked: LetterFields
    subscription: str = ""
    """Restricts the triage to messages that it has not acknowledged."""

    @property
    def reach(self) -> Reach:
        """How to reach the broker. Raises OptionError."""
        return reach(parse({**self.box, **self.select}, READ))

    def topics(self) -> list[str]:
        """Return the dead letter topics, each partition separately. Raises NoTopicError and the broker's errors."""
        return topics_of(self.box, self.select)

    def acked(self) -> dict[str, AcknowledgedEntries]:
        """Return the acknowledged entries of each topic; empty without a subscription. Raises PulsarBoxError if a topic
        lacks the subscription, OptionError, and the broker's errors."""
        if not self.subscription:
            return {}
        return {topic: acked_of(self.reach, topic, self.subscription) for topic in self.topics()}


def looked_at(spark: "SparkSession", triage: Triage) -> "DataFrame":
    """Return the letters that match, with their interpretation. Raises Unprocessable."""
    from pulsarbox.spark.arrow_functions import map_in_arrow

    triage.asked.wanted()
    columns = {"columns": ",".join(dead_letter_rows.COLUMNS), "valueFormat": "bytes"}
    if triage.subscription:
        columns["startingOffsets"], columns["subscription"] = "subscription", triage.subscription
    acked = triage.acked()
    rows = spark.read.format("pulsarbox").options(**triage.box, **triage.select, **columns).load()
    fields = ", ".join(f"{name} {kind}" for name, kind in (_KNOWN | _KEPT).items())
    work = partial(_looked_at, triage.asked, Registry(triage.reach), acked)
    return map_in_arrow(rows.select(*dead_letter_rows.COLUMNS), work, fields)


def groups(found: "DataFrame") -> "DataFrame":
    """Group letters by failure cause, the most frequent first."""
    from pyspark.sql import functions as sql

    newest = sql.max_by(sql.struct("sample", sql.col("__topic").alias("sampleTopic")), "publishTime").alias("newest")
    grouped = found.groupBy("fingerprint", "reason", "origin", "subscription", "shape").agg(
        sql.count(sql.lit(1)).alias("count"),
        sql.min("publishTime").alias("first"),
        sql.max("publishTime").alias("last"),
        sql.count(sql.when(sql.col("replays") > 0, 1)).alias("returned"),
        sql.max("replays").alias("replays"),
        newest,
    )
    return grouped.select("*", "newest.*").drop("newest").orderBy(sql.desc("count"), "fingerprint")


def _looked_at(
    asked: LetterFields, registry: Registry, acked: Mapping[str, AcknowledgedEntries], batches: "Iterable[RecordBatch]"
) -> "Iterator[RecordBatch]":
    """Interpret the letters of a task."""
    import pyarrow as pa

    wanted, schemas = asked.wanted(), _Schemas(registry)
    schema = _arrow()
    try:
        for batch in batches:
            rows = []
            for row in _rows(batch):
                topic = row["__topic"]
                known = acked.get(topic)
                if known is not None and known.holds(row["__ledgerId"], row["__entryId"], row["__batchIndex"]):
                    continue
                message = dead_letter_rows.looked(row, schemas.of(topic, row["__schemaVersion"]))
                found = dead_letter_rows.letter(message, wanted)
                if found.wanted:
                    rows.append(_row(row, found))
            yield pa.RecordBatch.from_pylist(rows, schema)
    finally:
        registry.close()


def _rows(batch: "RecordBatch") -> list[dict[str, Any]]:
    """Return the rows with times in milliseconds, as Python's datetime ends with the year 9999."""
    import pyarrow as pa

    times = {}
    for name in ("__publishTime", "__eventTime"):
        column = batch.column(name)
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
        times[name] = [None if each is None else each // 1000 for each in micros]
    rows: list[dict[str, Any]] = batch.select([name for name in batch.schema.names if name not in times]).to_pylist()
    for at, row in enumerate(rows):
        row |= {name: found[at] for name, found in times.items()}
    return rows


def _row(row: dict[str, Any], found: dead_letter_rows.LetterRow) -> dict[str, Any]:
    """Return a result row."""
    return {
        "fingerprint": found.of.digest,
        "reason": found.of.reason,
        "origin": found.of.origin,
        "subscription": found.of.subscription,
        "shape": found.of.shape,
        "sample": found.message_id,
        "publishTime": row["__publishTime"],
        "replays": found.replays,
        "value": row["value"],
        "__key": row["__key"],
        "__orderingKey": row["__orderingKey"],
        "__eventTime": None if row["__eventTime"] is None else row["__eventTime"] * 1000,
        "__messageProperties": row["__messageProperties"],
        "__topic": row["__topic"],
    }


def _arrow() -> Any:
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", "UTC"),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }
    return pa.schema([(name, types[kind]) for name, kind in (_KNOWN | _KEPT).items()])


class _Schemas:
    """Cache of the schemas that letters were written with."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[str, dict[int, Any]] = defaultdict(dict)

    def of(self, topic: str, version: bytes | None) -> dict[int, Any]:
        """Return the cached schemas of a topic, including this version's."""
        known = self._known[topic]
        if version and len(version) == 8 and (number := int.from_bytes(version, "big")) not in known:
            schema = self._registry.at(topic, version)
            if schema is not None:
                known[number] = schema
        return known
