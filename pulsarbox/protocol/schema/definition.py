"""Validation of schema definitions, and detection of equivalent ones.

Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/.
"""

from typing import Final

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.avro import definition as avro_definition
from pulsarbox.protocol.schema.steps import Steps, completed
from pulsarbox.protocol.schema.types import BYTES, spelling

IN_AVRO: Final = frozenset((Schema.Avro, Schema.Json, Schema.Protobuf))
"""Types whose definition is an Avro schema."""
CLIENT_SIDE: Final = frozenset((Schema.AutoConsume,))
"""Types that stand for the topic's current schema."""
_ANYTHING: Final = frozenset((BYTES, Schema.External))
_NULL: Final = b"null"
"""The Python client's definition for a type without one."""


class Definitions:
    """Cache of Avro definitions that one computation uses several times."""

    def __init__(self) -> None:
        self._parsed: dict[bytes, avro_definition.Definition] = {}

    def avro(self, data: bytes) -> Steps[avro_definition.Definition]:
        """Parse an Avro definition. Raises InvalidSchema."""
        if data not in self._parsed:
            self._parsed[data] = yield from avro_definition.parsing(data)
        return self._parsed[data]


def check(schema: Schema) -> None:
    """Validate a definition in one go. Raises InvalidSchema if it is invalid for the schema's type."""
    completed(checking(schema, Definitions()))


def checking(schema: Schema, definitions: Definitions) -> Steps[None]:
    """Validate a definition in steps. Raises InvalidSchema if it is invalid for the schema's type."""
    kind = schema.type
    if kind in CLIENT_SIDE:
        raise InvalidSchema(f"Schema {Schema.Type.Name(kind)} is a client-side schema type")
    if kind in _ANYTHING:
        return
    try:
        if kind in IN_AVRO:
            parsed = yield from definitions.avro(schema.schema_data)
            if kind == Schema.Avro and parsed.root.kind == "union":
                raise InvalidSchema("Avro schema typed [UNION] is not supported")
        elif kind == Schema.ProtobufNative:
            from pulsarbox.protocol.schema import native_definition

            yield from native_definition.parsing(schema.schema_data)
        elif kind == Schema.Type.KeyValue:
            for each in key_value.split(schema):
                yield from checking(each, definitions)
        elif schema.schema_data and not (kind == Schema.String and schema.schema_data == _NULL):
            raise InvalidSchema("it must be empty")
    except InvalidSchema as error:
        text = str(error)
        if text.startswith("Invalid schema"):
            raise
        raise InvalidSchema(f"Invalid schema definition data for {spelling(kind)} schema: {text}") from None


def meaning(schema: Schema, definitions: Definitions) -> Steps[bytes | None]:
    """Return a digest that is equal for equivalent schemas of one type, regardless of their text.

    None for types that are compared by text, and for an invalid definition.
    """
    if schema.type not in IN_AVRO:
        return None
    try:
        parsed = yield from definitions.avro(schema.schema_data)
    except InvalidSchema:
        return None
    return parsed.meaning


def same(a: Schema, b: Schema) -> bool:
    """Return whether two schemas are equivalent, so that a topic stores one version for both."""
    if a.type != b.type or a.schema_data == b.schema_data:
        return a.type == b.type
    first, second = (completed(meaning(each, Definitions())) for each in (a, b))
    return first is not None and first == second
