"""Definitions in Avro's language: AVRO, JSON and PROTOBUF schemas have them.

Parsed and compared by Avro's own library, which is imported with the first such schema: a box whose topics have none
does without it. Source: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution.
"""

import json
import re
import warnings
from typing import Any, Final

from avro.compatibility import (
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
)
from avro.errors import AvroException
from avro.schema import NamedSchema, RecordSchema, Schema, UnionSchema, make_avsc_object

from pulsarbox.errors import InvalidSchema

_NAME: Final = re.compile(r"(?!\d)[\w$]+")
_SAYS_NOTHING: Final = ("doc", "aliases")
"""What two definitions may differ in and still be the same."""


def parse(data: bytes) -> Schema:
    """The schema that a definition means. Raises InvalidSchema."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of logical types that nobody here knows
            # Names are checked below: Java's have a $ for a class within a class.
            schema = make_avsc_object(json.loads(data), validate_names=False, validate_enum_symbols=False)
        _check_names(schema, set())
    except (AvroException, ValueError, TypeError, AttributeError, KeyError, ArithmeticError, RecursionError) as error:
        raise InvalidSchema(f"it is no Avro definition: {str(error)[:200]}") from None
    return schema


def is_union(schema: Schema) -> bool:
    """Whether a definition is a union, which no record can be of."""
    return isinstance(schema, UnionSchema)


def same(a: Schema, b: Schema) -> bool:
    """Whether two definitions mean the same: names, types, defaults, order and properties, whatever their texts."""
    return bool(_meaning(a.to_json()) == _meaning(b.to_json()))


class _ByFields(ReaderWriterCompatibilityChecker):
    """Records are read by their fields, whatever they are called: so does Avro in Java, which Pulsar and most of its
    clients use, and clients name records after their own classes."""

    def calculate_compatibility(self, reader: Schema, writer: Schema, location: list[str]) -> SchemaCompatibilityResult:
        if isinstance(reader, RecordSchema) and isinstance(writer, RecordSchema):
            return self.check_reader_writer_record_fields(reader, writer, location)
        return super().calculate_compatibility(reader, writer, location)


def unreadable(reader: Schema, writer: Schema) -> str:
    """Why what is written by one schema cannot be read by another; empty where it can."""
    try:
        checker = _ByFields()  # type: ignore[no-untyped-call]
        result = checker.get_compatibility(reader, writer)
    except RecursionError:
        return "the definition is nested too deeply"
    if result.compatibility is SchemaCompatibilityType.compatible:
        return ""
    kinds = ", ".join(sorted({each.value.replace("_", " ") for each in result.incompatibilities}))
    return f"{kinds} at {', '.join(sorted(result.locations))}: {', '.join(sorted(result.messages))}"


def _check_names(schema: Any, seen: set[int]) -> None:
    if id(schema) in seen:
        return
    seen.add(id(schema))
    if isinstance(schema, NamedSchema):
        for part in schema.fullname.split("."):
            _check_name(part)
    for each in schema.props.get("fields", ()):
        _check_name(each.name)
        _check_names(each.type, seen)
    for each in (*getattr(schema, "schemas", ()), schema.props.get("items"), schema.props.get("values")):
        if isinstance(each, Schema):
            _check_names(each, seen)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:60]!r} is no name")


def _meaning(node: Any) -> Any:
    """A definition without what says nothing; a primitive type alone and as an object are one."""
    if isinstance(node, list):
        return [_meaning(each) for each in node]
    if not isinstance(node, dict):
        return node
    meant = {key: value for key, value in node.items() if key not in _SAYS_NOTHING}
    for key in ("type", "items", "values"):
        if key in meant:
            meant[key] = _meaning(meant[key])
    if isinstance(meant.get("fields"), list):
        meant["fields"] = [_meaning(each) for each in meant["fields"]]
    return meant["type"] if meant.keys() == {"type"} else meant
