"""Publishing by HTTP: ``POST /topics/...``, as in Pulsar's brokers (PIP-64).

The body has ``messages``, each a ``payload`` as a string, with optional ``key``, ``properties``, ``eventTime``,
``sequenceId``, ``deliverAt``, ``deliverAfterMs``. They are encoded with a schema: that of ``schemaVersion``, the
``valueSchema`` in the body (with a ``keySchema``: a pair of both), or STRING. The answer, once everything is durable,
has the id of each message, or why it is not stored. Source: TopicsBase and ProducerMessages of Pulsar 4.2.
"""

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from pulsarbox.broker.topic.internal_publisher import Posted, post
from pulsarbox.broker.topic.non_persistent import NonPersistentTopic
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.broker.topic.topic_schemas import StoredSchema
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, InvalidSchema, NotFound, PreconditionFailed, PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandSend, KeyValue, MessageMetadata, Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.encoding import Encode, UnencodableError, making
from pulsarbox.protocol.schema.steps import Steps
from pulsarbox.protocol.schema.types import SCHEMA_TYPES, spelling
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import (
    DeferredAnswer,
    HttpRequest,
    HttpResponse,
    answer,
    fairness_group,
    kind_of,
    long_of,
    texts,
)
from pulsarbox.server.http.framework.resource_lookup import find_topic, require_namespace
from pulsarbox.server.http.framework.routes import HttpRoute, Permission

_NAME: Final = "RestProducer"
"""The default producer name."""
_LOCAL: Final = "__local__"
"""The cluster name that marks a message as not replicated."""
_STRING: Final = Schema(name="String", type=Schema.String, properties=[KeyValue(key="__charset", value="UTF-8")])
"""The default schema."""
_AT_ONCE: Final = 200
"""Messages processed per turn."""
_REFUSED: Final = 2
"""Error code of a message that is not stored."""


class _Encoded(NamedTuple):
    """A message encoded with the schema."""

    key: bytes | None
    """The key encoded with its own schema; None if keys have no schema."""
    text_key: str | None
    body: bytes


def produce(call: HttpRequest) -> DeferredAnswer:
    """Publish messages; those of a partitioned topic to the partitions chosen by the box's router."""
    return _Request(call).run()


def produce_to_partition(call: HttpRequest) -> DeferredAnswer:
    """Publish messages to one partition."""
    return _Request(call, call.number("partition")).run()


class _Request:
    """One request: its messages and their results."""

    def __init__(self, call: HttpRequest, partition: int | None = None) -> None:
        self._call = call
        self._name = call.topic()
        require_namespace(call, self._name)
        if partition is not None and self._name.base != self._name:
            raise BadRequest("The topic name must not name a partition if the path does")
        self._partitions = call.topics.partitions(self._name)
        self._partition = partition
        if partition is not None and not 0 <= partition < self._partitions:
            raise NotFound(f"{self._name} has no partition {partition}")
        if not self._partitions:
            find_topic(call, self._name, call.now)
        self._body = call.json_object() or {}
        self._messages = _messages(self._body)
        self._producer = _text(self._body, "producerName") or _NAME
        self._acks: list[dict[str, Any]] = [{} for _ in self._messages]
        self._encoded: list[_Encoded | Exception] = []
        """Each message encoded, or the exception of its encoding."""
        self._left = len(self._messages) + 1  # plus one for the last turn itself
        self._later: DeferredAnswer | None = None

    def run(self) -> DeferredAnswer:
        """See ``produce``."""
        later = DeferredAnswer()

        def encoded(failure: PulsarBoxError | None, now: Now) -> None:
            if failure is None:
                call = replace(self._call, now=now)
                in_turns(call, range(len(self._messages)), self._publish, finish, _AT_ONCE).on_complete(later.complete)
            else:
                later.failed(failure)

        def finish(now: Now, published: DeferredAnswer) -> None:
            self._later = published
            self._over()

        call = self._call
        call.broker.computations.run(fairness_group(call), len(call.body), self._encoding(), encoded, call.now)
        return later

    def _encoding(self) -> Steps[None]:
        """Determine the schema, and encode all messages with it."""
        self._version = yield from _schema(self._call, self._name, self._body)
        encode_key, encode = yield from _encoders(self._version.schema)
        for message in self._messages:
            made: _Encoded | Exception
            try:
                payload, key = _text(message, "payload"), _text(message, "key")
                if payload is None:
                    raise BadRequest("a message needs a payload")
                body = yield from encode(payload)
                made = _Encoded((yield from encode_key(key)) if encode_key and key is not None else None, key, body)
            except (PulsarBoxError, UnencodableError) as error:
                made = error
            self._encoded.append(made)

    def _publish(self, index: int, now: Now) -> None:
        ack, encoded = self._acks[index], self._encoded[index]
        try:
            if isinstance(encoded, Exception):
                raise encoded
            metadata = self._made(self._messages[index], encoded, now)
            part = self._part(metadata, len(encoded.body), now)
            self._send(part, metadata, encoded.body, Posted(partial(self._outcome, ack, part)), now)
        except (PulsarBoxError, UnencodableError) as error:
            self._refused(ack, str(error))

    def _send(self, part: TopicName, metadata: MessageMetadata, body: bytes, posted: Posted, now: Now) -> None:
        topic = find_topic(self._call, part, now)
        if isinstance(topic, PersistentTopic):
            post(topic, metadata, body, posted, now)
        else:
            assert isinstance(topic, NonPersistentTopic)
            topic.publish(posted, CommandSend(), encode_entry(metadata, body), now)

    def _part(self, metadata: MessageMetadata, size: int, now: Now) -> TopicName:
        if not self._partitions:
            return self._name
        index = self._partition
        if index is None:
            index = self._call.broker.routing.route(self._name, metadata, size, self._partitions, now)
        return self._name.partition(index)

    def _made(self, message: dict[str, Any], encoded: "_Encoded", now: Now) -> MessageMetadata:
        """Return the metadata of a message to publish. Raises BadRequest."""
        published = now.wall - now.offset
        metadata = MessageMetadata(
            producer_name=self._producer, sequence_id=_number(message, "sequenceId"), publish_time=published
        )
        if self._version.schema.type != Schema.Type.Value("None"):
            metadata.schema_version = self._version.version_bytes
        for name, value in texts(message.get("properties"), "The properties of a message").items():
            metadata.properties.add(key=name, value=value)
        if encoded.key is not None:
            metadata.partition_key = b64encode(encoded.key).decode()
            metadata.partition_key_b64_encoded = True
        elif encoded.text_key is not None:
            metadata.partition_key = encoded.text_key
        if event_time := _number(message, "eventTime"):
            metadata.event_time = event_time
        if deliver_at := _number(message, "deliverAt"):
            metadata.deliver_at_time = deliver_at
        elif after := _number(message, "deliverAfterMs"):
            metadata.deliver_at_time = published + after
        clusters = message.get("replicationClusters")
        if message.get("disableReplication") is True:
            clusters = [_LOCAL]
        metadata.replicate_to.extend(str(each) for each in clusters or ())
        metadata.uncompressed_size = len(encoded.body)
        return metadata

    def _outcome(self, ack: dict[str, Any], part: TopicName, found: Any, now: Now) -> None:
        if isinstance(found, PulsarBoxError):
            self._refused(ack, str(found))
            return
        ack.update(messageId=f"{found.ledger_id}:{found.entry_id}:{part.partition_index}", errorCode=0, schemaVersion=0)
        self._over()

    def _refused(self, ack: dict[str, Any], why: str) -> None:
        ack.update(errorMsg=why, errorCode=_REFUSED, schemaVersion=0)
        self._over()

    def _over(self) -> None:
        self._left -= 1
        if not self._left and self._later is not None:
            self._later.complete(self._answer())

    def _answer(self) -> HttpResponse:
        return answer({"messagePublishResults": self._acks, "schemaVersion": self._version.version})


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    found = body.get("messages")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadRequest('The body must have messages: {"messages": [{"payload": "hello"}]}')
    return found


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRequest(f"{name} must be a string, not {kind_of(value)}")
    return value


