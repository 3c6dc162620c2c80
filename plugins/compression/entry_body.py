"""The body of an entry after its metadata: decompressed, and split into the messages of a batch."""

from __future__ import annotations

from pulsarbox.plugins.compression.wire import UNCOMPRESSED_MAX, compress, decompress
from pulsarbox.protocol.batch import encode_batch, read_batch
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata

BatchMessage = tuple[SingleMessageMetadata, bytes]
"""Metadata and payload of a message in a batch."""


def unpack_body(metadata: MessageMetadata, body: bytes, most: int = UNCOMPRESSED_MAX) -> bytes:
    """Return the decompressed body of an entry, at most ``most`` bytes. Raises CodecMissing, NotUnpacked."""
    return decompress(metadata.compression, body, metadata.uncompressed_size, most)


def unpack_batch(metadata: MessageMetadata, body: bytes, most: int = UNCOMPRESSED_MAX) -> list[BatchMessage]:
    """Return the messages of a batch. Raises CodecMissing, NotUnpacked, MalformedMetadata."""
    singles, payloads = read_batch(unpack_body(metadata, body, most), metadata.num_messages_in_batch)
    return [(single, payload or b"") for single, payload in zip(singles, payloads, strict=True)]


def pack_batch(metadata: MessageMetadata, messages: list[BatchMessage]) -> bytes:
    """Return the body of a batch, and set the counts in ``metadata``. Raises CodecMissing."""
    plain = encode_batch(messages)
    metadata.num_messages_in_batch = len(messages)
    if metadata.compression or metadata.HasField("uncompressed_size"):
        metadata.uncompressed_size = len(plain)
    return compress(metadata.compression, plain)
