"""Programs by which the reader inside the JVM (``jvm/*Value.java``) decodes values, as lists for JSON. Pure.

A program is a tree of nodes ``[kind, ...]`` that writes into columns as the decoder in Python does. What no node
expresses is Unsupported: Python then reads the topic. A branch of a union that is not supported is ``["?"]``: Python
reads from the first value on that takes it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

Node = list[Any]
"""Kind, and what it consists of."""

TEXT: Final[Node] = ["text"]
"""The value is text, and the only column."""
DEPTH_MAX: Final = 32
"""Levels of nested types."""
NODES_MAX: Final = 2000
"""Nodes of a program: a short definition can use a nested record many times."""
BYTES_MAX: Final = 1 << 16
"""Size of a program, which every partition has."""
UNSURE: Final[Node] = ["?"]
_QUOTED: Final = re.compile(r'["\\\x00-\x1f]')
"""Characters that JSON has in another form."""


class UnsupportedError(ValueError):
    """Python has to read these values."""


# JSON -----------------------------------------------------------------------------------------------------------------

_JSON: Final[Sequence[tuple[pa.DataType, str]]] = (
    (pa.bool_(), "boolean"),
    (pa.int8(), "byte"),
    (pa.int16(), "short"),
    (pa.int32(), "int"),
    (pa.int64(), "long"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.string(), "string"),
)


def of_json(target: pa.DataType) -> Node | None:
    """Return the program for JSON objects; None if there is none."""
    try:
        return _bounded(["json", _json(target, 0)])
    except UnsupportedError:
        return None


def _bounded(program: Node) -> Node:
    if len(json.dumps(program)) > BYTES_MAX:
        raise UnsupportedError
    return program


def _json(target: pa.DataType, depth: int) -> Node:
    if depth > DEPTH_MAX:
        raise UnsupportedError
    for plain, kind in _JSON:
        if target == plain:
            return [kind]
    if pa.types.is_struct(target) and target.num_fields:
        columns = _columns(target)
        if not any(_QUOTED.search(name) for name in columns):
            return ["struct", [[name, _json(kind, depth + 1)] for name, (_, kind) in columns.items()]]
    if pa.types.is_map(target) and target.key_type == pa.string():
        return ["map", _json(target.item_type, depth + 1)]
    if pa.types.is_list(target):
        return ["array", _json(target.value_type, depth + 1)]
    raise UnsupportedError


# Avro -----------------------------------------------------------------------------------------------------------------

_AVRO: Final[Mapping[tuple[str, str | None], pa.DataType]] = {
    ("null", None): pa.string(),
    ("boolean", None): pa.bool_(),
    ("int", None): pa.int32(),
    ("long", None): pa.int64(),
    ("float", None): pa.float32(),
    ("double", None): pa.float64(),
    ("bytes", None): pa.binary(),
    ("string", None): pa.string(),
    ("string", "uuid"): pa.string(),
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
"""Column types of primitives, by their logical type."""
_KINDS: Final[Mapping[str, str]] = {
    "uuid": "uuid",
    "date": "date",
    "timestamp-millis": "millis",
    "timestamp-micros": "micros",
    "local-timestamp-millis": "millis",
    "local-timestamp-micros": "micros",
}
_WIDER: Final[Mapping[str, tuple[str, ...]]] = {"int": ("int", "long", "double"), "float": ("float", "double")}
_NAMED: Final = ("record", "error", "enum", "fixed")


class AvroSchema:
    """Parsed Avro schema with the types that it names."""

    def __init__(self, definition: Any) -> None:
        """Parse a definition. Raises fastavro's errors."""
        from fastavro import parse_schema

        self.named: dict[str, Any] = {}
        self.root = parse_schema(definition, self.named)

    def type(self, told: Any) -> Any:
        """Return a type in its full form: a list for a union, else a dictionary."""
        if isinstance(told, dict) and isinstance(told["type"], dict | list):
            return self.type(told["type"])
        if isinstance(told, str):
            found = self.named.get(told)
            return {"type": told} if found is None else found
        return told


