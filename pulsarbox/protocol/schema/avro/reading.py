"""Avro values in binary, as values that JSON has.

Bytes become text of one character a byte, as in Avro's own JSON; dates and times ISO 8601; decimals and UUIDs text.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from struct import Struct
from typing import Any, Final, TypeVar

from pulsarbox.protocol.schema.avro.definition import Node

T = TypeVar("T")

VALUES_MAX: Final = 100_000
"""Values in a payload, and as many more as it has bytes: a value of no bytes (null, an empty record) costs none."""
_DECIMAL_MAX: Final = 1024
"""Bytes of a decimal: the time to convert one is quadratic in its length."""
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ONE: Final = date(1970, 1, 1).toordinal()
_LONG_BYTES: Final = 10


class MalformedValueError(Exception):
    """A payload is not a value of its schema."""


def read(schema: Node, payload: bytes) -> Any:
    """The value of a payload. Bytes behind it are ignored, as by other readers.

    Raises MalformedValueError, RecursionError, and what the standard library raises for values out of range.
    """
    return _Reader(payload).read(schema)


class _Reader:
    """One payload, and how far it is read."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0
        self._left = VALUES_MAX + len(payload)
        """Values that may still come."""

    def read(self, node: Node) -> Any:
        """The next value, of a type."""
        self._left -= 1
        if self._left < 0:
            raise MalformedValueError(f"the payload has more than {VALUES_MAX} values that take no bytes")
        value = _READERS[node.kind](self, node)
        return value if not node.logical else _LOGICAL[node.logical](value, node)

    def take(self, count: int) -> bytes:
        """The next bytes."""
        at, self._at = self._at, self._at + count
        if count < 0 or self._at > len(self._payload):
            raise MalformedValueError(f"{count} bytes are expected at byte {at}, and the payload ends before")
        return self._payload[at : self._at]

    def long(self) -> int:
        """A whole number: seven bits a byte, the lowest first, zigzag."""
        payload, at = self._payload, self._at
        number = 0
        for shift, byte in enumerate(payload[at : at + _LONG_BYTES]):
            number |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                self._at = at + shift + 1
                return (number >> 1) ^ -(number & 1)
        raise MalformedValueError(f"a whole number is expected at byte {at}")

    def float(self, form: Struct) -> float:
        """A fractional number."""
        (number,) = form.unpack(self.take(form.size))
        return float(number)

    def text(self) -> str:
        """Text in UTF-8."""
        return self.take(self.long()).decode()

    def boolean(self) -> bool:
        """True or false."""
        return self.take(1) != b"\0"

    def record(self, node: Node) -> dict[str, Any]:
        """The fields of a record."""
        return {name: self.read(field.node) for name, field in node.fields.items()}

    def array(self, node: Node) -> list[Any]:
        """The items of an array."""
        return [self.read(node.branches[0]) for count in self._blocks() for _ in range(count)]

    def map(self, node: Node) -> dict[str, Any]:
        """The values of a map by their keys."""
        return {self.text(): self.read(node.branches[0]) for count in self._blocks() for _ in range(count)}

    def _blocks(self) -> Iterator[int]:
        while count := self.long():
            if count < 0:
                count = -count
                self.long()  # the block's length in bytes
            yield count

    def union(self, node: Node) -> Any:
        """The value of the branch that the payload names."""
        return self.read(_chosen(node.branches, self.long(), "union"))

    def enum(self, node: Node) -> str:
        """A symbol. One that a later schema has added is the default."""
        index = self.long()
        if index >= len(node.symbols) and isinstance(node.default, str):
            return node.default
        return _chosen(node.symbols, index, "enum")


def _chosen(choices: tuple[T, ...], index: int, what: str) -> T:
    if not 0 <= index < len(choices):
        raise MalformedValueError(f"number {index} of {len(choices)} of a {what}")
    return choices[index]


_READERS: Final[dict[str, Callable[[_Reader, Node], Any]]] = {
    "null": lambda reader, node: None,
    "boolean": lambda reader, node: reader.boolean(),
    "int": lambda reader, node: reader.long(),
    "long": lambda reader, node: reader.long(),
    "float": lambda reader, node: reader.float(_FLOAT),
    "double": lambda reader, node: reader.float(_DOUBLE),
    "bytes": lambda reader, node: reader.take(reader.long()).decode("latin-1"),
    "string": lambda reader, node: reader.text(),
    "fixed": lambda reader, node: reader.take(node.size).decode("latin-1"),
    "enum": _Reader.enum,
    "record": _Reader.record,
    "array": _Reader.array,
    "map": _Reader.map,
    "union": _Reader.union,
}


def _decimal(value: str, node: Node) -> str:
    unscaled = value.encode("latin-1")
    if len(unscaled) > _DECIMAL_MAX:
        raise MalformedValueError(f"a decimal has {len(unscaled)} bytes, and {_DECIMAL_MAX} are decoded")
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
