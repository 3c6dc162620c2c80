"""Encoding of messages for a producer: SEND frames, metadata and batches.

Writing the metadata of a payload-only message in a batch by hand takes at most half the time of filling and serialising
a SingleMessageMetadata. Protobuf is faster for messages with more fields, and is used for them. Protobuf rejects
text that is not valid UTF-8, so such text is written by hand, unchanged. Fields are in numeric order, as protobuf's.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from pulsarbox.protocol.commands import encode_payload
from pulsarbox.protocol.PulsarApi_pb2 import SingleMessageMetadata
from pulsarbox.protocol.varint import signed, varint

_u32 = Struct(">I").pack
_two_sizes = Struct(">II").pack


class Outgoing(NamedTuple):
    """A message to publish. Text may contain surrogate escapes (PEP 383), which are sent as the original bytes."""

    payload: bytes | None
    """None is a null value, a tombstone; an empty payload is different."""
    key: str | None = None
    key_is_base64: bool = False
    """Whether ``key`` is base64-encoded bytes."""
    ordering_key: bytes | None = None
    properties: Sequence[tuple[str, str]] = ()
    """Properties in order; names may repeat."""
    event_time: int = 0
    """Milliseconds since 1970; 0 for none."""
    deliver_at: int = 0
    """Milliseconds since 1970; 0 for none. Such a message is not batched."""
    publish_time: int = 0
    """Milliseconds since 1970; 0 for the time of sending."""
    sequence_id: int | None = None
    """None for the producer's next sequence ID."""
    schema_version: bytes | None = None
    null_key: bool = False


class Envelope(NamedTuple):
    """Entry-level fields of the metadata, beside those of the message."""

    producer_name: str
    sequence_id: int
    publish_time: int
    compression: int = 0
    """CompressionType; 0 for none."""
    uncompressed_size: int = 0
    messages: int = 0
    """Messages in the batch; 0 if the entry is not a batch."""
    highest_sequence_id: int = 0
    """Highest sequence ID of the batch; 0 for none."""
    chunk: tuple[str, int, int, int] | None = None
    """Of a chunked message: UUID, number of chunks, total size in bytes, index of this chunk."""
    txn: tuple[int, int] | None = None
    """The transaction ID, most significant bits (the coordinator) first; None outside a transaction."""
    fields: bytes = b""
    """Further encoded fields of MessageMetadata: those of encryption and of an external schema."""


class StoredEntry(NamedTuple):
    """A previously stored entry, to be published again."""

    message: Outgoing
    """The message without its payload; for a batch, the fields common to its messages."""
    envelope: Envelope
    """Name, sequence ID and publish time of the original producer. An empty name, a sequence ID of -1 and a time of 0
    are filled in."""
    body: bytes
    """The body, compressed and encrypted as ``envelope`` specifies."""
    encrypted: bool = False
    continues: bool = False
    """Whether the entry is a further chunk of the preceding message."""

    @property
    def messages(self) -> int:
        """The number of messages that the entry completes."""
        if self.envelope.chunk is not None:
            _, chunks, _, index = self.envelope.chunk
            return int(index == chunks - 1)
        return self.envelope.messages or 1


def encoded(text: str) -> bytes:
    """Encode text, restoring escaped bytes that were not UTF-8."""
    if text.isascii():
        return text.encode()
    return text.encode("utf-8", "surrogateescape")


def _field(tag: bytes, data: bytes) -> bytes:
    return b"".join((tag, varint(len(data)), data))


def _properties(tag: bytes, properties: Sequence[tuple[str, str]]) -> bytes:
    data = b""
    for name, value in properties:
        key, text = encoded(name), encoded(value)
        pair = b"\x0a" + varint(len(key)) + key + b"\x12" + varint(len(text)) + text
        data += tag + varint(len(pair)) + pair
    return data


_PLAIN_HEADS = [b"\x18" + varint(size) + b"\x40" for size in range(1024)]


def plain_in_batch(payload: bytes, sequence_id: int) -> tuple[bytes, bytes]:
    """Return a payload-only message of a batch: size and metadata, and the payload."""
    size = len(payload)
    head = _PLAIN_HEADS[size] if size < 1024 else b"\x18" + varint(size) + b"\x40"
    data = head + varint(sequence_id)
    return _u32(len(data)) + data, payload


