"""Encoding of values as bytes: Pulsar's primitive types, JSON, Avro. Does not import pyspark."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from io import BytesIO
from math import isfinite, isnan
from struct import Struct
from typing import Any, Final

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.sink.epoch_client import SinkError
from pulsarbox.spark.sink.row_encoder import Encode, raw

_SIZES: Final[Mapping[int, int]] = {Schema.Int8: 1, Schema.Int16: 2, Schema.Int32: 4, Schema.Int64: 8}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = date(1970, 1, 1)


def primitive(kind: int) -> Encode | None:
    """Return the encoder of a primitive schema: big-endian numbers, text, one byte for booleans.

    Times are encoded as by Java clients.
    """
    size = _SIZES.get(kind, 0)
    if size:
        return lambda value: _whole(value).to_bytes(size, "big", signed=True)
    return _PRIMITIVES.get(kind)


def _text(value: Any) -> bytes:
    if not isinstance(value, bytes | str):
        raise ValueError(f"{value!r} is not text")
    return raw(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not a whole number")
    return value


# JSON -----------------------------------------------------------------------------------------------------------------


def as_json(definition: dict[str, Any]) -> Encode:
    form = Forms().of(definition)
    return lambda value: json.dumps(form(value), separators=(",", ":"), ensure_ascii=False).encode()


Form = Callable[[Any], Any]


class Forms:
    """JSON forms of values of an Avro definition, as Pulsar's Java client writes them: bytes in base64, and NaN,
    Infinity and decimals as text, which is exact and which the Java client reads."""

    def __init__(self) -> None:
        self._named: dict[str, Form] = {}

    def of(self, kind: Any) -> Form:
        if isinstance(kind, list):
            return self._union(kind)
        if isinstance(kind, str):
            return self._named[kind] if kind in self._named else _checked(kind)
        logical = kind.get("logicalType")
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if kind["type"] == "record":
            return self._record(kind)
        if kind["type"] == "array":
            of_item = self.of(kind["items"])
            return lambda value: [of_item(each) for each in value]
        if kind["type"] == "map":
            of_value = self.of(kind["values"])
            return lambda value: {name: of_value(each) for name, each in _pairs(value)}
        if kind["type"] == "enum":
            return _one_of(kind["symbols"])
        return self.of(kind["type"])

    def _union(self, kinds: list[Any]) -> Form:
        others = [each for each in kinds if each != "null"]
        if len(others) != 1:
            raise SinkError(f"the schema has a union of {len(others)} types, which cannot be written from columns")
        form = self.of(others[0])
        if len(others) == len(kinds):
            return form
        return lambda value: None if value is None else form(value)

    def _record(self, kind: dict[str, Any]) -> Form:
        fields: list[tuple[str, Form, Any]] = []

        def record(value: Mapping[str, Any]) -> dict[str, Any]:
            return {name: form(value[name]) if name in value else default for name, form, default in fields}

        self._named[kind["name"]] = record
        fields += [
            (each["name"], _named(self.of(each["type"]), each["name"]), each.get("default")) for each in kind["fields"]
        ]
        return record


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _named(form: Form, name: str) -> Form:
    def named(value: Any) -> Any:
        try:
            return form(value)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"field {name}: {error}") from None

    return named


_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "boolean": (bool,),
    "bytes": (bytes,),
}


def _checked(kind: str) -> Form:
    """Return a form that passes values of an Avro primitive type, and raises ValueError for others."""
    accepted = _PYTHON.get(kind)
    if accepted is None:
        raise SinkError(f"the schema has type {kind}, which cannot be written from columns")

    def form(value: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind != "boolean"):
            raise ValueError(f"{value!r} is not of type {kind}")
        if isinstance(value, float) and not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value

    return form


def _one_of(symbols: list[str]) -> Form:
    def form(value: Any) -> Any:
        if value not in symbols:
            raise ValueError(f"{value!r} is not one of {', '.join(symbols)}")
        return value

    return form


def _micros(value: datetime) -> int:
    zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    since = zoned - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _millis(value: datetime) -> int:
    return _micros(value) // 1000


def _days(value: date) -> int:
    return (value - _DAY).days


_LOGICAL: Final[Mapping[str, Form]] = {
    "date": _days,
    "timestamp-millis": _millis,
    "timestamp-micros": _micros,
    "local-timestamp-millis": _millis,
    "local-timestamp-micros": _micros,
    "decimal": str,
}
_LONG: Final = Struct(">q").pack


def _instant(value: datetime) -> bytes:
    seconds, micros = divmod(_micros(value), 1_000_000)
    return Struct(">qi").pack(seconds, micros * 1000)


def _day_and_time(value: datetime) -> bytes:
    days, micros = divmod(_micros(value), 86_400_000_000)
    return Struct(">qq").pack(days, micros * 1000)


_PRIMITIVES: Final[Mapping[int, Encode]] = {
    Schema.Type.Value("None"): _text,
    Schema.String: _text,
    Schema.Bool: lambda value: b"\x01" if value else b"\x00",
    Schema.Float: Struct(">f").pack,
    Schema.Double: Struct(">d").pack,
    Schema.Date: lambda value: _LONG(_days(value) * 86_400_000),
    Schema.Time: lambda value: _LONG(_millis(value)),
    Schema.Timestamp: lambda value: _LONG(_millis(value)),
    Schema.Instant: _instant,
    Schema.LocalDate: lambda value: _LONG(_days(value)),
    Schema.LocalTime: lambda value: _LONG(_whole(value)),
    Schema.LocalDateTime: _day_and_time,
}


# Avro -----------------------------------------------------------------------------------------------------------------


def as_avro(definition: dict[str, Any]) -> Encode:
    try:
        import fastavro
    except ImportError:
        raise SinkError("writing Avro requires fastavro: pip install 'pulsarbox[spark]' on every worker") from None
    parsed = fastavro.parse_schema(definition)
    write = fastavro.schemaless_writer

    def encode(value: Any) -> bytes:
        out = BytesIO()
        write(out, parsed, value)
        return out.getvalue()

    return encode
