"""Backfill: publishes rows of files, tables or any Spark source, with their event times and keys."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.errors import PreconditionFailed
from pulsarbox.spark.pipelines import text_files
from pulsarbox.spark.sink.row_encoder import EVENT_TIME, KEY, ORDERING_KEY, PROPERTIES, TOPIC
from pulsarbox.spark.spark_naming import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KEPT: Final = (KEY, ORDERING_KEY, PROPERTIES, EVENT_TIME)
"""Columns used as they are by default, as in rows that `export` has written."""
_OF_A_BROKER: Final = ("__messageId", "__publishTime", "__partition", "__ledgerId", "__entryId", "__batchIndex")
_MORE: Final = ("__producerName", "__sequenceId", "__schemaVersion", "__redeliveryCount", "_corrupt_record")
_STRICT: Final = {"mode": "FAILFAST"}
_USUAL: Final = {"csv": {**text_files.READ["csv"], **_STRICT}, "json": _STRICT}
"""Default options by format: malformed input fails the job before anything is published."""
_FIELD: Final = re.compile(r"(?!\d)[\w$]+")
_NUMBERS: Final = ("bigint", "int", "smallint", "tinyint")


@dataclass(frozen=True)
class Source:
    """Spark source to read."""

    form: str
    """``parquet``, ``json``, ``csv``, or any other."""
    paths: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    """The columns as Spark SQL DDL; empty to take them from the source."""

    def read(self, spark: "SparkSession") -> "DataFrame":
        """Return the rows. Raises Spark's errors."""
        usual = _USUAL.get(self.form, {})
        if self.form == "csv" and not self.schema and "inferschema" not in map(str.lower, self.options):
            usual = {**usual, "nullValue": text_files.NO_TEXT}  # all columns are text, which includes ""
        reader = spark.read.format(self.form).options(**{**usual, **self.options})
        if self.schema:
            reader = reader.schema(self.schema)
        return reader.load(list(self.paths)) if self.paths else reader.load()


@dataclass(frozen=True)
class ColumnMapping:
    """Mapping of columns to parts of a message; empty: none."""

    topic: str = ""
    """The topic of all rows."""
    topic_column: str = ""
    value: str = ""
    """The raw payload; if empty, all columns without another use become fields of a record."""
    key: str = ""
    ordering_key: str = ""
    event_time: str = ""
    properties: Sequence[str] = ()
    """Columns that become properties of the same name."""
    order_by: Sequence[str] = ()
    """Publish in the order of these columns instead of the source's."""
    encoding: str = "text"
    """Encoding of bytes in text columns, for the payload and both keys: one of BYTES."""

    def asked(self) -> dict[str, str]:
        """Return the mapping as recorded by a job."""
        named = {name: getattr(self, name) for name in ("topic", "topic_column", "value", "key", "ordering_key")}
        named |= {"event_time": self.event_time, "properties": ",".join(self.properties)}
        named |= {"bytes": self.encoding} if self.encoding != "text" else {}
        return {name: text for name, text in (named | {"order_by": ",".join(self.order_by)}).items() if text}

    def named(self) -> list[str]:
        """Return all named columns."""
        some = [self.topic_column, self.value, self.key, self.ordering_key, self.event_time]
        return [name for name in (*some, *self.properties, *self.order_by) if name]


def messages(rows: "DataFrame", given: ColumnMapping) -> "DataFrame":
    """Return rows as messages, in a frame for the sink. Raises PreconditionFailed for missing columns."""
    there = dict(rows.dtypes)
    for name in given.named():
        if name not in there:
            raise PreconditionFailed(f"unknown column {name}; expected one of {', '.join(there)}")
    if given.order_by:
        rows = rows.orderBy(*(rows[quoted(name)] for name in given.order_by))
    made = _meaning(rows, there, given)
    values = _values(there, given)
    if not values:
        raise PreconditionFailed("no column is left for the value: set one with --value")
    for name in values if not given.value else ():
        if not _FIELD.fullmatch(name):
            raise PreconditionFailed(
                f"column {name!r} cannot be a record field: field names consist of letters, digits, _ and $. Rename it "
                "(for CSV with --schema), use it as --key or --property, or publish a single column with --value"
            )
    columns = [rows[quoted(name)] for name in values]
    fields = [_bytes(rows, given.value, there, given.encoding).alias("value")] if given.value else columns
    return rows.select(*fields, *(column.alias(name) for name, column in made.items()))