def of_avro(writer: Any, reader: Any, target: pa.DataType) -> Node | None:
    """Return the program for values that ``writer`` has written, in the form of ``reader``; None if there is none.

    Both are definitions without the logical types that have no column type.
    """
    try:
        if not pa.types.is_struct(target):
            return None
        written = AvroSchema(writer)
        wanted = written if reader is writer else AvroSchema(reader)
        return _bounded(["avro", _Avro(written, wanted).node(written.root, wanted.root, target, 0)])
    except (UnsupportedError, KeyError, TypeError, ValueError):
        return None


Columns = Mapping[str, tuple[int, pa.DataType]]
"""Places and types of the columns of a record."""


def _columns(target: pa.DataType) -> Columns:
    """Return the columns of a record. Raises UnsupportedError for a name that occurs twice."""
    fields = [target.field(at) for at in range(target.num_fields)]
    found = {field.name: (at, field.type) for at, field in enumerate(fields)}
    if len(found) < len(fields):
        raise UnsupportedError
    return found


class _Avro:
    """Compiler of a pair of schemas."""

    def __init__(self, written: AvroSchema, wanted: AvroSchema) -> None:
        self._written = written
        self._wanted = wanted
        self._nodes = 0

    def node(self, writer: Any, reader: Any, target: pa.DataType | None, depth: int) -> Node:
        """Return the node of a value; without ``target`` it is read and has no column."""
        self._nodes += 1
        if depth > DEPTH_MAX or self._nodes > NODES_MAX:
            raise UnsupportedError
        one, other = self._written.type(writer), self._wanted.type(reader)
        if isinstance(one, list):
            return self._union(one, other, target, depth)
        if isinstance(other, list):
            return self.node(one, self._but_null(other), target, depth + 1)
        kind = one["type"]
        if one.get("logicalType") == "decimal" or other.get("logicalType") == "decimal":
            return _decimal(one, other, target)
        if kind in ("record", "error"):
            return self._record(one, other, target, depth)
        if kind in ("array", "map"):
            return self._several(one, other, target, depth)
        return _enum_or_fixed(one, other, target) if kind in _NAMED else _primitive(one, other, target)

    def _union(self, writer: list[Any], reader: Any, target: pa.DataType | None, depth: int) -> Node:
        nodes = [self._branch(each, reader, target, depth + 1) for each in writer]
        if all(node == UNSURE for each, node in zip(writer, nodes, strict=True) if each != "null"):
            raise UnsupportedError
        return ["union", nodes]

    def _branch(self, writer: Any, reader: Any, target: pa.DataType | None, depth: int) -> Node:
        if writer == "null" and isinstance(reader, list):
            return ["null"] if "null" in reader else UNSURE
        try:
            if not isinstance(reader, list):
                return UNSURE if writer == "null" else self.node(writer, reader, target, depth)
            if self._written is self._wanted:
                return self.node(writer, writer, target, depth)
            return self.node(writer, self._but_null(reader), target, depth)
        except UnsupportedError:
            return UNSURE

    def _but_null(self, branches: list[Any]) -> Any:
        """Return the only branch besides null."""
        found = [each for each in branches if each != "null"]
        if len(found) != 1:
            raise UnsupportedError
        return found[0]

    def _several(self, one: Any, other: Any, target: pa.DataType | None, depth: int) -> Node:
        kind = one["type"]
        if other["type"] != kind:
            raise UnsupportedError
        inside = None
        if target is not None:
            fits = pa.types.is_map(target) and target.key_type == pa.string()
            if not (fits if kind == "map" else pa.types.is_list(target)):
                raise UnsupportedError
            inside = target.item_type if kind == "map" else target.value_type
        part = "values" if kind == "map" else "items"
        node = self.node(one[part], other[part], inside, depth + 1)
        if not _takes_bytes(node):  # their number would be limited by nothing
            raise UnsupportedError
        return [kind, node]

    def _record(self, one: Any, other: Any, target: pa.DataType | None, depth: int) -> Node:
        if other["type"] != one["type"] or other["name"] != one["name"]:
            raise UnsupportedError
        if target is not None and not pa.types.is_struct(target):
            raise UnsupportedError
        columns = {} if target is None else _columns(target)
        wanted = {each["name"]: each for each in other["fields"]}
        if self._written is not self._wanted and any(each.get("aliases") for each in other["fields"]):
            raise UnsupportedError
        fields = [self._field(each, wanted.get(each["name"]), columns, depth) for each in one["fields"]]
        missing = {name: wanted[name] for name in wanted.keys() - {each["name"] for each in one["fields"]}}
        if any("default" not in each for each in missing.values()):
            raise UnsupportedError  # no value can be read
        constants = [
            [at, self._default(missing[name], kind) if name in missing else None]
            for name, (at, kind) in columns.items()
            if name in missing or name not in wanted
        ]
        return ["record", fields, constants]

    def _field(self, one: Any, other: Any, columns: Columns, depth: int) -> Node:
        if other is None:
            return [-1, ["skip", self._skipped(one["type"], depth)]]
        at, target = columns.get(one["name"], (-1, None))
        return [at, self.node(one["type"], other["type"], target, depth + 1)]

    def _skipped(self, writer: Any, depth: int) -> Node:
        """Return the node of a value that ``reader`` does not have."""
        alone = _Avro(self._written, self._written)
        alone._nodes = self._nodes
        found = alone.node(writer, writer, None, depth + 1)
        self._nodes = alone._nodes
        return found

    def _default(self, field: Any, target: pa.DataType) -> Any:
        """Return the value of a field that the writer does not have."""
        told, value = self._wanted.type(field["type"]), field["default"]
        if isinstance(told, list):
            told = self._wanted.type(told[0])
        kind = told if isinstance(told, list) else told["type"]
        if kind == "null" and value is None:
            return None
        fits = {"boolean": bool, "int": int, "long": int, "float": float, "double": float, "string": str}
        if not isinstance(kind, str) or kind not in fits or type(value) is not fits[kind]:
            raise UnsupportedError
        if "logicalType" in told or _AVRO[kind, None] != target:
            raise UnsupportedError
        return value


