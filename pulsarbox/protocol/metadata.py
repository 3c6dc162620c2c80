"""The payload of SEND and MESSAGE, which is also the stored entry: parsing, checksum, broker entry metadata.

::

        [u16 0x0e02][u32 size][BrokerEntryMetadata]     optional, only in stored entries
        [u16 0x0e01][u32 crc32c]                        optional, old clients send none
        [u32 metadataSize][MessageMetadata][body]       the bytes covered by the checksum

    A payload is stored and delivered byte for byte. Its metadata is parsed but never rewritten, so unknown fields and
    encrypted bodies pass through unchanged.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.protocol.commands import MAGIC, encode_payload, missing_fields
from pulsarbox.protocol.PulsarApi_pb2 import BrokerEntryMetadata, KeyValue, MessageMetadata
from pulsarbox.protocol.violations import ChecksumMismatch, MalformedMetadata

BROKER_ENTRY_MAGIC: Final = b"\x0e\x02"
"""Magic number before the size of broker entry metadata."""

_MAGIC_NUMBER = int.from_bytes(MAGIC, "big")
_checked_header = Struct(">HII").unpack_from  # magic, crc32c, metadata size
_u32 = Struct(">I").unpack_from
_pack_u32 = Struct(">I").pack
_parse_metadata = MessageMetadata.FromString


class ParsedEntry(NamedTuple):
    """A parsed payload. Offsets are relative to its start."""

    metadata: MessageMetadata
    """Metadata of the message or batch. A text field that is not UTF-8 is returned as bytes."""
    checksum: int | None
    """The verified crc32c, or None if the payload has none."""
    start: int
    """Offset of the producer's part: after broker entry metadata, 0 if there is none."""
    metadata_start: int
    """Offset of the serialised metadata."""
    body_offset: int
    """Offset of the body, right after the metadata."""


def parse_entry(payload: bytes, verify: bool = True) -> ParsedEntry:
    """Parse a payload: sizes, checksum and metadata.

    ``verify`` False skips the checksum, for entries that were verified on arrival. Raises ChecksumMismatch, or
    MalformedMetadata for any other defect. Takes about 1 us for 1 KiB, 6 us for 128 KiB.
    """
    start = _broker_entry_end(payload) if payload[:2] == BROKER_ENTRY_MAGIC else 0
    size = len(payload)
    if size >= start + 10:
        magic, checksum, metadata_size = _checked_header(payload, start)
        if magic == _MAGIC_NUMBER:
            metadata_start = start + 10
            body_offset = metadata_start + metadata_size
            if verify and crc32c(payload[start + 6 :]) != checksum:
                raise _mismatch(payload, start + 6, checksum)
            if body_offset > size:
                raise _beyond(metadata_size, size - metadata_start)
            metadata = _read_metadata(payload[metadata_start:body_offset])
            return ParsedEntry(metadata, checksum, start, metadata_start, body_offset)
    return _parse_without_checksum(payload, start)


def _parse_without_checksum(payload: bytes, start: int) -> ParsedEntry:
    """Parse a payload whose metadata size is right at ``start``, or one that is too short to have a checksum."""
    metadata_start = start + 4
    left = len(payload) - metadata_start
    if left < 0 or payload[start : start + 2] == MAGIC:
        raise MalformedMetadata(f"payload of {len(payload)} bytes ends before the metadata")
    metadata_size: int = _u32(payload, start)[0]
    if metadata_size > left:
        raise _beyond(metadata_size, left)
    body_offset = metadata_start + metadata_size
    metadata = _read_metadata(payload[metadata_start:body_offset])
    return ParsedEntry(metadata, None, start, metadata_start, body_offset)


def _beyond(metadata_size: int, left: int) -> MalformedMetadata:
    return MalformedMetadata(f"metadata of {metadata_size} bytes, but only {left} bytes follow")


def _mismatch(payload: bytes, covered: int, checksum: int) -> ChecksumMismatch:
    found = crc32c(payload[covered:])
    return ChecksumMismatch(f"crc32c of {len(payload) - covered} bytes is {found:#010x}, expected {checksum:#010x}")


def _read_metadata(data: bytes) -> MessageMetadata:
    try:
        metadata = _parse_metadata(data)
    except DecodeError as error:
        raise MalformedMetadata(f"malformed metadata of {len(data)} bytes: {error}") from None
    # Required fields that are 0 or empty may be absent: only IsInitialized can tell.
    if not (metadata.publish_time and metadata.sequence_id and metadata.producer_name) and not metadata.IsInitialized():
        raise MalformedMetadata(f"metadata without the required fields {missing_fields(metadata)}")
    return metadata


