"""NDJSON envelopes: lossless conversion between a message and one line of JSON.

``docs/cli.md`` lists the fields. UTF-8 text is a string; other bytes are base64, in a field whose name ends in
``_b64``. The JSON is ASCII. Absent values, such as a key or an event time, have no field.
"""

import base64
import binascii
import json
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.cli.envelope import stored_fields
from pulsarbox.client.message_decoder import ReceivedEntry, ReceivedMessage, text
from pulsarbox.client.partition_consumer import TopicConsumer
from pulsarbox.protocol.message_encoder import Outgoing
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata

if TYPE_CHECKING:
    from pulsarbox.cli.messages.schema_decoding import Decoding

VERSION: Final = 1
_MILLIS_MAX: Final = 2**63 - 1
_WORD_MAX: Final = 2**64 - 1


class EnvelopeWriter:
    """Writer of envelopes, which caches the text shared by the messages of an entry."""

    def __init__(self, decoding: "Decoding | None" = None, ask: "stored_fields.Ask | None" = None) -> None:
        """``decoding`` adds the decoded value of each message; ``ask`` adds the definition of each schema once."""
        self._decoding = decoding
        self._definitions = None if ask is None else stored_fields.SchemaDefinitions(ask)
        self._definition = ""
        self._entry: ReceivedEntry | None = None
        self._consumer: TopicConsumer | None = None
        self._producer: str | bytes | None = None
        self._topic = self._named = self._head = self._tail = ""

    def line(self, message: ReceivedMessage) -> bytes:
        """Return the envelope of a message, with a newline."""
        entry = message.entry
        metadata = entry.metadata
        if entry is not self._entry:
            self._begin(entry, metadata)
        single = message.single
        own = metadata if single is None else single
        has = own.HasField
        line = f'{self._head}{message.index}"'
        if has("partition_key") or own.null_partition_key:
            line += _key(message)
        if has("ordering_key"):
            line += f',"ordering_key_b64":"{_base64(own.ordering_key)}"'
        line += _payload(message.payload)
        if self._decoding is not None:
            line += self._value(self._decoding, message)
        if own.properties:
            line += _properties(message.properties)
        if own.event_time:
            line += f',"event_time":{own.event_time}'
        sequence = metadata.sequence_id if single is None else message.sequence_id
        if self._definition:
            line += self._definition
            self._definition = ""
        return f'{line},"seq":{sequence},"publish_time":{metadata.publish_time}{self._tail}'.encode("ascii")

    def _value(self, decoding: "Decoding", message: ReceivedMessage) -> str:
        value = decoding.value(message)
        return "" if value is decoding.NOTHING else f',"value":{json.dumps(value, separators=(",", ":"))}'

    def _begin(self, entry: ReceivedEntry, metadata: MessageMetadata) -> None:
        """Prepare the text shared by all messages of an entry."""
        consumer, producer = entry.consumer, metadata.producer_name
        if consumer is not self._consumer:
            self._consumer = consumer
            self._topic = f'{{"v":{VERSION},"topic":{encode_basestring_ascii(consumer.topic)},"id":"'
        if producer is not self._producer and producer != self._producer:
            self._producer = producer
            self._named = f',"producer":{encode_basestring_ascii(text(producer))},"redelivery":'
        self._head = f"{self._topic}{entry.ledger}:{entry.entry}:{consumer.partition}:"
        tail = f"{self._named}{entry.redelivery}"
        if metadata.deliver_at_time:
            tail = f',"deliver_at":{metadata.deliver_at_time}{tail}'
        if metadata.HasField("schema_version"):
            tail += f',"schema":"{_base64(metadata.schema_version)}"'
            if self._definitions is not None:
                self._definition = self._definitions.first(consumer.topic, metadata.schema_version)
        stored = stored_fields.written(metadata, len(entry.chunks))
        if stored:
            tail += "," + json.dumps(stored, separators=(",", ":"))[1:-1]
        self._tail = tail + "}\n"
        self._entry = entry


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _key(message: ReceivedMessage) -> str:
    null = ',"key_null":true' if message.null_key else ""
    key = message.key
    if key is None:
        return null
    return f'{null},"{"key_b64" if message.key_is_base64 else "key"}":{encode_basestring_ascii(key)}'


