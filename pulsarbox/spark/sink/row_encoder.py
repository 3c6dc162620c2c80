"""Conversion of a frame's rows to messages: meaning of columns, Arrow batches. Does not import pyspark."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import error as StructError  # noqa: N812 - other exceptions have such names
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.config.setting import did_you_mean
from pulsarbox.protocol.message_encoder import Outgoing
from pulsarbox.spark.decode import row_columns
from pulsarbox.spark.sink.epoch_client import SinkError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

TOPIC: Final = "__topic"
KEY: Final = "__key"
ORDERING_KEY: Final = "__orderingKey"
PROPERTIES: Final = "__messageProperties"
EVENT_TIME: Final = "__eventTime"
DELIVER_AT: Final = "__deliverAt"
DELIVER_AFTER: Final = "__deliverAfter"
SCHEMA: Final = "__schema"

TEXT_OR_BYTES: Final = ("string", "binary")
_TIMES: Final = ("timestamp", "timestamp_ntz", "bigint")
TAKEN: Final[Mapping[str, tuple[str, ...]]] = {
    TOPIC: ("string",),
    KEY: TEXT_OR_BYTES,
    ORDERING_KEY: TEXT_OR_BYTES,
    PROPERTIES: ("map<string,string>",),
    EVENT_TIME: _TIMES,
    DELIVER_AT: _TIMES,
    DELIVER_AFTER: ("bigint", "int"),
    SCHEMA: ("string",),
}
"""Columns that become metadata of the message, with their permitted types. Times as ``bigint`` are milliseconds since
1970; ``__deliverAfter`` is milliseconds from now."""
PASSED_OVER: Final = frozenset(row_columns.NAMES) - TAKEN.keys() | {row_columns.CORRUPT}
"""Columns of rows read from a topic that are ignored: the broker assigns new values."""

Encode = Callable[[Any], bytes | None]
"""Encoder of a value; None is a null value."""


class Encoding(NamedTuple):
    """Encoding of a topic's values."""

    encode: Encode
    schema_version: bytes | None = None
    key: Encode | None = None
    """Encoder of the key out of a value, if the schema separates it from the payload."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """Meaning of a frame's columns. Picklable."""

    columns: tuple[str, ...]
    """Columns that become metadata of the message."""
    values: tuple[str, ...]
    """Columns that form the value: one, or the fields of a record."""
    value_type: str
    """``binary``, ``string``, another Spark type for a single column, ``struct`` for a record."""
    is_typed: bool = False
    """Whether a single column of text or bytes, not named ``value``, is encoded by the topic's schema, if any."""

    @property
    def is_plain(self) -> bool:
        """Whether messages consist of a payload only."""
        return not self.columns and self.is_raw

    @property
    def is_raw(self) -> bool:
        """Whether the value is bytes or text, sent unencoded."""
        return self.value_type in TEXT_OR_BYTES and not self.is_typed


def shape_of(fields: Sequence[tuple[str, str]], topic: str, value_format: str) -> RowShape:
    """Return the meaning of columns; ``fields``: names and Spark SQL types. ``topic``: that of all rows, if any.

    Raises SinkError for columns that cannot be written.
    """
    columns, values = [], []
    for name, kind in fields:
        if name in TAKEN:
            if kind not in TAKEN[name]:
                raise SinkError(f"column {name} has type {kind}: it must be {' or '.join(TAKEN[name])}")
            columns.append(name)
        elif name.startswith("__") and name not in PASSED_OVER:
            nearest = did_you_mean(name, list(TAKEN)) or "."
            raise SinkError(f"unknown column {name}{nearest} Columns of messages are {', '.join(TAKEN)}")
        elif name not in PASSED_OVER:
            values.append((name, kind))
    if DELIVER_AT in columns and DELIVER_AFTER in columns:
        raise SinkError(f"columns {DELIVER_AT} and {DELIVER_AFTER} conflict: remove one")
    if topic:
        columns = [name for name in columns if name != TOPIC]
    elif TOPIC not in columns:
        raise SinkError(f"no topic: set option topic, or add a column {TOPIC} with the topic of each row")
    names = tuple(name for name, _ in values)
    is_typed = value_format == "auto" and [name.lower() for name in names] != [row_columns.VALUE]
    return RowShape(tuple(columns), names, _value_type(values, value_format), is_typed)


def _value_type(values: Sequence[tuple[str, str]], value_format: str) -> str:
    if not values:
        raise SinkError("no value: add a column value (binary or string), or the fields of a record")
    single = values[0][1] if len(values) == 1 else "struct"
    if value_format in ("bytes", "string"):
        wanted = "binary" if value_format == "bytes" else "string"
        if single not in TEXT_OR_BYTES:
            raise SinkError(
                f"valueFormat={value_format} writes one {wanted} column, not {', '.join(n for n, _ in values)}"
            )
    elif value_format == "keyvalue":
        if sorted(name for name, _ in values) != ["key", row_columns.VALUE]:
            raise SinkError(f"valueFormat=keyvalue writes columns key and value, not {', '.join(n for n, _ in values)}")
    elif value_format in ("json", "avro", "protobuf"):
        if not single.startswith("struct") and values[0][0] == row_columns.VALUE:
            raise SinkError(
                f"valueFormat={value_format} writes a record, but value is {single}: use columns or a struct"
            )
        return single if single.startswith("struct") else "struct"
    return single