def _number(body: dict[str, Any], name: str) -> int:
    """Parse a non-negative number, possibly a string; 0 if it is missing."""
    value = body.get(name)
    if value is None or value == "":
        return 0
    text = str(value)
    number = None if isinstance(value, bool) else long_of(text)
    if number is None or number < 0:
        raise BadRequest(f"{name} must be a whole number from 0, not {text[:40]!r}")
    return number


# Schemas


def _schema(call: HttpRequest, name: TopicName, body: dict[str, Any]) -> Steps[StoredSchema]:
    """Return the schema for encoding the messages; one in the body is stored, like that of a producer."""
    version = body.get("schemaVersion", -1)
    if not isinstance(version, int) or isinstance(version, bool):
        raise BadRequest(f"schemaVersion must be a number, not {kind_of(version)}")
    if version >= 0:
        stored = call.broker.schemas.get(name, version)
        if stored is None:
            raise NotFound(f"{name} has no schema version {version}")
        return stored
    key, value = _text(body, "keySchema"), _text(body, "valueSchema")
    brought = _given("valueSchema", value) if value else _STRING
    if key:
        brought = key_value.joined(name.base.local, _given("keySchema", key), brought)
    return (yield from call.broker.schemas.bringing(name, brought, call.now.wall))


def _given(what: str, text: str) -> Schema:
    """Parse a Java SchemaInfo in JSON: its definition is base64, as Jackson encodes bytes."""
    try:
        info = json.loads(text)
        kind = info["type"]
        data = b64decode(info.get("schema") or "", validate=True)
        properties = texts(info.get("properties"), f"The properties of {what}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadRequest(
            f'{what} must be a string that contains JSON: {{"type": "AVRO", "schema": "<base64>", "properties": {{}}}}'
        ) from None
    if kind not in SCHEMA_TYPES and kind != "BYTES":
        raise BadRequest(f"Unknown schema type {kind!r} for {what}")
    number = SCHEMA_TYPES.get(kind, SCHEMA_TYPES["NONE"])
    schema = Schema(name=info.get("name") or kind, schema_data=data, type=number)
    for each, value in properties.items():
        schema.properties.add(key=each, value=value)
    return schema


def _encoders(schema: Schema) -> Steps[tuple[Encode | None, Encode]]:
    """Return the encoders of keys, if they have a schema, and of payloads. Raises PreconditionFailed."""
    try:
        if schema.type != Schema.Type.KeyValue:
            return None, (yield from making(schema))
        if not key_value.is_separated(schema):
            raise InvalidSchema("KEY_VALUE schemas that keep the key in the payload are not supported")
        key, value = key_value.split(schema)
        return (yield from making(key)), (yield from making(value))
    except InvalidSchema as error:
        raise PreconditionFailed(f"Messages cannot be produced by HTTP with {spelling(schema.type)}: {error}") from None


_TOPIC: Final = "/topics/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("POST", _TOPIC, Permission.TOPIC_PRODUCER, produce),
    HttpRoute("POST", f"{_TOPIC}/partitions/{{partition}}", Permission.TOPIC_PRODUCER, produce_to_partition),
)
