"""Messages of a stored entry, as seen by filters and fingerprints. Runs in the reader threads.

An entry that cannot be opened (encrypted, codec missing, one of several chunks) is one message without a payload, with
the reason.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pulsarbox.broker.dead_letter.message import (
    DEAD_LETTER_REASON,
    ORIGIN_MESSAGE_ID,
    ORIGIN_MESSAGE_ID_OLD,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
)
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked, decompress
from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.metadata import key_values, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, Schema, SingleMessageMetadata
from pulsarbox.protocol.schema import decoding
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

REPLAY_JOB: Final = "REPLAY_JOB"
"""Property of a replayed message: the number of its job. Kept if the message becomes a dead letter again."""
REPLAY_COUNT: Final = "REPLAY_COUNT"
"""Property of a replayed message: how often it was replayed."""

Schemas = Mapping[int, Schema]
"""Schemas of a topic by version."""


class Looked:
    """One stored message with its decoded attributes."""

    __slots__ = ("_json", "_properties", "_value", "entry", "index", "metadata", "own", "payload", "schemas", "source")

    def __init__(
        self,
        entry: Entry,
        metadata: MessageMetadata,
        own: MessageMetadata | SingleMessageMetadata,
        index: int,
        payload: bytes | None,
        source: str,
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
        self.source = source
        """The topic it is stored in."""
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
        return parse_topic(self.source).partition_index

    @property
    def key(self) -> str | None:
        """The key, in base64 if the client sent it so."""
        if not self.own.HasField("partition_key"):
            return None
        key: str | bytes = self.own.partition_key
        return key.decode(errors="replace") if isinstance(key, bytes) else key

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
    def said(self) -> Any:
        """The value by its schema, else the payload as JSON."""
        return self.json if self.value is None else self.value

    def _decoded(self) -> Any:
        schema = self.schema
        if schema is None or self.payload is None or self.tombstone:
            return None
        try:
            return _decoder(schema.SerializeToString())(self.payload)
        except (decoding.UndecodableError, PulsarBoxError):
            return None

    @property
    def schema(self) -> Schema | None:
        """The schema it was written with; None if it has none or the version is unknown."""
        version = self.metadata.schema_version
        return self.schemas.get(int.from_bytes(version, "big")) if len(version) == 8 else None

    # As a dead letter

    @property
    def origin(self) -> str | None:
        """The topic it was originally published to."""
        return self.properties.get(REAL_TOPIC)

    @property
    def subscription(self) -> str | None:
        """The subscription that moved it to the dead letter topic, if known."""
        return self.properties.get(REAL_SUBSCRIPTION)

    @property
    def origin_id(self) -> str | None:
        """Its message id in the topic it was originally published to."""
        return self.properties.get(ORIGIN_MESSAGE_ID) or self.properties.get(ORIGIN_MESSAGE_ID_OLD)

    @property
    def reason(self) -> str | None:
        """Why the box moved it to the dead letter topic."""
        return self.properties.get(DEAD_LETTER_REASON)

    @property
    def replays(self) -> int:
        """How often it has been replayed."""
        return replays_of(self.properties)


def replays_of(properties: dict[str, str]) -> int:
    """Return how often a message with these properties has been replayed."""
    count = properties.get(REPLAY_COUNT, "")
    return int(count) if count.isascii() and count.isdigit() and len(count) < 10 else 0


_UNASKED: Final = object()


def _decoder(schema: bytes) -> decoding.Decode:
    """Return the cached decoder of a serialized schema; creating one takes milliseconds. Raises InvalidSchema."""
    return (_small_decoder if len(schema) <= _SMALL else _large_decoder)(schema)


def _make_decoder(schema: bytes) -> decoding.Decode:
    return decoding.decoder_of(Schema.FromString(schema))


_SMALL: Final = 16 << 10
"""Schema size in bytes up to which more decoders are cached; a decoder takes up to 100 times as much memory."""
_small_decoder = lru_cache(maxsize=64)(_make_decoder)
_large_decoder = lru_cache(maxsize=4)(_make_decoder)


class Opened(NamedTuple):
    """The messages of an entry."""

    messages: list[Looked]
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
            plain = decompress(metadata.compression, body, metadata.uncompressed_size, most)
            if not batch:
                return Opened([Looked(entry, metadata, metadata, -1, plain, source, schemas)], "", body)
            inside = iterate_batch(plain, entry.num_messages)
            found = [
                Looked(entry, metadata, own, i, payload, source, schemas) for i, (own, payload) in enumerate(inside)
            ]
            return Opened(found, "", body)
        except (CodecMissing, NotUnpacked, MalformedMetadata) as error:
            why = f"it cannot be opened: {error}"
    return Opened([Looked(entry, metadata, metadata, -1, None, source, schemas)], why, body)


def _closed(entry: Entry) -> str:
    if entry.flags & EntryFlag.ENCRYPTED:
        return "it is encrypted"
    if entry.flags & EntryFlag.CHUNK:
        return "it is sent in chunks"
    return ""
