"""Schemas of topics, with their definitions as text."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pulsarbox.broker.topic.topic_schemas import StoredSchema
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, IncompatibleSchema, InvalidSchema, NotFound, PulsarBoxError, Unprocessable
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.steps import Steps
from pulsarbox.protocol.schema.types import SCHEMA_TYPES, spelling
from pulsarbox.server.http.framework.request import (
    JSON,
    DeferredAnswer,
    HttpRequest,
    HttpResponse,
    Pieces,
    answer,
    compact,
    fairness_group,
    kind_of,
    plain,
    texts,
)
from pulsarbox.server.http.framework.routes import HttpRoute, Permission

T = TypeVar("T")

_CLIENT_SIDE: Final = ("AUTO", "AUTO_CONSUME", "AUTO_PUBLISH")
NO_VERSION: Final = -1
"""Pulsar's version number for a schema that a topic does not have."""


def get(call: HttpRequest) -> HttpResponse:
    """Return the newest version of a schema, or the requested one."""
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


def versions(call: HttpRequest) -> Pieces:
    """Return all versions of a schema, oldest first."""
    found = call.broker.schemas.versions(call.topic("persistent"))

    def pieces() -> Iterator[bytes]:
        yield b'{"getSchemaResponses":['
        for number, each in enumerate(found):
            yield (b"," if number else b"") + compact(_shown(each)).encode(errors="replace")
        yield b"]}"

    return Pieces(JSON, pieces())


def post(call: HttpRequest) -> DeferredAnswer:
    """Return the version of a schema, adding it if it is new. The topic need not exist."""
    topic, schema, schemas = call.topic("persistent"), _parse_schema(call), call.broker.schemas
    steps = schemas.putting(topic, schema, call.now.wall)
    return _computed(call, schema, steps, lambda stored: answer({"version": {"version": stored.version}}))


def compatibility(call: HttpRequest) -> DeferredAnswer:
    """Return whether a schema is compatible as the next version, by which strategy, and why not."""
    topic, schema, schemas = call.topic("persistent"), _parse_schema(call), call.broker.schemas

    def checking() -> Steps[dict[str, Any]]:
        told: dict[str, Any] = {"compatibility": True, "schemaCompatibilityStrategy": schemas.strategy(topic)}
        try:
            yield from schemas.checking(topic, schema)
        except InvalidSchema:
            raise
        except IncompatibleSchema as error:
            told |= {"compatibility": False, "reason": str(error)}
        return told

    return _computed(call, schema, checking(), lambda told: answer(told)._replace(status=202))


def version_of(call: HttpRequest) -> DeferredAnswer:
    """Return the version of a schema on the topic; -1 if it has none, even in a namespace that does not exist."""
    topic, schema = call.topic("persistent"), _parse_schema(call, anywhere=True)
    steps = call.broker.schemas.finding(topic, schema)
    return _computed(
        call, schema, steps, lambda known: answer({"version": NO_VERSION if known is None else known.version})
    )


def _computed(call: HttpRequest, schema: Schema, steps: Steps[T], shown: Callable[[T], HttpResponse]) -> DeferredAnswer:
    """Answer with the result of a computation. Those of one role alternate with those of others."""
    later = DeferredAnswer()

    def computed(found: T | PulsarBoxError, now: Now) -> None:
        if isinstance(found, PulsarBoxError):
            later.failed(found)
        else:
            later.complete(shown(found))

    call.broker.schemas.run(fairness_group(call), schema, steps, computed, call.now)
    return later


def metadata(call: HttpRequest) -> HttpResponse:
    """Return the version numbers, with that of a deletion; nothing for a topic that never had a schema.

    Pulsar adds their locations in BookKeeper, which do not exist in a box.
    """
    numbers = call.broker.schemas.numbers(call.topic("persistent"))
    if not numbers:
        return plain("")
    places = [{"ledgerId": -1, "entryId": -1, "version": number} for number in numbers]
    return answer({"info": places[-1], "index": places})


