"""Whether a schema's definition is one at all, and whether two are the same.

Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/.
"""

from typing import TYPE_CHECKING, Final

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.types import BYTES, spelling

if TYPE_CHECKING:
    from types import ModuleType

IN_AVRO: Final = frozenset((Schema.Avro, Schema.Json, Schema.Protobuf))
"""Types whose definition is in Avro's language."""
CLIENT_SIDE: Final = frozenset((Schema.AutoConsume,))
"""What a client says that goes by whatever schema there is."""
_ANYTHING: Final = frozenset((BYTES, Schema.External))
_NULL: Final = b"null"
"""What the Python client sends as the definition of a type that has none."""


def avro() -> "ModuleType":
    """What reads Avro's language; imported when it is wanted."""
    from pulsarbox.protocol.schema import avro_definition

    return avro_definition


def check(schema: Schema) -> None:
    """Raises InvalidSchema where a schema is none of its type."""
    kind = schema.type
    if kind in CLIENT_SIDE:
        raise InvalidSchema(f"Schema {Schema.Type.Name(kind)} is a client-side schema type")
    if kind in _ANYTHING:
        return
    try:
        if kind in IN_AVRO:
            _check_avro(schema)
        elif kind == Schema.ProtobufNative:
            from pulsarbox.protocol.schema import native_definition

            native_definition.parse(schema.schema_data)
        elif kind == Schema.Type.KeyValue:
            for each in key_value.split(schema):
                check(each)
        elif schema.schema_data and not (kind == Schema.String and schema.schema_data == _NULL):
            raise InvalidSchema("it has none, it must be empty")
    except InvalidSchema as error:
        text = str(error)
        if text.startswith("Invalid schema"):
            raise
        raise InvalidSchema(f"Invalid schema definition data for {spelling(kind)} schema: {text}") from None


def _check_avro(schema: Schema) -> None:
    parsed = avro().parse(schema.schema_data)
    if schema.type == Schema.Avro and avro().is_union(parsed):
        raise InvalidSchema("Avro schema typed [UNION] is not supported")


def same(a: Schema, b: Schema) -> bool:
    """Whether two schemas, both of which are some, are the same: a topic keeps one version for both."""
    if a.type != b.type:
        return False
    if a.schema_data == b.schema_data:
        return True
    if a.type not in IN_AVRO:
        return False
    try:
        return bool(avro().same(avro().parse(a.schema_data), avro().parse(b.schema_data)))
    except InvalidSchema:  # kept by a version that did not look
        return False
