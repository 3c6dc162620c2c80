"""Schema definitions: which are valid, and which mean the same.

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
"""Types whose definition is in Avro's language."""
CLIENT_SIDE: Final = frozenset((Schema.AutoConsume,))
"""Types that stand for whatever schema the topic has."""
_ANYTHING: Final = frozenset((BYTES, Schema.External))
_NULL: Final = b"null"
"""The definition that the Python client sends for a type without one."""


class Definitions:
    """Avro definitions that one computation uses several times."""

    def __init__(self) -> None:
        self._parsed: dict[bytes, avro_definition.Definition] = {}

    def avro(self, data: bytes) -> Steps[avro_definition.Definition]:
        """A definition in Avro's language. Raises InvalidSchema."""
        if data not in self._parsed:
            self._parsed[data] = yield from avro_definition.parsing(data)
        return self._parsed[data]


def check(schema: Schema) -> None:
    """Check a definition at once. Raises InvalidSchema where it is not one of the schema's type."""
    completed(checking(schema, Definitions()))


def checking(schema: Schema, definitions: Definitions) -> Steps[None]:
    """Check a definition. Raises InvalidSchema where it is not one of the schema's type."""
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
    """A digest that schemas of one type share where they mean the same, whatever their text.

    None where only the text counts, and for a definition that is not valid: versions of Pulsar and of the box have
    stored such.
    """
    if schema.type not in IN_AVRO:
        return None
    try:
        parsed = yield from definitions.avro(schema.schema_data)
    except InvalidSchema:
        return None
    return parsed.meaning


def same(a: Schema, b: Schema) -> bool:
    """Whether two schemas mean the same, so that a topic has one version for both."""
    if a.type != b.type or a.schema_data == b.schema_data:
        return a.type == b.type
    first, second = (completed(meaning(each, Definitions())) for each in (a, b))
    return first is not None and first == second