def is_payload(columns: Mapping[str, str]) -> bool:
    """Return whether stored rows hold raw payloads, not record fields. ``columns``: types by name."""
    values = [(name, kind) for name, kind in columns.items() if not name.startswith("__")]
    return values in ([("value", "binary")], [("value", "string")])


def _meaning(rows: "DataFrame", there: Mapping[str, str], given: ColumnMapping) -> "dict[str, Column]":
    made: dict[str, Column] = {}
    for name, column in ((KEY, given.key), (ORDERING_KEY, given.ordering_key)):
        if column or name in there:
            made[name] = _bytes(rows, column or name, there, given.encoding)
    if EVENT_TIME in there:
        is_text = there[EVENT_TIME] == "string"
        made[EVENT_TIME] = _time(rows, EVENT_TIME, "string") if is_text else rows[EVENT_TIME]
    if PROPERTIES in there:
        made[PROPERTIES] = _map(rows, there[PROPERTIES])
    if given.event_time:
        made[EVENT_TIME] = _time(rows, given.event_time, there[given.event_time])
    if given.properties:
        made[PROPERTIES] = _properties(rows, given.properties, there)
    if given.topic_column:
        made[TOPIC] = _text(rows, given.topic_column, there[given.topic_column])
    return made


def _values(there: Mapping[str, str], given: ColumnMapping) -> list[str]:
    """Return the columns of the value: those without another use."""
    if given.value:
        return [given.value]
    used = {given.topic_column, given.key, given.ordering_key, *given.properties, TOPIC, *KEPT, *_OF_A_BROKER, *_MORE}
    return [name for name in there if name not in used]


def _bytes(rows: "DataFrame", name: str, there: Mapping[str, str], encoding: str) -> "Column":
    """Return a key or payload: bytes, or text decoded with ``encoding``."""
    from pyspark.sql import functions as sql

    text = _text(rows, name, there[name])
    return sql.to_binary(text, sql.lit(encoding)) if encoding != "text" and there[name] == "string" else text


def _map(rows: "DataFrame", kind: str) -> "Column":
    """Return the properties, which are JSON text in CSV, and a struct in JSON with an inferred schema."""
    from pyspark.sql import functions as sql

    column = rows[PROPERTIES]
    if kind.startswith("map"):
        return column
    text = sql.to_json(column) if kind.startswith("struct") else column.cast("string")
    return sql.from_json(text, "map<string,string>", {"mode": "FAILFAST"})


def _text(rows: "DataFrame", name: str, kind: str) -> "Column":
    return rows[quoted(name)] if kind in ("string", "binary") else rows[quoted(name)].cast("string")


def _time(rows: "DataFrame", name: str, kind: str) -> "Column":
    """Return an event time from a timestamp, date, text or ms since 1970. An earlier one fails the job."""
    from pyspark.sql import functions as sql

    is_number = kind in _NUMBERS
    made = rows[quoted(name)].cast("bigint" if is_number else "timestamp")
    begin = sql.lit(0) if is_number else sql.timestamp_seconds(sql.lit(0))
    why = "is before 1970, which is not a valid event time: remove the row, or omit --event-time"
    refused = sql.raise_error(sql.concat_ws(" ", sql.lit(f"column {name}:"), made.cast("string"), sql.lit(why)))
    return sql.when(made < begin, refused).otherwise(made)


def _properties(rows: "DataFrame", names: Sequence[str], there: Mapping[str, str]) -> "Column":
    """Return a map of the non-null properties."""
    from pyspark.sql import functions as sql

    pairs: list[Any] = []
    for name in names:
        text = rows[quoted(name)].cast("string")
        pairs.append(sql.when(text.isNotNull(), sql.struct(sql.lit(name).alias("key"), text.alias("value"))))
    made = sql.map_from_entries(sql.filter(sql.array(*pairs), lambda pair: pair.isNotNull()))
    return sql.map_concat(_map(rows, there[PROPERTIES]), made) if PROPERTIES in there else made
