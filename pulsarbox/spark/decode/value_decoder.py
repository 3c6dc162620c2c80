"""Decoding of values into Arrow by their writer's schema: in bulk, or one by one if some cannot be read."""

import io
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from struct import Struct
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.native_definition import parse
from pulsarbox.protocol.schema.types import spelling
from pulsarbox.spark.decode.arrow_coercion import shaper
from pulsarbox.spark.decode.value_programs import TEXT, Node, of_avro, of_json
from pulsarbox.spark.schema.column_types import LOGICAL
from pulsarbox.spark.schema.protobuf_native import reader_of

Read = Callable[[bytes], Any]
"""Reader of one value into Python. May raise any exception."""


RECORDS: Final = (Schema.Avro, Schema.Json, Schema.ProtobufNative)
"""Schema types whose values have fields."""


class UnreadableValues(ValueError):
    """The schema's values cannot be read as requested; the message says why."""


class Bad(NamedTuple):
    """Value that does not match its schema."""

    at: int
    reason: str


class Decoder:
    """Decoder of values of one schema into one Arrow type."""

    def __init__(
        self,
        target: pa.DataType,
        read: Read,
        many: Callable[[list[bytes]], pa.Array] | None = None,
        *,
        is_plain: bool = False,
        program: Node | None = None,
    ) -> None:
        """Store the readers. ``many`` reads all values in bulk; if it raises, they are read one by one.

        ``is_plain``: the values are raw bytes or UTF-8 text. ``program``: how the JVM decodes them, if it can.
        """
        self.program = program
        self._type = target
        self.is_plain = is_plain
        self._read = read
        self._many = many
        self._shape = shaper(target)

    def of_bytes(self, values: pa.Array) -> pa.Array | None:
        """Decode a binary Arrow array. None if the values are not plain or one cannot be read."""
        if not self.is_plain:
            return None
        try:
            return values if values.type == self._type else values.cast(self._type)
        except pa.ArrowInvalid:
            return None

    def array(self, values: list[bytes]) -> tuple[pa.Array, list[Bad]]:
        """Return all values, null for unreadable ones, and the list of those."""
        if self._many is not None:
            try:
                return self._many(values), []
            except Exception:  # read one by one to identify the value at fault
                pass
        found, bad = [], []
        for at, value in enumerate(values):
            try:
                shaped = self._shape(self._read(value))
                pa.array([shaped], self._type)
            except Exception as error:  # payloads are untrusted
                shaped = None
                bad.append(Bad(at, f"{type(error).__name__}: {error}"[:200]))
            found.append(shaped)
        return pa.array(found, self._type), bad


def decoder(writer: Schema | None, newest: Schema | None, target: pa.DataType, form: str = "auto") -> Decoder:
    """Return a decoder into ``target`` of values written with ``writer``, or without a schema; records become structs.

    ``newest`` supplies the defaults of fields that an older record lacks. ``form`` is the option valueFormat. Raises
    Unreadable.
    """
    kind = None if writer is None else writer.type
    if form in ("bytes", "string") or (kind is None and form == "auto"):
        return _plain(target)
    if form == "json" or kind == Schema.Json:
        return _json(target)
    if writer is None or kind is None:
        raise UnreadableValues("no schema, which valueFormat=avro requires")
    try:
        if kind == Schema.Avro:
            return _avro(writer, newest, target)
        if kind == Schema.ProtobufNative:
            return Decoder(target, reader_of(parse(writer.schema_data)))
    except (InvalidSchema, ValueError, KeyError, TypeError) as error:
        raise UnreadableValues(f"unusable schema: {error}") from None
    if kind in _PRIMITIVES:
        program = TEXT if kind == Schema.String and pa.types.is_string(target) else None
        return Decoder(target, _PRIMITIVES[kind], _all_at_once(kind, target), program=program)
    if pa.types.is_binary(target) or pa.types.is_string(target):
        return _plain(target)
    raise UnreadableValues(
        f"values of {spelling(kind)} schemas cannot be split into columns: read them with valueFormat=bytes"
    )


def is_pair(schema: Schema | None) -> bool:
    """Return whether the schema's values are key-value pairs."""
    return schema is not None and schema.type == Schema.Type.KeyValue


def pair(value: bytes) -> tuple[bytes | None, bytes | None]:
    """Split a payload into its key and value, each prefixed with its length. Raises ValueError."""
    found: list[bytes | None] = []
    at = 0
    for _ in range(2):
        length = int.from_bytes(value[at : at + 4], "big", signed=True)
        end = at + 4 + max(length, 0)
        if len(value) < end:
            raise ValueError("not a key and a value")
        found.append(None if length < 0 else value[at + 4 : end])
        at = end
    return found[0], found[1]


# Bytes and text -------------------------------------------------------------------------------------------------------


def _plain(target: pa.DataType) -> Decoder:
    if pa.types.is_binary(target):
        return Decoder(target, bytes, lambda values: pa.array(values, target), is_plain=True)
    if pa.types.is_string(target):
        many = lambda values: pa.array(values, pa.binary()).cast(target)  # noqa: E731
        return Decoder(target, bytes.decode, many, is_plain=True, program=TEXT)
    raise UnreadableValues(
        f"the values are bytes, which can be read as binary or string, not as {target}; for JSON, set valueFormat=json"
    )


# JSON -----------------------------------------------------------------------------------------------------------------


def _json(target: pa.DataType) -> Decoder:
    if not pa.types.is_struct(target):
        return Decoder(target, json.loads)
    return Decoder(target, _object, _objects(target) if _has_arrow_type(target) else None, program=of_json(target))