def _takes_bytes(node: Node) -> bool:
    """Return whether a value of a node takes at least one byte."""
    kind, *rest = node
    if kind == "record":
        return any(_takes_bytes(each) for _, each in rest[0])
    if kind == "skip":
        return _takes_bytes(rest[0])
    return kind != "null" and not (kind in ("fixed", "decimal") and rest[-1] == 0)


def _primitive(one: Any, other: Any, target: pa.DataType | None) -> Node:
    written, wanted, logical = one["type"], other["type"], one.get("logicalType")
    if logical != other.get("logicalType") or wanted not in _WIDER.get(written, (written,)):
        raise UnsupportedError
    natural = _AVRO.get((wanted, logical))
    if natural is None or (logical is not None and written != wanted):
        raise UnsupportedError
    if target is None or natural == target:
        column = "long" if target is None and wanted == "int" else wanted  # Python has no range for it
    elif wanted == "int" and target == pa.int64():  # in a union with long
        column = "long"
    elif wanted == "float" and target == pa.float64():
        column = "double"
    elif wanted == "null":
        column = "null"
    else:
        raise UnsupportedError
    if logical is not None:
        return [_KINDS[logical]]
    return [written] if column == written else [written, column]


def _enum_or_fixed(one: Any, other: Any, target: pa.DataType | None) -> Node:
    parts = ("type", "name", "symbols", "size", "logicalType")
    if any(one.get(part) != other.get(part) for part in parts) or "logicalType" in one:
        raise UnsupportedError
    is_enum = one["type"] == "enum"
    if target is not None and target != (pa.string() if is_enum else pa.binary()):
        raise UnsupportedError
    return ["enum", list(one["symbols"])] if is_enum else ["fixed", one["size"]]


def _decimal(one: Any, other: Any, target: pa.DataType | None) -> Node:
    parts = ("type", "name", "size", "logicalType", "precision", "scale")
    if any(one.get(part) != other.get(part) for part in parts) or one["type"] not in ("bytes", "fixed"):
        raise UnsupportedError
    precision, scale = one["precision"], one.get("scale", 0)
    if target is None:
        return ["fixed", one["size"]] if one["type"] == "fixed" else ["bytes"]
    natural = pa.decimal128(precision, scale)
    if not 0 <= scale <= precision or target != natural:
        raise UnsupportedError
    return ["decimal", precision, scale, one["size"] if one["type"] == "fixed" else -1]
