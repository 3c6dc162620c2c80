"""The messages of a stored entry, one by one, as filters and fingerprints look at them. Done where entries are read.

What cannot be opened (it is encrypted, its codec is missing, it is one chunk of several) is one message without a
payload, and says why.
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
"""Property of a replayed message: the job that put it back. Whoever makes a dead letter of it again keeps it."""
REPLAY_COUNT: Final = "REPLAY_COUNT"
"""Property of a replayed message: how often it was put back."""

Schemas = Mapping[int, Schema]
"""The schemas of a topic by version."""


class Looked:
    """One message, with all that may be asked of it."""

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
        """Of the entry."""
        self.own = own
        """Of the message in a batch; else that of the entry."""
        self.index = index
        """In its batch; -1 where it is the entry."""
        self.payload = payload
        """As its producer gave it; None where it cannot be opened."""
        self.source = source
        """The topic that it is stored in."""
        self.schemas = schemas
        self._properties: dict[str, str] | None = None
        self._json: Any = _UNASKED
        self._value: Any = _UNASKED

    @property
    def properties(self) -> dict[str, str]:
        """Its properties."""
        if self._properties is None:
            self._properties = key_values(self.own.properties)
        return self._properties

    @property
    def message_id(self) -> str:
        """``ledger:entry:partition:index``, as our commands write it: -1 where there is no partition, or no batch."""
        return f"{self.entry.ledger_id}:{self.entry.entry_id}:{self.partition}:{self.index}"

    @property
    def partition(self) -> int:
        """The number of its partition; -1 where its topic is none."""
        return parse_topic(self.source).partition_index

    @property
    def key(self) -> str | None:
        """Its key, in base64 where that is how the client sent it."""
        if not self.own.HasField("partition_key"):
            return None
        key: str | bytes = self.own.partition_key
        return key.decode(errors="replace") if isinstance(key, bytes) else key

    @property
    def encrypted(self) -> bool:
        """Whether only its producer and its consumers can read it."""
        return bool(self.metadata.encryption_keys)

    @property
    def tombstone(self) -> bool:
        """Whether it was sent without a payload on purpose."""
        return self.own.null_value

    @property
    def json(self) -> Any:
        """Its payload as JSON, None where it is none."""
        if self._json is _UNASKED:
            try:
                self._json = json.loads(self.payload) if self.payload else None
            except (ValueError, RecursionError):
                self._json = None
        return self._json

    @property
    def value(self) -> Any:
        """What its payload says by the schema that it was written with; None without, or where it says nothing."""
        if self._value is _UNASKED:
            self._value = self._decoded()
        return self._value

    @property
    def said(self) -> Any:
        """Its value, or its payload as JSON where it has no schema."""
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
        """The schema that it was written with."""
        version = self.metadata.schema_version
        return self.schemas.get(int.from_bytes(version, "big")) if len(version) == 8 else None

    # As a dead letter

    @property
    def origin(self) -> str | None:
        """The topic that it was published to first."""
        return self.properties.get(REAL_TOPIC)

    @property
    def subscription(self) -> str | None:
        """The subscription that gave it up, where that is told."""
        return self.properties.get(REAL_SUBSCRIPTION)

    @property
    def origin_id(self) -> str | None:
        """Its id in the topic that it was published to first."""
        return self.properties.get(ORIGIN_MESSAGE_ID) or self.properties.get(ORIGIN_MESSAGE_ID_OLD)

    @property
    def reason(self) -> str | None:
        """Why the box made a dead letter of it."""
        return self.properties.get(DEAD_LETTER_REASON)

    @property
    def replays(self) -> int:
        """How often it was put back already."""
        return replays_of(self.properties)


def replays_of(properties: dict[str, str]) -> int:
    """How often a message with these properties was put back already."""
    count = properties.get(REPLAY_COUNT, "")
    return int(count) if count.isascii() and count.isdigit() and len(count) < 10 else 0


_UNASKED: Final = object()


def _decoder(schema: bytes) -> decoding.Decode:
    """Of a schema as it is stored: making one takes milliseconds. Raises InvalidSchema."""
    return (_small_decoder if len(schema) <= _SMALL else _large_decoder)(schema)


def _make_decoder(schema: bytes) -> decoding.Decode:
    return decoding.decoder_of(Schema.FromString(schema))


_SMALL: Final = 16 << 10
"""Bytes of a schema; what decodes it takes up to a hundred times as much memory."""
_small_decoder = lru_cache(maxsize=64)(_make_decoder)
_large_decoder = lru_cache(maxsize=4)(_make_decoder)


class Opened(NamedTuple):
    """The messages of an entry."""

    messages: list[Looked]
    whole: str
    """Why there is only one of them, which stands for all of the entry; empty where the entry could be opened."""
    body: bytes = b""
    """What stands behind the metadata, as it is stored."""


def open_entry(entry: Entry, source: str, schemas: Schemas, most: int) -> Opened:
    """The messages of an entry of ``source``. What has more than ``most`` bytes unpacked is not unpacked."""
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
