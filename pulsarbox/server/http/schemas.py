"""Schemas of topics, their definitions as text."""

import json
import struct
from typing import Any, cast

from pulsarbox.broker.schemas import StoredSchema
from pulsarbox.errors import BadRequest, NotFound, Unprocessable
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.server.http.call import Answer, Call, answer, kind_of, texts
from pulsarbox.server.http.routes import Permission, Route

NAMES: dict[str, Schema.Type] = {
    "NONE": cast("Schema.Type", Schema.Type.Value("None")),
    "STRING": Schema.String,
    "JSON": Schema.Json,
    "PROTOBUF": Schema.Protobuf,
    "AVRO": Schema.Avro,
    "BOOLEAN": Schema.Bool,
    "INT8": Schema.Int8,
    "INT16": Schema.Int16,
    "INT32": Schema.Int32,
    "INT64": Schema.Int64,
    "FLOAT": Schema.Float,
    "DOUBLE": Schema.Double,
    "DATE": Schema.Date,
    "TIME": Schema.Time,
    "TIMESTAMP": Schema.Timestamp,
    "KEY_VALUE": Schema.Type.KeyValue,
    "INSTANT": Schema.Instant,
    "LOCAL_DATE": Schema.LocalDate,
    "LOCAL_TIME": Schema.LocalTime,
    "LOCAL_DATE_TIME": Schema.LocalDateTime,
    "PROTOBUF_NATIVE": Schema.ProtobufNative,
    "EXTERNAL": Schema.External,
}
"""Types as the Admin API spells them, and as the protocol has them."""

_SPELLING = {number: name for name, number in NAMES.items()}
_CLIENT_SIDE = ("AUTO", "AUTO_CONSUME", "AUTO_PUBLISH")
_RECORDS = ("AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE")
"""Types whose definition is a JSON object."""
_FREE = (*_RECORDS, "KEY_VALUE", "NONE", "EXTERNAL")
"""Types that take a definition at all."""


def get(call: Call) -> Answer:
    """The newest version of a schema, or the one that is asked for."""
    version = call.path.get("version")
    number = None
    if version is not None:
        try:
            number = int(version)
        except ValueError:
            raise BadRequest(f"The version must be a whole number, not {version[:40]!r}") from None
    stored = call.broker.schemas.get(call.topic("persistent"), number)
    if stored is None:
        raise NotFound("Schema not found")
    return answer(_shown(stored))


def versions(call: Call) -> Answer:
    """All versions of a schema, oldest first."""
    return answer(
        {"getSchemaResponses": [_shown(each) for each in call.broker.schemas.versions(call.topic("persistent"))]}
    )


def post(call: Call) -> Answer:
    """The version of a schema, a new one where the topic has no equal one. The topic need not exist."""
    topic, body = call.topic("persistent"), call.json_object()
    if body is None:
        raise BadRequest('The body must hold a schema: {"type": ..., "schema": ..., "properties": {...}}')
    if not call.broker.tenants.has_namespace(topic.namespace):
        raise NotFound("Namespace does not exist")
    schema_type, data = _definition(body.get("type"), body.get("schema"))
    schema = Schema(name=topic.base.local, schema_data=data, type=schema_type)
    for key, value in texts(body.get("properties"), "Properties of a schema").items():
        schema.properties.add(key=key, value=value)
    stored = call.broker.schemas.put(topic, schema, call.now.wall)
    return answer({"version": {"version": stored.version}})


def delete(call: Call) -> Answer:
    """Forget all versions. The answer is the version of the deletion, -1 of one by force."""
    topic, schemas = call.topic("persistent"), call.broker.schemas
    return answer({"version": schemas.delete(topic, force=call.flag("force"))})


def _definition(name: object, text: object) -> tuple[Schema.Type, bytes]:
    """The type and the definition as the protocol has them. Raises BadRequest, Unprocessable."""
    if not isinstance(name, str) or not isinstance(text, str):
        raise BadRequest(f"type and schema must be texts, not {kind_of(name)} and {kind_of(text)}")
    if name in _CLIENT_SIDE:
        raise Unprocessable(f"Schema {name} is a client-side schema type")
    name = "NONE" if name == "BYTES" else name
    if name not in NAMES:
        raise Unprocessable(f"There is no schema type {name!r}: it must be one of {', '.join(NAMES)}")
    if name == "KEY_VALUE":
        return NAMES[name], _key_value_bytes(text)
    if name in _RECORDS and not isinstance(_parsed(text), dict):
        raise Unprocessable(f"Invalid schema definition data for {name} schema")
    if name not in _FREE and text:
        raise Unprocessable(f"Invalid schema definition data for {name} schema: it has none, it must be empty")
    return NAMES[name], text.encode(errors="replace")


def _shown(stored: StoredSchema) -> dict[str, Any]:
    schema = stored.schema
    is_pair = schema.type == NAMES["KEY_VALUE"]
    return {
        "version": stored.version,
        "type": _SPELLING.get(schema.type, "NONE"),
        "timestamp": stored.created,
        "data": _key_value_text(schema.schema_data) if is_pair else schema.schema_data.decode(errors="replace"),
        "properties": {item.key: item.value for item in schema.properties},
    }


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# The definition of a KEY_VALUE schema is, in bytes: length and definition of the key, then of the value; in text, a
# JSON object of the two, in which a definition that is empty is an empty text.


def _key_value_bytes(text: str) -> bytes:
    pair = _parsed(text)
    if not isinstance(pair, dict) or "key" not in pair or "value" not in pair:
        raise Unprocessable(
            'Invalid schema definition data for KEY_VALUE schema: it must be {"key": ..., "value": ...}'
        )
    parts = []
    for name in ("key", "value"):
        if pair[name] != "" and not isinstance(pair[name], dict):
            raise Unprocessable(f"Invalid schema definition data for KEY_VALUE schema: the {name} is no definition")
        data = _compact(pair[name]).encode(errors="replace") if pair[name] else b""
        parts += [struct.pack(">I", len(data)), data]
    return b"".join(parts)


def _key_value_text(data: bytes) -> str:
    parts, offset = [], 0
    try:
        for _ in range(2):
            (length,) = struct.unpack_from(">i", data, offset)
            end = offset + 4 + max(length, 0)  # -1 stands for none with some clients
            parts.append(data[offset + 4 : end].decode(errors="replace"))
            offset = end
    except struct.error:
        return data.decode(errors="replace")
    key, value = (part if isinstance(_parsed(part), dict) else _compact(part) for part in parts)
    return f'{{"key":{key},"value":{value}}}'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_TOPIC = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"

ROUTES = (
    Route("GET", f"{_TOPIC}/schema", Permission.TOPIC_USER, get),
    Route("GET", f"{_TOPIC}/schema/{{version}}", Permission.TOPIC_USER, get),
    Route("GET", f"{_TOPIC}/schemas", Permission.TOPIC_USER, versions),
    Route("POST", f"{_TOPIC}/schema", Permission.TENANT_ADMIN, post),
    Route("DELETE", f"{_TOPIC}/schema", Permission.TENANT_ADMIN, delete),
)
