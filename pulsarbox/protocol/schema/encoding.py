"""A payload by its schema, from text as REST clients send it: what ``decoding`` reads.

Numbers as they are written, points in time as milliseconds since 1970 or ISO 8601, JSON as JSON, AVRO as JSON in
Avro's own form (a value of a union stands in an object with the name of its type, bytes are text of one character a
byte). As TopicsBase.encodeWithSchema of Pulsar 4.2, which stores an empty payload where a text cannot be encoded.
"""

import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from struct import Struct
from typing import Any, Final

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.definition import avro
from pulsarbox.protocol.schema.types import BYTES, spelling

Encode = Callable[[str], bytes]
"""Of a text. Raises UnencodableError."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ONE: Final = date(1970, 1, 1)
_NANOS: Final = 1_000_000_000


class UnencodableError(Exception):
    """A text is not what the schema says."""


def encoder_of(schema: Schema) -> Encode:
    """What encodes texts for a schema. Raises InvalidSchema for one for which that cannot be done."""
    kind = schema.type
    if kind == Schema.Avro:
        return _checked(_avro(schema.schema_data))
    found = _SIMPLE.get(kind)
    if found is None:
        raise InvalidSchema(f"texts are not encoded by {spelling(kind)} schemas")
    return _checked(found)


def _checked(encode: Encode) -> Encode:
    def checked(text: str) -> bytes:
        try:
            return encode(text)
        except Exception as error:  # a library's, whatever it is: texts are anybody's
            raise UnencodableError(f"{type(error).__name__}: {error}"[:200]) from None

    return checked


def _packed(form: str, value: Callable[[str], Any]) -> Encode:
    pack = Struct(form).pack
    return lambda text: pack(value(text))


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _millis(text: str) -> int:
    """Milliseconds since 1970, as a number or in ISO 8601."""
    if text.lstrip("-").isdigit():
        return int(text)
    since = _moment(text) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _nanos(of_day: time) -> int:
    return ((of_day.hour * 60 + of_day.minute) * 60 + of_day.second) * _NANOS + of_day.microsecond * 1000


def _days(day: date) -> int:
    return (day - _DAY_ONE).days


def _instant(text: str) -> bytes:
    since = _moment(text) - _EPOCH
    return Struct(">qi").pack(since.days * 86_400 + since.seconds, since.microseconds * 1000)


def _day_and_time(text: str) -> bytes:
    found = datetime.fromisoformat(text)
    return Struct(">qq").pack(_days(found.date()), _nanos(found.time()))


def _json(text: str) -> bytes:
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")).encode()


def _avro(data: bytes) -> Encode:
    from avro.io import BinaryEncoder, DatumWriter

    schema = avro().parse(data)
    writer = DatumWriter(schema)

    def encode(text: str) -> bytes:
        into = io.BytesIO()
        writer.write(_datum(json.loads(text), schema), BinaryEncoder(into))
        return into.getvalue()

    return encode


def _datum(value: Any, schema: Any) -> Any:
    """A value of Avro's JSON as its library wants it."""
    kind = schema.type
    if kind in ("union", "error_union"):
        return _of_union(value, schema)
    if kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    if kind in ("record", "error"):
        unknown = value.keys() - {each.name for each in schema.fields}
        if unknown:
            raise ValueError(f"there is no field {min(unknown)!r}")
        return {
            each.name: _datum(value[each.name], each.type) if each.name in value else _default(each)
            for each in schema.fields
        }
    if kind == "array":
        return [_datum(each, schema.items) for each in value]
    if kind == "map":
        return {name: _datum(each, schema.values) for name, each in value.items()}
    return float(value) if kind in ("float", "double") and not isinstance(value, bool) else value


def _of_union(value: Any, schema: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError('a value of a union is an object with the name of its type: {"string": "a"}')
    ((name, inner),) = value.items()
    for each in schema.schemas:
        if name in (each.type, getattr(each, "name", None), getattr(each, "fullname", None)):
            return _datum(inner, each)
    raise ValueError(f"the union has no type {name!r}")


def _default(field: Any) -> Any:
    if not field.has_default:
        raise ValueError(f"the field {field.name!r} is missing")
    first = field.type.schemas[0] if field.type.type == "union" else field.type  # a default is of the first
    return _datum(field.default, first)


_SIMPLE: Final[dict[int, Encode]] = {
    BYTES: str.encode,
    Schema.String: str.encode,
    Schema.Int8: _packed(">b", int),
    Schema.Int16: _packed(">h", int),
    Schema.Int32: _packed(">i", int),
    Schema.Int64: _packed(">q", int),
    Schema.Float: _packed(">f", float),
    Schema.Double: _packed(">d", float),
    Schema.Bool: _packed(">?", _is_true),
    Schema.Date: _packed(">q", _millis),
    Schema.Time: _packed(">q", _millis),
    Schema.Timestamp: _packed(">q", _millis),
    Schema.LocalDate: _packed(">q", lambda text: _days(date.fromisoformat(text))),
    Schema.LocalTime: _packed(">q", lambda text: _nanos(time.fromisoformat(text))),
    Schema.Instant: _instant,
    Schema.LocalDateTime: _day_and_time,
    Schema.Json: _json,
}
