"""Encoding of payloads by their schema from the text that REST clients send; the inverse of ``decoding``.

Numbers are decimal, timestamps milliseconds since 1970 or ISO 8601, JSON as it is, and AVRO in Avro's JSON encoding
(a union's value is an object keyed by the name of its type, bytes are strings of one character for each byte). Follows
TopicsBase.encodeWithSchema of Pulsar 4.2, which stores an empty payload for text that cannot be encoded.
"""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from functools import partial
from struct import Struct
from typing import Any, Final

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.avro import definition as avro_definition
from pulsarbox.protocol.schema.avro import writing
from pulsarbox.protocol.schema.avro.definition import Node
from pulsarbox.protocol.schema.steps import Steps
from pulsarbox.protocol.schema.types import BYTES, spelling

Encode = Callable[[str], Steps[bytes]]
"""Encodes text. Raises UnencodableError."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ONE: Final = date(1970, 1, 1)
_NANOS: Final = 1_000_000_000
_CHARACTERS_A_STEP: Final = 100


class UnencodableError(Exception):
    """A text does not match the schema."""


def making(schema: Schema) -> Steps[Encode]:
    """Return the encoder of a schema. Raises InvalidSchema if its type cannot be encoded from text."""
    kind = schema.type
    if kind == Schema.Avro:
        definition = yield from avro_definition.parsing(schema.schema_data)
        return _checked(partial(_avro, definition.root))
    found = _SIMPLE.get(kind)
    if found is None:
        raise InvalidSchema(f"encoding text with {spelling(kind)} schemas is not supported")
    return _checked(partial(_simple, found))


def _checked(encode: Encode) -> Encode:
    def checked(text: str) -> Steps[bytes]:
        try:
            return (yield from encode(text))
        except Exception as error:  # clients send any text, and the standard library raises many types
            raise UnencodableError(f"{type(error).__name__}: {error}"[:200]) from None

    return checked


def _simple(encode: Callable[[str], bytes], text: str) -> Steps[bytes]:
    yield len(text) // _CHARACTERS_A_STEP + 1
    return encode(text)


def _avro(schema: Node, text: str) -> Steps[bytes]:
    yield len(text) // _CHARACTERS_A_STEP + 1
    return (yield from writing.writing(schema, json.loads(text)))


def _packed(form: str, value: Callable[[str], Any]) -> Callable[[str], bytes]:
    pack = Struct(form).pack
    return lambda text: pack(value(text))


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _millis(text: str) -> int:
    """Parse milliseconds since 1970, or ISO 8601."""
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


_SIMPLE: Final[dict[int, Callable[[str], bytes]]] = {
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
