"""Check of an edited payload against the schema of its target topic."""

from functools import lru_cache
from typing import Any, Final

from pulsarbox.broker.dead_letter.message import Letter
from pulsarbox.broker.replay.message_edit import Edit
from pulsarbox.broker.topic.topic_schemas import Schemas
from pulsarbox.errors import IncompatibleSchema, InvalidSchema
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import decoding
from pulsarbox.protocol.schema.avro import definition as avro_definition
from pulsarbox.protocol.schema.avro.validation import is_valid
from pulsarbox.protocol.schema.types import spelling

_FIELDS_SHOWN: Final = 20


class SchemaCheck:
    """Checks the payload that a job's edit sets."""

    def __init__(self, schemas: Schemas, edit: Edit | None) -> None:
        self._schemas = schemas
        self._payload = None if edit is None else edit.payload

    def check(self, topic: TopicName, letter: Letter) -> None:
        """Raise IncompatibleSchema if the payload does not match the topic's schema."""
        if self._payload is None:
            return
        version = letter.metadata.schema_version
        stored = self._schemas.get(topic, int.from_bytes(version, "big") if version else None)
        why = "" if stored is None else misfit(stored.schema.SerializeToString(), self._payload)
        if why and stored is not None:
            raise IncompatibleSchema(
                f"the new payload does not match the {spelling(stored.schema.type)} schema of {topic}: {why}"
            )


@lru_cache(maxsize=64)
def misfit(schema: bytes, payload: bytes) -> str:
    """Return why a payload does not match a schema; empty if it does or that cannot be determined."""
    parsed = Schema.FromString(schema)
    try:
        value = decoding.payload_decoder(parsed)(payload)
    except decoding.UndecodableError as error:
        return str(error)
    except InvalidSchema:
        return ""
    return _not_of_record(parsed.schema_data, value) if parsed.type == Schema.Json else ""


def _not_of_record(definition: bytes, value: Any) -> str:
    """Check a JSON value against its schema, an Avro record; types without a JSON form are not checked."""
    if b'"bytes"' in definition or b'"fixed"' in definition or b"logicalType" in definition:
        return ""
    try:
        schema = avro_definition.parse(definition).root
    except InvalidSchema:  # stored before definitions were checked
        return ""
    if is_valid(schema, value):
        return ""
    fields = ", ".join(list(schema.fields)[:_FIELDS_SHOWN])
    return f"it does not match a record with the fields {fields or '(none)'}"
