"""Encoding of values from Avro's JSON encoding to its binary encoding.

A union's value is null, or an object keyed by the name of its type: {"string": "a"}. Bytes are strings of one character
for each byte. A missing field takes its default.
"""

from collections.abc import Callable, Generator
from struct import Struct
from typing import Any, Final

from pulsarbox.protocol.schema.avro.definition import Field, Node, Real
from pulsarbox.protocol.schema.steps import Steps, TooManyStepsError, recursive

VALUES_MAX: Final = 1_000_000
"""Values that one text may expand to: nested defaults can double at each level."""
DEPTH_MAX: Final = 1000
"""Nesting depth of values."""
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_RANGES: Final = {"int": 1 << 31, "long": 1 << 63}
_Call = Generator[Any, Any, None] | None
"""A call for ``recursive``; None if nothing is left to do."""


def writing(schema: Node, value: Any) -> Steps[bytes]:
    """Encode a value. Raises ValueError if it does not match the schema or has too many parts."""
    writer = _Writer()
    try:
        yield from recursive(writer.root(schema, value), VALUES_MAX, DEPTH_MAX)
    except TooManyStepsError:
        raise ValueError(f"the value has more than {VALUES_MAX} parts") from None
    except RecursionError:
        raise ValueError(f"the value is nested more than {DEPTH_MAX} levels deep") from None
    return bytes(writer.payload)


class _Writer:
    """A payload under construction."""

    def __init__(self) -> None:
        self.payload = bytearray()

    def root(self, node: Node, value: Any) -> Generator[Any, Any, None]:
        """Write the outermost value."""
        yield self.write(node, value)

    def write(self, node: Node, value: Any) -> _Call:
        """Write a value now, or return the call that writes its parts."""
        return _WRITERS[node.kind](self, node, value)

    def long(self, number: int) -> None:
        """Write a 64-bit integer."""
        bits = (number << 1) ^ (number >> 63)
        while bits >= 0x80:
            self.payload.append(bits & 0x7F | 0x80)
            bits >>= 7
        self.payload.append(bits)

    def whole(self, node: Node, value: Any) -> None:
        """Write an integer after checking the range of its type."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not -_RANGES[node.kind] <= value < _RANGES[node.kind]
        ):
            raise ValueError(f"{_shown(value)} is not a value of type {node.kind}")
        self.long(value)

    def fractional(self, form: Struct, value: Any) -> None:
        """Write a float or double."""
        if isinstance(value, bool) or not isinstance(value, int | float | Real):
            raise ValueError(f"{_shown(value)} is not a number")
        self.payload += form.pack(float(value))

    def counted(self, data: bytes) -> None:
        """Write bytes prefixed with their length."""
        self.long(len(data))
        self.payload += data

    def boolean(self, value: Any) -> None:
        """Write a boolean."""
        if not isinstance(value, bool):
            raise ValueError(f"{_shown(value)} is not true or false")
        self.payload.append(value)

    def record(self, node: Node, value: Any) -> Generator[Any, Any, None]:
        """Write the fields of a record in schema order."""
        unknown = _object(value).keys() - node.fields.keys()
        if unknown:
            raise ValueError(f"{node.name} has no field {min(unknown)[:60]!r}")
        for name, field in node.fields.items():
            if name in value:
                yield self.write(field.node, value[name])
            else:
                yield self._default(field)

    def _default(self, field: Field) -> _Call:
        if not field.has_default:
            raise ValueError(f"the field {field.name!r} is missing")
        if field.node.kind == "union":  # a default belongs to the first branch and is not wrapped
            self.long(0)
            return self.write(field.node.branches[0], field.default)
        return self.write(field.node, field.default)

    def array(self, node: Node, value: Any) -> Generator[Any, Any, None]:
        """Write the items of an array in one block."""
        if not isinstance(value, list):
            raise ValueError(f"{_shown(value)} is not a list")
        if value:
            self.long(len(value))
            for each in value:
                yield self.write(node.branches[0], each)
        self.long(0)

    def map(self, node: Node, value: Any) -> Generator[Any, Any, None]:
        """Write the entries of a map in one block."""
        if _object(value):
            self.long(len(value))
            for key, each in value.items():
                self.counted(key.encode())
                yield self.write(node.branches[0], each)
        self.long(0)

    def union(self, node: Node, value: Any) -> _Call:
        """Write the index of a union branch and its value."""
        if value is None:
            name, inner = "null", None
        elif isinstance(value, dict) and len(value) == 1:
            ((name, inner),) = value.items()
        else:
            raise ValueError('a union value must be an object with the name of its type, such as {"string": "a"}')
        number = node.number_of(name)
        if number is None:
            raise ValueError(f"the union has no type {name[:60]!r}")
        self.long(number)
        return self.write(node.branches[number], inner)

    def fixed(self, node: Node, value: Any) -> None:
        """Write bytes after checking the length of their type."""
        data = _text(value).encode("latin-1")
        if len(data) != node.size:
            raise ValueError(f"{node.name} must have {node.size} bytes, not {len(data)}")
        self.payload += data

    def enum(self, node: Node, value: Any) -> None:
        """Write the index of a symbol."""
        number = node.number_of(_text(value))
        if number is None:
            raise ValueError(f"{node.name} has no symbol {_shown(value)}")
        self.long(number)

    def null(self, value: Any) -> None:
        """Check that the value is null; it takes zero bytes."""
        if value is not None:
            raise ValueError(f"{_shown(value)} is not null")


def _shown(value: object) -> str:
    return repr(value[:60]) if isinstance(value, str) else repr(value)[:60] if isinstance(value, int) else "the value"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{_shown(value)} is not a string")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{_shown(value)} is not an object")
    return value


_WRITERS: Final[dict[str, Callable[[_Writer, Node, Any], _Call]]] = {
    "null": lambda writer, node, value: writer.null(value),
    "boolean": lambda writer, node, value: writer.boolean(value),
    "int": _Writer.whole,
    "long": _Writer.whole,
    "float": lambda writer, node, value: writer.fractional(_FLOAT, value),
    "double": lambda writer, node, value: writer.fractional(_DOUBLE, value),
    "bytes": lambda writer, node, value: writer.counted(_text(value).encode("latin-1")),
    "string": lambda writer, node, value: writer.counted(_text(value).encode()),
    "fixed": _Writer.fixed,
    "enum": _Writer.enum,
    "record": _Writer.record,
    "array": _Writer.array,
    "map": _Writer.map,
    "union": _Writer.union,
}
