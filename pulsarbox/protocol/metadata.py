"""The payload of SEND and MESSAGE, which is also the stored entry: its metadata, its checksum, its parts.

::

    [u16 0x0e02][u32 size][BrokerEntryMetadata]     optional, only in stored entries
    [u16 0x0e01][u32 crc32c]                        optional, old clients send none
    [u32 metadataSize][MessageMetadata][body]       what the checksum covers

A payload is kept and delivered byte for byte. Metadata is read here and never written again: fields this protocol
does not know, and encrypted bodies, pass through as they came.
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
"""Stands before the size of broker entry metadata."""

_MAGIC_NUMBER = int.from_bytes(MAGIC, "big")
_checked_header = Struct(">HII").unpack_from  # magic, crc32c, metadata size
_u32 = Struct(">I").unpack_from
_pack_u32 = Struct(">I").pack
_parse_metadata = MessageMetadata.FromString


class ParsedEntry(NamedTuple):
    """A payload that was looked into. The offsets count bytes of that payload."""

    metadata: MessageMetadata
    """Of the message, or of the batch. A text field that is not UTF-8 reads as bytes."""
    checksum: int | None
    """The crc32c it carries, verified; None when it carries none."""
    start: int
    """Where what the producer sent begins: behind broker entry metadata, 0 when there is none."""
    metadata_start: int
    """Where the serialised metadata begins."""
    body_offset: int
    """Where the metadata ends and the body begins."""


def parse_entry(payload: bytes, verify: bool = True) -> ParsedEntry:
    """Look into a payload: sizes, checksum and metadata.

    ``verify`` False leaves the checksum unchecked, for entries that were verified when they came. Raises
    ChecksumMismatch, and MalformedMetadata for everything else that is wrong. About 1 us for 1 KiB, 6 us for 128 KiB.
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
    """A payload whose metadata's size stands right at ``start``, or one too short to have a checksum."""
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
    return ChecksumMismatch(f"crc32c of {len(payload) - covered} bytes is {found:#010x}, sent was {checksum:#010x}")


def _read_metadata(data: bytes) -> MessageMetadata:
    try:
        metadata = _parse_metadata(data)
    except DecodeError as error:
        raise MalformedMetadata(f"{len(data)} bytes are no metadata: {error}") from None
    # Required fields that are 0 or empty may be missing; protobuf does not tell the two apart on its own.
    if not (metadata.publish_time and metadata.sequence_id and metadata.producer_name) and not metadata.IsInitialized():
        raise MalformedMetadata(f"metadata without its required fields {missing_fields(metadata)}")
    return metadata


def _broker_entry_end(payload: bytes) -> int:
    """The offset behind the broker entry metadata that ``payload`` starts with."""
    if len(payload) < 6:
        raise MalformedMetadata(f"payload of {len(payload)} bytes ends before the broker entry metadata's size")
    size: int = _u32(payload, 2)[0]
    if size > len(payload) - 6:
        raise MalformedMetadata(f"broker entry metadata of {size} bytes, but only {len(payload) - 6} bytes follow")
    return 6 + size


def broker_entry_metadata(payload: bytes) -> BrokerEntryMetadata | None:
    """The broker entry metadata of a stored entry, None when it has none. Raises MalformedMetadata."""
    if payload[:2] != BROKER_ENTRY_MAGIC:
        return None
    end = _broker_entry_end(payload)
    try:
        return BrokerEntryMetadata.FromString(payload[6:end])
    except DecodeError as error:
        raise MalformedMetadata(f"{end - 6} bytes are no broker entry metadata: {error}") from None


def strip_broker_entry_metadata(payload: bytes) -> bytes:
    """The payload as the producer sent it. The same object when there is nothing to strip. Raises MalformedMetadata."""
    return payload[_broker_entry_end(payload) :] if payload[:2] == BROKER_ENTRY_MAGIC else payload


def with_broker_entry_metadata(payload: bytes, metadata: BrokerEntryMetadata) -> bytes:
    """The payload with ``metadata`` put before it: the stored entry when interceptors are on."""
    data = metadata.SerializeToString()
    return b"".join((BROKER_ENTRY_MAGIC, _pack_u32(len(data)), data, payload))


def encode_entry(metadata: MessageMetadata, body: bytes, checksum: bool = True) -> bytes:
    """A payload from its parts, for what the broker itself writes. Raises EncodeError without a required field."""
    data = metadata.SerializeToString()
    if checksum:
        return encode_payload(data, body)
    return b"".join((_pack_u32(len(data)), data, body))


BATCH_SURE: Final = 1000
"""A batch may say that it has so many messages, whatever its size: nothing that is done with them costs much."""
BATCH_MAX: Final = 1_000_000
"""No batch has more. A packed one can claim any size, and its bits are copied with each acknowledgement."""
_LEAST_SIZE: Final = 6
"""Bytes of a message in a batch: the size of its metadata, and the size of its payload in there."""
_MOST_PACKED: Final = 1024


def batch_fits(metadata: MessageMetadata, size: int) -> bool:
    """Whether a batch of ``size`` bytes can have as many messages as it says.

    The number is the client's word, and memory is taken and work done by it: a bit for each message, for instance.
    """
    count = metadata.num_messages_in_batch
    if count <= BATCH_SURE:
        return count > 0
    if count > BATCH_MAX:
        return False
    room = min(metadata.uncompressed_size, size * _MOST_PACKED) if metadata.compression else size
    return count * _LEAST_SIZE <= room


def key_values(pairs: Iterable[KeyValue]) -> dict[str, str]:
    """Properties as text. What is not UTF-8, and so reads as bytes, has its wrong bytes replaced."""
    return {_text(each.key): _text(each.value) for each in pairs}


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def sticky_key(metadata: MessageMetadata) -> bytes | None:
    """The key that decides the consumer of a Key_Shared subscription; None when the message has none.

    The ordering key, else the partition key, decoded when the client sent bytes in base64. A key that says base64 and
    is not is taken as it stands.
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
    """The key by which Key_Shared subscriptions choose a consumer: every entry has one.

    That of ``sticky_key``; without it the producer's name and the sequence id, so that an entry always goes to the same
    consumer (Pulsar 4.2, Commands.resolveStickyKey). Of a batch it is the key of the entry, not of its messages.
    """
    key = sticky_key(metadata)
    if key is not None:
        return key
    name: str | bytes = metadata.producer_name
    return b"%b-%d" % (name.encode() if isinstance(name, str) else name, metadata.sequence_id)