def _payload(payload: bytes | None) -> str:
    if payload is None:
        return ',"payload":null'
    try:
        return f',"payload":{encode_basestring_ascii(payload.decode())}'
    except UnicodeDecodeError:
        return f',"payload_b64":"{_base64(payload)}"'


def _properties(properties: list[tuple[str, str]]) -> str:
    """Return properties as an object, or as a list of pairs if a name is repeated."""
    found = dict(properties)
    return f',"props":{json.dumps(found if len(found) == len(properties) else properties, separators=(",", ":"))}'


# Reading -------------------------------------------------------------------------------------------------------------


def read(line: bytes) -> Outgoing:
    """Return the message of an envelope for publishing. Unknown fields are ignored. Raises ValueError."""
    document = parsed(line)
    if document.get("encrypted") is True:
        raise ValueError("the payload is encrypted: use --preserve, which also publishes the encryption keys")
    return message_of(document)


def parsed(line: bytes) -> dict[str, Any]:
    """Parse the JSON object of a line. Raises ValueError."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from None
    if type(document) is not dict:
        raise ValueError("invalid envelope: expected a JSON object")
    if document.get("v", VERSION) != VERSION:
        raise ValueError(f"unsupported envelope version {document['v']!r}; expected {VERSION}")
    return document


def message_of(document: dict[str, Any], *, is_exact: bool = False) -> Outgoing:
    """Return the application's part of a message: payload, keys, properties, times. Raises ValueError.

    With ``is_exact``, a key flagged as base64 is kept even if it is not base64.
    """
    get = document.get
    key_b64 = get("key_b64")
    if key_b64 is not None and not is_exact:
        base64_of(key_b64, "key_b64")
    properties = get("props")
    return Outgoing(
        _payload_of(document),
        _text(key_b64 if key_b64 is not None else get("key"), "key"),
        key_b64 is not None,
        None if get("ordering_key_b64") is None else base64_of(document["ordering_key_b64"], "ordering_key_b64"),
        _pairs(properties) if properties else (),
        word(get("event_time"), "event_time"),
        _millis(get("deliver_at"), "deliver_at"),
        null_key=get("key_null") is True,
    )


def _payload_of(document: dict[str, Any]) -> bytes | None:
    encoded = document.get("payload_b64")
    if encoded is not None:
        return base64_of(encoded, "payload_b64")
    if "payload" not in document:
        raise ValueError("no payload: expected payload (text, or null for a tombstone) or payload_b64")
    payload = document["payload"]
    if payload is None:
        return None
    if type(payload) is not str:
        raise ValueError("payload is not text: expected a JSON string, or payload_b64")
    try:
        return payload.encode()
    except UnicodeEncodeError:
        raise ValueError("payload contains an unpaired surrogate: use payload_b64") from None


def base64_of(value: Any, name: str) -> bytes:
    """Decode a base64 field. Raises ValueError."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError(f"{name} is not base64") from None


def _text(value: Any, name: str) -> str | None:
    if value is None:
        return None
    if type(value) is not str:
        raise ValueError(f"{name} is not text")
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{name} contains an unpaired surrogate") from None
    return value


def _millis(value: Any, name: str) -> int:
    """Return a signed time in milliseconds, as in the protocol; 0 for None. Raises ValueError."""
    if value is None:
        return 0
    if type(value) is not int or not -_MILLIS_MAX <= value <= _MILLIS_MAX:
        raise ValueError(f"{name}: expected a number from {-_MILLIS_MAX} to {_MILLIS_MAX}")
    return value


def word(value: Any, name: str) -> int:
    """Return an unsigned 64-bit number; 0 for None. Raises ValueError."""
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value <= _WORD_MAX:
        raise ValueError(f"{name}: expected a number from 0 to {_WORD_MAX}")
    return value


def _pairs(value: Any) -> list[tuple[str, str]]:
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list):
        raise ValueError("props: expected an object or a list of pairs")
    found = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(type(each) is str for each in pair):
            raise ValueError("props: expected text names and values")
        found.append((_text(pair[0], "a name in props") or "", _text(pair[1], "a value in props") or ""))
    return found