def delete(call: HttpRequest) -> HttpResponse:
    """Delete all versions. The answer is the version of the deletion, -1 with force."""
    topic, schemas = call.topic("persistent"), call.broker.schemas
    call.tenants.get(call.path["tenant"])
    return answer({"version": schemas.delete(topic, force=call.flag("force"))})


def _parse_schema(call: HttpRequest, *, anywhere: bool = False) -> Schema:
    """Parse the schema in the body of a request. Raises BadRequest, Unprocessable, and NotFound for the namespace,
    unless it may be missing.
    """
    topic, body = call.topic("persistent"), call.json_object()
    if body is None:
        raise BadRequest('The body must be a schema: {"type": ..., "schema": ..., "properties": {...}}')
    if not (anywhere or call.tenants.has_namespace(topic.namespace)):
        raise NotFound("Namespace does not exist")
    name, text = body.get("type"), body.get("schema")
    if not isinstance(name, str) or not isinstance(text, str):
        raise BadRequest(f"type and schema must be strings, not {kind_of(name)} and {kind_of(text)}")
    if name in _CLIENT_SIDE:
        raise Unprocessable(f"Schema {name} is a client-side schema type")
    name = "NONE" if name == "BYTES" else name
    if name not in SCHEMA_TYPES:
        raise Unprocessable(f"Unknown schema type {name!r}: expected one of {', '.join(SCHEMA_TYPES)}")
    data = _key_value_bytes(text) if name == "KEY_VALUE" else text.encode(errors="replace")
    schema = Schema(name=topic.base.local, schema_data=data, type=SCHEMA_TYPES[name])
    for key, value in texts(body.get("properties"), "Properties of a schema").items():
        schema.properties.add(key=key, value=value)
    return schema


def _shown(stored: StoredSchema) -> dict[str, Any]:
    schema = stored.schema
    is_pair = schema.type == Schema.Type.KeyValue
    return {
        "version": stored.version,
        "type": spelling(schema.type),
        "timestamp": stored.created,
        "data": _key_value_text(schema.schema_data) if is_pair else schema.schema_data.decode(errors="replace"),
        "properties": {item.key: item.value for item in schema.properties},
    }


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# As text, the definition of a KEY_VALUE schema is a JSON object of both; an empty one is an empty string.


def _key_value_bytes(text: str) -> bytes:
    pair = _parsed(text)
    if not isinstance(pair, dict) or "key" not in pair or "value" not in pair:
        raise Unprocessable(
            'Invalid schema definition data for KEY_VALUE schema: it must be {"key": ..., "value": ...}'
        )
    return key_value.join(
        *(compact(pair[part]).encode(errors="replace") if pair[part] != "" else b"" for part in ("key", "value"))
    )


def _key_value_text(data: bytes) -> str:
    shown = [part.decode(errors="replace") for part in key_value.parts(data)]
    key, value = (each if _parsed(each) is not None else compact(each) for each in shown)
    return f'{{"key":{key},"value":{value}}}'


_TOPIC = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("GET", f"{_TOPIC}/schema", Permission.TOPIC_USER, get),
    HttpRoute("GET", f"{_TOPIC}/schema/{{version}}", Permission.TOPIC_USER, get),
    HttpRoute("GET", f"{_TOPIC}/schemas", Permission.TOPIC_USER, versions),
    HttpRoute("POST", f"{_TOPIC}/schema", Permission.TOPIC_PRODUCER, post),
    HttpRoute("POST", f"{_TOPIC}/compatibility", Permission.TENANT_ADMIN, compatibility),
    HttpRoute("POST", f"{_TOPIC}/version", Permission.TOPIC_USER, version_of),
    HttpRoute("GET", f"{_TOPIC}/metadata", Permission.TOPIC_USER, metadata),
    HttpRoute("DELETE", f"{_TOPIC}/schema", Permission.TENANT_ADMIN, delete),
)
