"""Entries as clients encode them: single messages and batches with keys, by codec."""

from collections.abc import Sequence
from typing import Any

from pulsarbox.plugins.compression.wire import CODECS, compress, decompress
from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import EncryptionKeys, MessageMetadata, SingleMessageMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

Pair = tuple[str | None, bytes | None]
"""A key, or None for no key, and a value, or None for a tombstone."""


def entry_of(number: int, metadata: MessageMetadata, body: bytes) -> Entry:
    """Return entry ``number`` of ledger 7, with the header that the box writes."""
    flags, count = EntryFlag.CHECKSUM, 1
    if metadata.HasField("num_messages_in_batch"):
        flags, count = flags | EntryFlag.BATCH, metadata.num_messages_in_batch
    if metadata.HasField("partition_key") or metadata.HasField("ordering_key"):
        flags |= EntryFlag.KEY
    if metadata.encryption_keys:
        flags |= EntryFlag.ENCRYPTED
    if metadata.num_chunks_from_msg:
        flags |= EntryFlag.CHUNK
    if metadata.HasField("marker_type"):
        flags |= EntryFlag.MARKER
    payload = encode_entry(metadata, body)
    return Entry(7, number, flags, count, 0, 0, 0, 1, 1, 0, 0, payload)


def metadata_of(**fields: Any) -> MessageMetadata:
    told: dict[str, Any] = {"producer_name": "p", "sequence_id": 1, "publish_time": 1}
    return MessageMetadata(**(told | fields))


def single(number: int, key: str | None, value: bytes | None = b"v", **fields: Any) -> Entry:
    """Return a single message outside any batch."""
    if key is not None:
        fields["partition_key"] = key
    if value is None:
        fields["null_value"] = True
    return entry_of(number, metadata_of(**fields), value or b"")


def batch(number: int, pairs: Sequence[Pair], codec: str = "none", **fields: Any) -> Entry:
    """Return a batch of messages."""
    messages = []
    for key, value in pairs:
        one = SingleMessageMetadata()
        if key is not None:
            one.partition_key = key
        if value is None:
            one.null_value = True
        messages.append((one, value or b""))
    body = encode_batch(messages)
    metadata = metadata_of(
        num_messages_in_batch=len(pairs), compression=CODECS[codec], uncompressed_size=len(body), **fields
    )
    return entry_of(number, metadata, compress(CODECS[codec], body))


def encrypted(number: int, count: int) -> Entry:
    """Return an encrypted batch, which only its consumers can decrypt."""
    keys = [EncryptionKeys(key="k", value=b"secret")]
    return entry_of(number, metadata_of(num_messages_in_batch=count, encryption_keys=keys), b"\xff" * 40)


def opened(payload: bytes) -> list[tuple[str, bytes] | None]:
    """Return the messages of a payload, with None for those that are compacted out. Verifies the checksum."""
    parsed = parse_entry(payload)
    metadata = parsed.metadata
    body = payload[parsed.body_offset :]
    if not metadata.HasField("num_messages_in_batch"):
        return [(metadata.partition_key, body)]
    body = decompress(metadata.compression, body, metadata.uncompressed_size)
    return [
        None if one.compacted_out else (one.partition_key, value)
        for one, value in iterate_batch(body, metadata.num_messages_in_batch)
    ]
