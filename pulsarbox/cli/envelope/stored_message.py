"""Messages of envelopes with all stored fields, and the entries built from them."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from pulsarbox.cli.common.position_options import message_id
from pulsarbox.cli.envelope import stored_fields
from pulsarbox.cli.envelope.envelope import base64_of, message_of, parsed, word
from pulsarbox.client.compression import compress
from pulsarbox.client.message_decoder import text
from pulsarbox.client.places import MessageId
from pulsarbox.names import parse_topic
from pulsarbox.protocol.message_encoder import Envelope, Outgoing, StoredEntry, in_batch
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, Schema


class StoredMessage(NamedTuple):
    """A message as its topic stored it."""

    message: Outgoing
    topic: str
    """Source topic or partition, empty if unknown."""
    id: MessageId | None
    """Message ID in the source topic."""
    batch: int
    """Batch size, 0 for an unbatched message."""
    producer: str
    sequence_id: int | None
    publish_time: int
    """Milliseconds since 1970, 0 if unknown."""
    codec: int
    """CompressionType of the entry."""
    encrypted: bool
    schema_version: bytes | None
    schema: Schema | None
    """Definition of the schema version, only in its first message."""
    metadata: MessageMetadata | None
    """Metadata not stored in the fields above."""

    @property
    def base_topic(self) -> str:
        """The topic without its partition suffix."""
        return str(parse_topic(self.topic).base) if self.topic else ""

    def is_in_same_batch(self, other: "StoredMessage") -> bool:
        """Return whether both messages were in one batch."""
        here, there = self.id, other.id
        if here is None or there is None or here.batch_index < 0 or there.batch_index < 0 or self.encrypted:
            return False
        return here[:2] == there[:2] and self.topic == other.topic


def read(line: bytes) -> StoredMessage:
    """Parse an envelope. Raises ValueError for a line that is not an envelope, or a field of a wrong type."""
    document = parsed(line)
    place = document.get("id")
    found = message_id(place) if type(place) is str else None
    if place is not None and found is None:
        raise ValueError(f"invalid id {place!r}; expected ledger:entry:partition:index")
    version = document.get("schema")
    sequence = document.get("seq")
    return StoredMessage(
        message_of(document, is_exact=True),
        _name(document, "topic"),
        found,
        stored_fields.batch(document),
        _name(document, "producer"),
        None if sequence is None else word(sequence, "seq"),
        word(document.get("publish_time"), "publish_time"),
        stored_fields.codec(document),
        document.get("encrypted") is True,
        None if version is None else base64_of(version, "schema"),
        stored_fields.schema(document),
        stored_fields.metadata(document),
    )


def _name(document: dict[str, Any], field: str) -> str:
    name = document.get(field, "")
    if type(name) is not str:
        raise ValueError(f"{field} is not text")
    return name


def entry_of(group: Sequence[StoredMessage], codec: int, schema_version: bytes | None) -> StoredEntry:
    """Return the entry of the messages of a batch, or of one unbatched message, compressed with ``codec``.

    A batch takes its key from its first message, as clients do. Raises Unusable if the codec is missing.
    """
    first = group[0]
    message = first.message._replace(schema_version=schema_version)
    fields = b"" if first.metadata is None else first.metadata.SerializePartialToString()
    number = -1 if first.sequence_id is None else first.sequence_id
    envelope = Envelope(first.producer, number, first.publish_time, fields=fields)
    body = first.message.payload or b""
    if first.encrypted:
        return _sealed(message._replace(payload=b""), envelope, body, first)
    if first.id is None or first.id.batch_index < 0:
        return StoredEntry(message, *_packed(envelope, body, codec))
    numbers = _numbers(group)
    body = b"".join(itertools.chain.from_iterable(map(in_batch, (each.message for each in group), numbers)))
    highest = numbers[-1] if len(group) > 1 else 0
    envelope = envelope._replace(sequence_id=numbers[0], messages=len(group), highest_sequence_id=highest)
    common = message._replace(payload=b"", properties=(), event_time=0)
    return StoredEntry(common, *_packed(envelope, body, codec))


def _sealed(message: Outgoing, envelope: Envelope, body: bytes, stored: StoredMessage) -> StoredEntry:
    """Return an encrypted entry with its original body and encryption metadata."""
    told = stored.metadata or MessageMetadata()
    chunk = None
    if told.num_chunks_from_msg > 1:
        chunk = (text(told.uuid), told.num_chunks_from_msg, told.total_chunk_msg_size, told.chunk_id)
    envelope = envelope._replace(
        compression=stored.codec,
        uncompressed_size=told.uncompressed_size,
        messages=stored.batch,
        chunk=chunk,
    )
    return StoredEntry(message, envelope, body, encrypted=True, continues=chunk is not None and told.chunk_id > 0)


def _packed(envelope: Envelope, body: bytes, codec: int) -> tuple[Envelope, bytes]:
    if not codec or not body:  # other clients cannot decompress an empty body
        return envelope, body
    return envelope._replace(compression=codec, uncompressed_size=len(body)), compress(codec, body)


def _numbers(group: Sequence[StoredMessage]) -> list[int]:
    """Return the sequence IDs; a message without one follows the message before."""
    found: list[int] = []
    for each in group:
        following = found[-1] + 1 if found else 0
        found.append(following if each.sequence_id is None else each.sequence_id)
    return found