def _broker_entry_end(payload: bytes) -> int:
    """Return the offset after the broker entry metadata at the start of ``payload``."""
    if len(payload) < 6:
        raise MalformedMetadata(f"payload of {len(payload)} bytes ends before the size of the broker entry metadata")
    size: int = _u32(payload, 2)[0]
    if size > len(payload) - 6:
        raise MalformedMetadata(f"broker entry metadata of {size} bytes, but only {len(payload) - 6} bytes follow")
    return 6 + size


def broker_entry_metadata(payload: bytes) -> BrokerEntryMetadata | None:
    """Return the broker entry metadata of a stored entry, or None if it has none. Raises MalformedMetadata."""
    if payload[:2] != BROKER_ENTRY_MAGIC:
        return None
    end = _broker_entry_end(payload)
    try:
        return BrokerEntryMetadata.FromString(payload[6:end])
    except DecodeError as error:
        raise MalformedMetadata(f"malformed broker entry metadata of {end - 6} bytes: {error}") from None


def strip_broker_entry_metadata(payload: bytes) -> bytes:
    """Return the producer's payload, the same object if there is nothing to strip. Raises MalformedMetadata."""
    return payload[_broker_entry_end(payload) :] if payload[:2] == BROKER_ENTRY_MAGIC else payload


def with_broker_entry_metadata(payload: bytes, metadata: BrokerEntryMetadata) -> bytes:
    """Return the payload prefixed with ``metadata``: the stored entry when broker entry metadata is enabled."""
    data = metadata.SerializeToString()
    return b"".join((BROKER_ENTRY_MAGIC, _pack_u32(len(data)), data, payload))


def encode_entry(metadata: MessageMetadata, body: bytes, checksum: bool = True) -> bytes:
    """Encode a payload that the broker itself writes. Raises EncodeError if a required field is not set."""
    data = metadata.SerializeToString()
    if checksum:
        return encode_payload(data, body)
    return b"".join((_pack_u32(len(data)), data, body))


BATCH_SURE: Final = 1000
"""Messages that a batch may claim whatever its size: processing that many is cheap."""
BATCH_MAX: Final = 1_000_000
"""Maximum messages in a batch. A compressed batch can claim any size, and each acknowledgement copies its bits."""
_LEAST_SIZE: Final = 6
"""Minimum bytes of a message in a batch: its metadata size, and the payload size within the metadata."""
_MOST_PACKED: Final = 1024


def batch_fits(metadata: MessageMetadata, size: int) -> bool:
    """Return whether a batch of ``size`` bytes can contain the number of messages that it claims.

    The client chooses the number, and the broker spends memory and time on it, such as a bit for each message.
    """
    count = metadata.num_messages_in_batch
    if count <= BATCH_SURE:
        return count > 0
    if count > BATCH_MAX:
        return False
    room = min(metadata.uncompressed_size, size * _MOST_PACKED) if metadata.compression else size
    return count * _LEAST_SIZE <= room


def key_values(pairs: Iterable[KeyValue]) -> dict[str, str]:
    """Return properties as text. Bytes that are not valid UTF-8 are replaced."""
    return {field_text(each.key): field_text(each.value) for each in pairs}


def field_text(value: str | bytes) -> str:
    """Return a text field for display and comparison. Bytes that are not valid UTF-8 are replaced."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def sticky_key(metadata: MessageMetadata) -> bytes | None:
    """Return the key for routing in Key_Shared subscriptions, or None if the message has none.

    The ordering key, else the partition key, decoded if the client sent base64. A key that is flagged as base64 but is
    not valid is used as it is.
    """
    if metadata.HasField("ordering_key"):
        return metadata.ordering_key
    if not metadata.HasField("partition_key"):
        return None
    key: str | bytes = metadata.partition_key
    raw = key.encode() if isinstance(key, str) else key
    if not metadata.partition_key_b64_encoded:
        return raw
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error:
        return raw


def dispatch_key(metadata: MessageMetadata) -> bytes:
    """Return the key by which Key_Shared subscriptions select a consumer; every entry has one.

    The result of ``sticky_key``, else producer name and sequence ID, so that an entry always selects the same consumer
    (Pulsar 4.2, Commands.resolveStickyKey). For a batch it is the key of the entry, not of its messages.
    """
    key = sticky_key(metadata)
    if key is not None:
        return key
    name: str | bytes = metadata.producer_name
    return b"%b-%d" % (name.encode() if isinstance(name, str) else name, metadata.sequence_id)