def _object(value: bytes) -> dict[str, Any]:
    found = json.loads(value)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def _has_arrow_type(target: pa.DataType) -> bool:
    """Return whether Arrow's JSON reader supports the type."""
    if pa.types.is_struct(target):
        return target.num_fields > 0 and all(_has_arrow_type(target.field(at).type) for at in range(target.num_fields))
    if pa.types.is_list(target):
        return _has_arrow_type(target.value_type)
    is_a = pa.types
    return any(fits(target) for fits in (is_a.is_integer, is_a.is_floating, is_a.is_boolean, is_a.is_string))


def _objects(target: pa.DataType) -> Callable[[list[bytes]], pa.Array]:
    """Return a bulk reader of JSON objects, on one line each or several, as the official Python client writes them.

    Arrow reads a sequence of objects regardless of line breaks. A value that begins and ends with a brace but leaves an
    object open makes the whole sequence invalid. So if the counts match, each value is exactly one object.
    """
    from pyarrow import json as arrow_json

    fields = [target.field(at) for at in range(target.num_fields)]
    told = arrow_json.ParseOptions(
        explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore", newlines_in_values=True
    )

    def many(values: list[bytes]) -> pa.Array:
        if not _have_braces(values):
            values = [each.strip(_JSON_SPACE) for each in values]
            if not _have_braces(values):
                raise ValueError("not objects")
        joined = b"\n".join(values)
        size = arrow_json.ReadOptions(use_threads=False, block_size=len(joined) + 1)
        found = arrow_json.read_json(io.BytesIO(joined), read_options=size, parse_options=told)
        if found.num_rows != len(values):
            raise ValueError("not one object each")
        arrays = [found.column(field.name).combine_chunks() for field in fields]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    return many


_JSON_SPACE: Final = b" \t\r\n"


def _have_braces(values: list[bytes]) -> bool:
    return all(each[:1] == b"{" and each[-1:] == b"}" for each in values)


# Avro -----------------------------------------------------------------------------------------------------------------

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.]")


def _avro(writer: Schema, newest: Schema | None, target: pa.DataType) -> Decoder:
    from fastavro import parse_schema, schemaless_reader

    written = _definition(writer)
    wanted = written
    if newest is not None and newest.type == Schema.Avro and newest.schema_data != writer.schema_data:
        wanted = _definition(newest)
        if isinstance(written, dict) and isinstance(wanted, dict):  # records are matched by field, whatever their name
            wanted = {**wanted, **{name: written[name] for name in ("name", "namespace") if name in written}}
    parsed, reader = parse_schema(written), None if wanted is written else parse_schema(wanted)

    def read(value: bytes) -> Any:
        return schemaless_reader(io.BytesIO(value), parsed, reader)

    program = of_avro(written, wanted, target)
    return Decoder(target, read, lambda values: pa.array([read(value) for value in values], target), program=program)


def _definition(schema: Schema) -> Any:
    return _cleaned(json.loads(schema.schema_data))


def _cleaned(definition: Any) -> Any:
    """Drop logical types without a Spark type, and replace characters invalid in Avro names, as Java's ``$``."""
    if isinstance(definition, list):
        return [_cleaned(each) for each in definition]
    if isinstance(definition, str):
        return _NO_NAME.sub("_", definition)
    made = dict(definition)
    if made.get("logicalType") not in LOGICAL or made.get("precision", 0) > 38:
        made.pop("logicalType", None)
    for name in ("name", "namespace"):
        if isinstance(made.get(name), str):
            made[name] = _NO_NAME.sub("_", made[name])
    for name in ("type", "items", "values"):
        if name in made:
            made[name] = _cleaned(made[name])
    if isinstance(made.get("fields"), list):
        made["fields"] = [{**each, "type": _cleaned(each["type"])} for each in made["fields"]]
    return made


# Numbers, times -------------------------------------------------------------------------------------------------------

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = date(1970, 1, 1)


def _number(form: str) -> Read:
    unpack = Struct(form).unpack
    return lambda value: unpack(value)[0]


def _moment(value: bytes) -> datetime:
    return _EPOCH + timedelta(milliseconds=_LONG(value))


def _instant(value: bytes) -> datetime:
    seconds, nanos = Struct(">qi").unpack(value)
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def _date_and_time(value: bytes) -> datetime:
    days, nanos = Struct(">qq").unpack(value)
    return datetime(1970, 1, 1) + timedelta(days=days, microseconds=nanos // 1000)  # noqa: DTZ001 - local time


_LONG: Final = _number(">q")
_PRIMITIVES: Final[Mapping[int, Read]] = {
    Schema.String: bytes.decode,
    Schema.Bool: _number(">?"),
    Schema.Int8: _number(">b"),
    Schema.Int16: _number(">h"),
    Schema.Int32: _number(">i"),
    Schema.Int64: _LONG,
    Schema.Float: _number(">f"),
    Schema.Double: _number(">d"),
    Schema.Date: lambda value: _moment(value).date(),
    Schema.Time: _moment,
    Schema.Timestamp: _moment,
    Schema.Instant: _instant,
    Schema.LocalDate: lambda value: _DAY + timedelta(days=_LONG(value)),
    Schema.LocalTime: _LONG,
    Schema.LocalDateTime: _date_and_time,
}


def _all_at_once(kind: int, target: pa.DataType) -> Callable[[list[bytes]], pa.Array] | None:
    if kind == Schema.String and pa.types.is_string(target):
        return lambda values: pa.array(values, pa.binary()).cast(target)
    read = _PRIMITIVES[kind]
    if pa.types.is_binary(target):
        return lambda values: pa.array(values, target)
    return lambda values: pa.array([read(value) for value in values], target)
