"""Messages as a producer writes them: SEND frames, metadata, and batches.

A message in a batch that has nothing but a payload takes half the time or less that it takes to set the fields of a
SingleMessageMetadata and to serialise it; where it has more, protobuf is faster, and used. It refuses text that is no
UTF-8: that is written by hand, so that it goes out as it came. Field order is that of the numbers, as protobuf's.
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
    """A message to be sent. Text may hold surrogate escapes (PEP 383): bytes that are no UTF-8 go out as they came."""

    payload: bytes | None
    """None is a null value, a tombstone: not the same as an empty payload."""
    key: str | None = None
    key_is_base64: bool = False
    """Whether ``key`` is bytes in base64."""
    ordering_key: bytes | None = None
    properties: Sequence[tuple[str, str]] = ()
    """In this order; a name may come twice."""
    event_time: int = 0
    """Milliseconds since 1970, 0 for none."""
    deliver_at: int = 0
    """Milliseconds since 1970, 0 for none. Such a message does not go in a batch."""
    publish_time: int = 0
    """Milliseconds since 1970, 0 for when it is sent."""
    sequence_id: int | None = None
    """None for the producer's next one."""
    schema_version: bytes | None = None
    null_key: bool = False


class Envelope(NamedTuple):
    """What the metadata of an entry says beside its message."""

    producer_name: str
    sequence_id: int
    publish_time: int
    compression: int = 0
    """CompressionType; 0 is none."""
    uncompressed_size: int = 0
    messages: int = 0
    """In the batch; 0 where it is none."""
    highest_sequence_id: int = 0
    """Of the batch; 0 for none."""
    chunk: tuple[str, int, int, int] | None = None
    """Of a message in several entries: uuid, number of chunks, bytes of all of them, index of this one."""
    txn: tuple[int, int] | None = None
    """The two halves of the id of the transaction that it is in, the coordinator's first; None outside of any."""
    fields: bytes = b""
    """Further fields of the MessageMetadata, encoded: those of encryption, and of an external schema."""


class StoredEntry(NamedTuple):
    """An entry as it was stored before, to be stored again."""

    message: Outgoing
    """Its message without the payload; of a batch, what its messages have in common."""
    envelope: Envelope
    """Of the producer that sent it: name, sequence id, publish time. An empty name, a sequence id of -1 and a time of 0
    are filled in."""
    body: bytes
    """Compressed and encrypted as ``envelope`` says."""
    encrypted: bool = False
    continues: bool = False
    """Whether it is a further chunk of the message before."""

    @property
    def messages(self) -> int:
        """How many messages it completes."""
        chunk = self.envelope.chunk
        if chunk is not None:
            return int(chunk[3] == chunk[1] - 1)
        return self.envelope.messages or 1


def encoded(text: str) -> bytes:
    """The bytes of a text, those included that never were UTF-8."""
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
    """Size and metadata of a message in a batch that has a payload and nothing else; and the payload."""
    size = len(payload)
    head = _PLAIN_HEADS[size] if size < 1024 else b"\x18" + varint(size) + b"\x40"
    data = head + varint(sequence_id)
    return _u32(len(data)) + data, payload


def in_batch(message: Outgoing, sequence_id: int) -> tuple[bytes, bytes]:
    """Size and metadata of a message in a batch; and its payload."""
    payload = message.payload
    single = SingleMessageMetadata()
    single.payload_size = len(payload) if payload else 0
    single.sequence_id = sequence_id
    try:
        for name, value in message.properties:
            single.properties.add(key=name, value=value)
        if message.key is not None:
            single.partition_key = message.key
    except UnicodeEncodeError:  # bytes that are no UTF-8: protobuf does not write them
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
    """The MessageMetadata of an entry.

    Of a batch, ``message`` holds what is common to its messages: key, ordering key, schema version.
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
    """The frame of SEND for an entry."""
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
