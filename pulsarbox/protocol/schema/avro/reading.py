"""Decoding of Avro's binary encoding into JSON-compatible values.

Bytes become strings of one character for each byte, as in Avro's JSON encoding; dates and times become ISO 8601;
decimals and UUIDs become strings.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from struct import Struct
from typing import Any, Final, TypeVar

from pulsarbox.protocol.schema.avro.definition import Node

T = TypeVar("T")

VALUES_MAX: Final = 100_000
"""Values in a payload, beyond one for each of its bytes: values such as null or an empty record take zero bytes."""
_DECIMAL_MAX: Final = 1024
"""Bytes of a decimal: converting one takes quadratic time."""
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ONE: Final = date(1970, 1, 1).toordinal()
_LONG_BYTES: Final = 10


class MalformedValueError(Exception):
    """A payload does not match its schema."""


def read(schema: Node, payload: bytes) -> Any:
    """Decode a payload. Trailing bytes are ignored, as by other readers.

    Raises MalformedValueError, RecursionError, and the standard library's errors for values out of range.
    """
    return _Reader(payload).read(schema)


class _Reader:
    """A payload and the current read position."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0
        self._left = VALUES_MAX + len(payload)
        """Number of values that may still be read."""

    def read(self, node: Node) -> Any:
        """Read the next value."""
        self._left -= 1
        if self._left < 0:
            raise MalformedValueError(f"the payload has more than {VALUES_MAX} values of zero bytes")
        value = _READERS[node.kind](self, node)
        return value if not node.logical else _LOGICAL[node.logical](value, node)

    def read_bytes(self, count: int) -> bytes:
        """Read the next ``count`` bytes."""
        at, self._at = self._at, self._at + count
        if count < 0 or self._at > len(self._payload):
            raise MalformedValueError(f"expected {count} bytes at byte {at}, but the payload is too short")
        return self._payload[at : self._at]

    def long(self) -> int:
        """Read an integer: a zigzag varint, seven bits a byte, lowest first."""
        payload, at = self._payload, self._at
        number = 0
        for shift, byte in enumerate(payload[at : at + _LONG_BYTES]):
            number |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                self._at = at + shift + 1
                return (number >> 1) ^ -(number & 1)
        raise MalformedValueError(f"expected an integer at byte {at}")

    def float(self, form: Struct) -> float:
        """Read a float or double."""
        (number,) = form.unpack(self.read_bytes(form.size))
        return float(number)

    def text(self) -> str:
        """Read a UTF-8 string."""
        return self.read_bytes(self.long()).decode()

    def boolean(self) -> bool:
        """Read a boolean."""
        return self.read_bytes(1) != b"\0"

    def record(self, node: Node) -> dict[str, Any]:
        """Read the fields of a record."""
        return {name: self.read(field.node) for name, field in node.fields.items()}

    def array(self, node: Node) -> list[Any]:
        """Read the items of an array."""
        return [self.read(node.branches[0]) for count in self._blocks() for _ in range(count)]

    def map(self, node: Node) -> dict[str, Any]:
        """Read the entries of a map."""
        return {self.text(): self.read(node.branches[0]) for count in self._blocks() for _ in range(count)}

    def _blocks(self) -> Iterator[int]:
        while count := self.long():
            if count < 0:
                count = -count
                self.long()  # the block's length in bytes
            yield count

    def union(self, node: Node) -> Any:
        """Read the value of the union branch that the payload selects."""
        return self.read(_chosen(node.branches, self.long(), "union"))

    def enum(self, node: Node) -> str:
        """Read a symbol. The default stands in for a symbol that a later schema has added."""
        index = self.long()
        if index >= len(node.symbols) and isinstance(node.default, str):
            return node.default
        return _chosen(node.symbols, index, "enum")


def _chosen(choices: tuple[T, ...], index: int, what: str) -> T:
    if not 0 <= index < len(choices):
        raise MalformedValueError(f"index {index} in {what} of {len(choices)}")
    return choices[index]


_READERS: Final[dict[str, Callable[[_Reader, Node], Any]]] = {
    "null": lambda reader, node: None,
    "boolean": lambda reader, node: reader.boolean(),
    "int": lambda reader, node: reader.long(),
    "long": lambda reader, node: reader.long(),
    "float": lambda reader, node: reader.float(_FLOAT),
    "double": lambda reader, node: reader.float(_DOUBLE),
    "bytes": lambda reader, node: reader.read_bytes(reader.long()).decode("latin-1"),
    "string": lambda reader, node: reader.text(),
    "fixed": lambda reader, node: reader.read_bytes(node.size).decode("latin-1"),
    "enum": _Reader.enum,
    "record": _Reader.record,
    "array": _Reader.array,
    "map": _Reader.map,
    "union": _Reader.union,
}


def _decimal(value: str, node: Node) -> str:
    unscaled = value.encode("latin-1")
    if len(unscaled) > _DECIMAL_MAX:
        raise MalformedValueError(f"a decimal has {len(unscaled)} bytes, the maximum is {_DECIMAL_MAX}")
    number = int.from_bytes(unscaled, "big", signed=True)
    sign, digits, _ = Decimal(number).as_tuple()
    return str(Decimal((sign, digits, -node.scale)))


_LOGICAL: Final[dict[str, Callable[[Any, Node], Any]]] = {
    "decimal": _decimal,
    "uuid": lambda value, node: value,
    "date": lambda value, node: date.fromordinal(_DAY_ONE + value).isoformat(),
    "time-millis": lambda value, node: _time(1000 * value),
    "time-micros": lambda value, node: _time(value),
    "timestamp-millis": lambda value, node: (_EPOCH + timedelta(milliseconds=value)).isoformat(),
    "timestamp-micros": lambda value, node: (_EPOCH + timedelta(microseconds=value)).isoformat(),
}


def _time(micros: int) -> str:
    moment: time = (_EPOCH + timedelta(microseconds=micros)).time()
    return moment.isoformat()
