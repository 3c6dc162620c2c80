"""Decoding of payloads by their schema into JSON-compatible values.

Types that JSON lacks become strings: bytes with one character for each byte (as in Avro's JSON encoding), timestamps in
ISO 8601, decimals as text. Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/.
"""

import json
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from struct import Struct
from typing import Any, Final

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.avro import definition as avro_definition
from pulsarbox.protocol.schema.avro import reading
from pulsarbox.protocol.schema.types import BYTES, spelling

Decode = Callable[[bytes], Any]
"""Decodes a payload. Raises UndecodableError."""
MessageDecode = Callable[[str | None, bool, bytes], Any]
"""Decodes a message from its key, whether that is base64, and its payload. Raises UndecodableError."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS: Final = {
    Schema.Int8: Struct(">b"),
    Schema.Int16: Struct(">h"),
    Schema.Int32: Struct(">i"),
    Schema.Int64: Struct(">q"),
    Schema.Float: Struct(">f"),
    Schema.Double: Struct(">d"),
    Schema.LocalDate: Struct(">q"),
    Schema.LocalTime: Struct(">q"),
    Schema.Date: Struct(">q"),
    Schema.Time: Struct(">q"),
    Schema.Timestamp: Struct(">q"),
    Schema.Bool: Struct(">?"),
}
_PAIR: Final = Struct(">qq")
_INSTANT: Final = Struct(">qi")
_NANOS: Final = 1_000_000_000


class UndecodableError(Exception):
    """A payload does not match its schema."""


def decoder_of(schema: Schema) -> Decode:
    """Return the decoder for payloads of a schema. Raises InvalidSchema if its type cannot be decoded."""
    kind = schema.type
    if kind == Schema.Type.KeyValue:
        return _key_value(schema)
    if kind in _NUMBERS:
        return _checked(_number(_NUMBERS[kind], _MEANINGS.get(kind)))
    if kind == Schema.Avro:
        return _checked(_avro(schema.schema_data))
    if kind == Schema.ProtobufNative:
        return _checked(_native(schema.schema_data))
    found = _SIMPLE.get(kind)
    if found is None:
        raise InvalidSchema(f"decoding payloads of {spelling(kind)} schemas is not supported")
    return _checked(found)


def separated(schema: Schema) -> tuple[Decode, Decode] | None:
    """Return decoders of key and payload for a KEY_VALUE schema with a separate key; None for other schemas."""
    if schema.type != Schema.Type.KeyValue or not key_value.is_separated(schema):
        return None
    key, value = (decoder_of(each) for each in key_value.split(schema))
    return key, value


def payload_decoder(schema: Schema) -> Decode:
    """Return the decoder for what a message of a schema has in its payload: only the value if the key is separate."""
    apart = separated(schema)
    return decoder_of(schema) if apart is None else apart[1]


def message_decoder(schema: Schema) -> MessageDecode:
    """Return the decoder for messages of a schema. Raises InvalidSchema if its type cannot be decoded."""
    apart = separated(schema)
    if apart is None:
        decode = decoder_of(schema)
        return lambda key, is_base64, payload: decode(payload)
    of_key, of_value = apart

    def decode_pair(key: str | None, is_base64: bool, payload: bytes) -> Any:
        try:
            raw = None if key is None else key_bytes(key, is_base64)
        except ValueError as error:
            raise UndecodableError(f"the key is not valid base64: {error}") from None
        return {"key": None if raw is None else of_key(raw), "value": of_value(payload)}

    return decode_pair


def _checked(decode: Decode) -> Decode:
    """Convert any exception of a decoder to UndecodableError, because payloads are untrusted."""

    def checked(payload: bytes) -> Any:
        try:
            return decode(payload)
        except Exception as error:
            raise UndecodableError(f"{type(error).__name__}: {error}"[:200]) from None

    return checked


def _key_value(schema: Schema) -> Decode:
    decoders = [decoder_of(each) for each in key_value.split(schema)]

    def decode(payload: bytes) -> Any:
        found, at = [], 0
        for each in decoders:
            length = int.from_bytes(payload[at : at + 4], "big", signed=True)
            end = at + 4 + max(length, 0)
            if len(payload) < end:
                raise UndecodableError("the payload ends before its key and value")
            found.append(None if length < 0 else each(payload[at + 4 : end]))
            at = end
        return {"key": found[0], "value": found[1]}

    return decode


def _number(form: Struct, meaning: Callable[[Any], Any] | None) -> Decode:
    def decode(payload: bytes) -> Any:
        (value,) = form.unpack(payload)
        return meaning(value) if meaning is not None else value

    return decode


def _avro(data: bytes) -> Decode:
    return partial(reading.read, avro_definition.parse(data).root)


def _native(data: bytes) -> Decode:
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message_factory import GetMessageClass

    from pulsarbox.protocol.schema.native_definition import parse

    made = GetMessageClass(parse(data))
    return lambda payload: MessageToDict(made.FromString(payload), preserving_proto_field_name=True)


def _moment(millis: int) -> str:
    return (_EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _of_day(nanos: int) -> str:
    seconds, nanos = divmod(nanos, _NANOS)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    if not 0 <= hour < 24:
        raise UndecodableError("the time of day is out of range")
    return f"{hour:02}:{minute:02}:{second:02}" + (f".{nanos:09}" if nanos else "")


def _day(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).date().isoformat()


def _instant(payload: bytes) -> str:
    seconds, nanos = _INSTANT.unpack(payload)
    whole = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    return whole + (f".{nanos:09}" if nanos else "") + "Z"


def _day_and_time(payload: bytes) -> str:
    days, nanos = _PAIR.unpack(payload)
    return f"{_day(days)}T{_of_day(nanos)}"


_MEANINGS: Final[dict[int, Callable[[Any], Any]]] = {
    Schema.LocalDate: _day,
    Schema.LocalTime: _of_day,
    Schema.Date: _moment,
    Schema.Time: _moment,
    Schema.Timestamp: _moment,
}
_SIMPLE: Final[dict[int, Decode]] = {
    BYTES: lambda payload: payload.decode("latin-1"),
    Schema.String: bytes.decode,
    Schema.Json: json.loads,
    Schema.Instant: _instant,
    Schema.LocalDateTime: _day_and_time,
}


def key_bytes(key: str, is_base64: bool) -> bytes:
    """Return a message's key as its schema encoded it."""
    return b64decode(key) if is_base64 else key.encode("utf-8", "surrogateescape")
