"""Messages of a stored entry, as seen by filters and fingerprints. Runs in the reader threads.

An entry that cannot be opened (encrypted, codec missing, one of several chunks) is one message without a payload, with
the reason.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.plugins.compression.entry_body import unpack_batch, unpack_body
from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked
from pulsarbox.protocol.batch import message_sequence_id
from pulsarbox.protocol.dead_letters.message_view import MessageView
from pulsarbox.protocol.metadata import field_text, key_values, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, Schema, SingleMessageMetadata
from pulsarbox.protocol.schema import decoding
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

Schemas = Mapping[int, Schema]
"""Schemas of a topic by version."""


class InspectedMessage(MessageView):
    """One stored message with its decoded attributes."""

    __slots__ = ("_json", "_properties", "_value", "entry", "index", "metadata", "own", "payload", "schemas", "topic")
    payload: bytes | None
    topic: str

    def __init__(
        self,
        entry: Entry,
        metadata: MessageMetadata,
        own: MessageMetadata | SingleMessageMetadata,
        index: int,
        payload: bytes | None,
        topic: str,
        schemas: Schemas,
    ) -> None:
        self.entry = entry
        self.metadata = metadata
        """Metadata of the entry."""
        self.own = own
        """Metadata of the message in its batch, else of the entry."""
        self.index = index
        """Batch index; -1 if the message is the entire entry."""
        self.payload = payload
        """Payload as sent by the producer, decompressed; None if it cannot be opened."""
        self.topic = topic
        self.schemas = schemas
        self._properties: dict[str, str] | None = None
        self._json: Any = _UNASKED
        self._value: Any = _UNASKED

    @property
    def properties(self) -> dict[str, str]:
        """The message properties."""
        if self._properties is None:
            self._properties = key_values(self.own.properties)
        return self._properties

    @property
    def message_id(self) -> str:
        """``ledger:entry:partition:index`` as in the CLI; -1 without a partition or batch."""
        return f"{self.entry.ledger_id}:{self.entry.entry_id}:{self.partition}:{self.index}"

    @property
    def partition(self) -> int:
        """Partition number of its topic; -1 if the topic is not a partition."""
        return parse_topic(self.topic).partition_index

    @property
    def key(self) -> str | None:
        """The key, in base64 if the client sent it so."""
        if not self.own.HasField("partition_key"):
            return None
        return field_text(self.own.partition_key)

    @property
    def size(self) -> int:
        """Bytes of the payload; of the stored entry if it cannot be opened."""
        return len(self.entry.body if self.payload is None else self.payload)

    @property
    def publish_time(self) -> int:
        """Milliseconds since 1970, by the producer's clock."""
        return self.entry.publish_time

    @property
    def event_time(self) -> int:
        """Milliseconds since 1970; 0 for none."""
        return self.own.event_time

    @property
    def deliver_at(self) -> int:
        """Milliseconds since 1970; 0 for immediate delivery."""
        return self.entry.deliver_at

    @property
    def sequence_id(self) -> int:
        """Sequence ID assigned by the producer."""
        return message_sequence_id(self.metadata, self.own, self.index)

    @property
    def producer_name(self) -> str:
        """Name of the producer."""
        return field_text(self.metadata.producer_name)

    @property
    def encrypted(self) -> bool:
        """Whether it is encrypted, so that the broker cannot read it."""
        return bool(self.metadata.encryption_keys)

    @property
    def tombstone(self) -> bool:
        """Whether it has a null value."""
        return self.own.null_value

    @property
    def json(self) -> Any:
        """The payload parsed as JSON; None if it is not JSON."""
        if self._json is _UNASKED:
            try:
                self._json = json.loads(self.payload) if self.payload else None
            except (ValueError, RecursionError):
                self._json = None
        return self._json

    @property
    def value(self) -> Any:
        """The payload decoded by the schema it was written with; None without a schema or if it does not decode."""
        if self._value is _UNASKED:
            self._value = self._decoded()
        return self._value

    @property
    def decoded(self) -> Any:
        """The value by its schema, else the payload as JSON."""
        return self.json if self.value is None else self.value

    def _decoded(self) -> Any:
        schema = self.schema
        if schema is None or self.payload is None or self.tombstone:
            return None
        try:
            decode = _decoder(schema.SerializeToString())
            return decode(self.key, self.own.partition_key_b64_encoded, self.payload)
        except (decoding.UndecodableError, PulsarBoxError):
            return None

    @property
    def schema(self) -> Schema | None:
        """The schema it was written with; None if it has none or the version is unknown."""
        version = self.metadata.schema_version
        return self.schemas.get(int.from_bytes(version, "big")) if len(version) == 8 else None


_UNASKED: Final = object()


def _decoder(schema: bytes) -> decoding.MessageDecode:
    """Return the cached decoder of a serialized schema; creating one takes milliseconds. Raises InvalidSchema."""
    return (_small_decoder if len(schema) <= _SMALL else _large_decoder)(schema)


def _make_decoder(schema: bytes) -> decoding.MessageDecode:
    return decoding.message_decoder(Schema.FromString(schema))


_SMALL: Final = 16 << 10
"""Schema size in bytes up to which more decoders are cached; a decoder takes up to 100 times as much memory."""
_small_decoder = lru_cache(maxsize=64)(_make_decoder)
_large_decoder = lru_cache(maxsize=4)(_make_decoder)


class Opened(NamedTuple):
    """The messages of an entry."""

    messages: list[InspectedMessage]
    whole: str
    """Why the entry could not be opened and is represented by one message; empty if it was opened."""
    body: bytes = b""
    """The stored bytes after the metadata."""


def open_entry(entry: Entry, source: str, schemas: Schemas, most: int) -> Opened:
    """Return the messages of an entry of ``source``; it is not decompressed if larger than ``most`` bytes."""
    parsed = parse_entry(entry.body, verify=False)
    metadata = parsed.metadata
    body = entry.body[parsed.body_offset :]
    batch = bool(entry.flags & EntryFlag.BATCH)
    why = _closed(entry)
    if not why:
        try:
            if not batch:
                plain = unpack_body(metadata, body, most)
                return Opened([InspectedMessage(entry, metadata, metadata, -1, plain, source, schemas)], "", body)
            inside = unpack_batch(metadata, body, most)
            found = [
                InspectedMessage(entry, metadata, own, i, payload, source, schemas)
                for i, (own, payload) in enumerate(inside)
            ]
            return Opened(found, "", body)
        except (CodecMissing, NotUnpacked, MalformedMetadata) as error:
            why = f"it cannot be decoded: {error}"
    return Opened([InspectedMessage(entry, metadata, metadata, -1, None, source, schemas)], why, body)


def _closed(entry: Entry) -> str:
    if entry.flags & EntryFlag.ENCRYPTED:
        return "it is encrypted"
    if entry.flags & EntryFlag.CHUNK:
        return "it is chunked"
    return ""