class Taker:
    """Converter of Arrow batches into messages, for one task."""

    def __init__(
        self, shape: RowShape, topic: str, encoding: Callable[[str, str | None], Encoding], now_ms: Callable[[], int]
    ) -> None:
        """Prepare the conversion; ``encoding`` returns a topic's encoding, by the schema that a row names, if any."""
        self.rows = 0
        """The number of rows converted."""
        self._shape = shape
        self._topic = topic
        self._encoding = encoding
        self._now_ms = now_ms

    def messages(self, batch: "RecordBatch") -> Iterator[tuple[str, list[Outgoing] | list[bytes]]]:
        """Yield the rows of a batch as messages, in order, in runs with their topic.

        Raises SinkError that names the row.
        """
        first, self.rows = self.rows, self.rows + batch.num_rows
        if not batch.num_rows:
            return
        columns = {name: _column(batch, name) for name in self._shape.columns}
        values = self._values(batch)
        if self._shape.is_plain and None not in values:
            yield self._topic, _bytes(values)
            return
        topics, schemas = columns.get(TOPIC), columns.get(SCHEMA)
        start = 0
        for at in range(1, batch.num_rows + 1):
            if at < batch.num_rows and all(each is None or each[at] == each[start] for each in (topics, schemas)):
                continue
            topic = self._topic if topics is None else topics[start]
            if not topic:
                raise SinkError(f"row {first + start} has no {TOPIC}")
            encode = self._encoding(topic, None if schemas is None else schemas[start])
            yield topic, [self._message(columns, values, row, encode, first) for row in range(start, at)]
            start = at

    def _values(self, batch: "RecordBatch") -> list[Any]:
        names = self._shape.values
        if len(names) == 1 and self._shape.value_type != "struct":
            column = batch.column(names[0])
            if self._shape.is_raw:  # the argument for maps halves the speed for bytes and text
                alone: list[Any] = column.to_pylist()
            else:
                alone = column.to_pylist(maps_as_pydicts="strict")
            return alone
        found: list[Any] = batch.select(list(names)).to_pylist(maps_as_pydicts="strict")
        return [row if any(each is not None for each in row.values()) else None for row in found]

    def _message(
        self, columns: dict[str, list[Any]], values: list[Any], row: int, encoding: Encoding, first: int
    ) -> Outgoing:
        try:
            value = values[row]
            key, is_base64 = _key(columns[KEY][row]) if KEY in columns else (None, False)
            if encoding.key is not None:
                key, is_base64 = _pressed(None if value is None else encoding.key(value))
            return Outgoing(
                None if value is None else encoding.encode(value),
                key,
                is_base64,
                _ordering_key(columns[ORDERING_KEY][row]) if ORDERING_KEY in columns else None,
                _properties(columns[PROPERTIES][row]) if PROPERTIES in columns else (),
                _time(columns[EVENT_TIME][row], EVENT_TIME) if EVENT_TIME in columns else 0,
                self._deliver_at(columns, row),
                schema_version=encoding.schema_version,
                null_key=encoding.key is not None and key is None,
            )
        except (ValueError, TypeError, KeyError, OverflowError, AttributeError, StructError) as error:
            raise SinkError(f"row {first + row} cannot be written: {error}") from error

    def _deliver_at(self, columns: dict[str, list[Any]], row: int) -> int:
        if DELIVER_AT in columns:
            return _time(columns[DELIVER_AT][row], DELIVER_AT)
        after = columns[DELIVER_AFTER][row] if DELIVER_AFTER in columns else None
        if after is None:
            return 0
        if after < 0:
            raise ValueError(f"{DELIVER_AFTER} is {after}: it must not be negative")
        return self._now_ms() + after if after else 0


def raw(value: bytes | str) -> bytes:
    """Return bytes, or text as UTF-8."""
    return value if isinstance(value, bytes) else value.encode()


RAW: Final = Encoding(raw)


def _bytes(values: list[Any]) -> list[bytes]:
    return values if isinstance(values[0], bytes) else [value.encode() for value in values]


def _column(batch: "RecordBatch", name: str) -> list[Any]:
    import pyarrow as pa

    column = batch.column(name)
    if pa.types.is_timestamp(column.type):  # in milliseconds, as Python's datetimes are slow
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        return [None if each is None else each // 1000 for each in column.to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def _key(key: str | bytes | None) -> tuple[str | None, bool]:
    """Return the key, and whether it is base64, which is used only for bytes that are not UTF-8."""
    if key is None or isinstance(key, str):
        return key, False
    try:
        return key.decode(), False
    except UnicodeDecodeError:
        return base64.b64encode(key).decode(), True


def _pressed(key: bytes | None) -> tuple[str | None, bool]:
    """Return the key of a KEY_VALUE schema, which Java clients always send in base64."""
    return (None, False) if key is None else (base64.b64encode(key).decode(), True)


def _ordering_key(key: str | bytes | None) -> bytes | None:
    return key.encode() if isinstance(key, str) else key


def _properties(pairs: Sequence[tuple[str, str | None]] | None) -> tuple[tuple[str, str], ...]:
    if not pairs:
        return ()
    for name, value in pairs:
        if value is None:
            raise ValueError(f"property {name!r} is null: property values must be text")
    return tuple(pairs)  # type: ignore[arg-type]


def _time(time: int | None, name: str) -> int:
    if time is None:
        return 0
    if time < 0:
        raise ValueError(f"{name} is before 1970")
    return time