def in_batch(message: Outgoing, sequence_id: int) -> tuple[bytes, bytes]:
    """Return a message of a batch: size and metadata, and the payload."""
    payload = message.payload
    single = SingleMessageMetadata()
    single.payload_size = len(payload) if payload else 0
    single.sequence_id = sequence_id
    try:
        for name, value in message.properties:
            single.properties.add(key=name, value=value)
        if message.key is not None:
            single.partition_key = message.key
    except UnicodeEncodeError:  # bytes that are not UTF-8, which protobuf rejects
        data = _by_hand(message, sequence_id)
        return _u32(len(data)) + data, payload or b""
    if message.event_time:
        single.event_time = message.event_time
    if message.key_is_base64:
        single.partition_key_b64_encoded = True
    if message.ordering_key is not None:
        single.ordering_key = message.ordering_key
    if payload is None:
        single.null_value = True
    if message.null_key:
        single.null_partition_key = True
    data = single.SerializeToString()
    return _u32(len(data)) + data, payload or b""


def _by_hand(message: Outgoing, sequence_id: int) -> bytes:
    payload, key, is_base64, ordering_key, properties, event_time, *_ = message
    data = _properties(b"\x0a", properties) if properties else b""
    if key is not None:
        text = encoded(key)
        data += b"\x12" + varint(len(text)) + text
    data += b"\x18" + varint(len(payload) if payload else 0)
    if event_time:
        data += b"\x28" + varint(event_time)
    if is_base64:
        data += b"\x30\x01"
    if ordering_key is not None:
        data += _field(b"\x3a", ordering_key)
    data += b"\x40" + varint(sequence_id)
    if payload is None:
        data += b"\x48\x01"
    if message.null_key:
        data += b"\x50\x01"
    return data


def metadata(message: Outgoing, envelope: Envelope) -> bytes:
    """Return the MessageMetadata of an entry.

    For a batch, ``message`` holds the fields common to its messages: key, ordering key, schema version.
    """
    parts = [
        _field(b"\x0a", encoded(envelope.producer_name)),
        b"\x10" + varint(envelope.sequence_id),
        b"\x18" + varint(envelope.publish_time),
        _properties(b"\x22", message.properties),
    ]
    if message.key is not None:
        parts.append(_field(b"\x32", encoded(message.key)))
    if envelope.compression:
        parts.append(b"\x40" + varint(envelope.compression))
        parts.append(b"\x48" + varint(envelope.uncompressed_size))
    if envelope.messages:
        parts.append(b"\x58" + varint(envelope.messages))
    if message.event_time:
        parts.append(b"\x60" + varint(message.event_time))
    if message.schema_version is not None:
        parts.append(_field(b"\x82\x01", message.schema_version))
    if message.key_is_base64:
        parts.append(b"\x88\x01\x01")
    if message.ordering_key is not None:
        parts.append(_field(b"\x92\x01", message.ordering_key))
    if message.deliver_at:
        parts.append(b"\x98\x01" + signed(message.deliver_at))
    parts.append(_txn(envelope, b"\xb0\x01", b"\xb8\x01"))
    if envelope.highest_sequence_id:
        parts.append(b"\xc0\x01" + varint(envelope.highest_sequence_id))
    if message.payload is None:
        parts.append(b"\xc8\x01\x01")
    parts.append(_chunk(envelope))
    if message.null_key:
        parts.append(b"\xf0\x01\x01")
    parts.append(envelope.fields)
    return b"".join(parts)


def _txn(envelope: Envelope, tag_of_least: bytes, tag_of_most: bytes) -> bytes:
    if envelope.txn is None:
        return b""
    most, least = envelope.txn
    return b"".join((tag_of_least, varint(least), tag_of_most, varint(most)))


def _chunk(envelope: Envelope) -> bytes:
    if envelope.chunk is None:
        return b""
    uuid, chunks, size, index = envelope.chunk
    numbers = b"\xd8\x01" + varint(chunks) + b"\xe0\x01" + varint(size) + b"\xe8\x01" + varint(index)
    return _field(b"\xd2\x01", encoded(uuid)) + numbers


def send_frame(producer_id: int, envelope: Envelope, entry_metadata: bytes, body: bytes) -> bytes:
    """Return the SEND frame of an entry."""
    parts = [b"\x08", varint(producer_id), b"\x10", varint(envelope.sequence_id)]
    if envelope.messages > 1:
        parts.append(b"\x18" + varint(envelope.messages))
    parts.append(_txn(envelope, b"\x20", b"\x28"))
    if envelope.highest_sequence_id:
        parts.append(b"\x30" + varint(envelope.highest_sequence_id))
    if envelope.chunk is not None:
        parts.append(b"\x38\x01")
    send = b"".join(parts)
    command = b"".join((b"\x08\x06\x32", varint(len(send)), send))
    payload = encode_payload(entry_metadata, body)
    return b"".join((_two_sizes(4 + len(command) + len(payload), len(command)), command, payload))
