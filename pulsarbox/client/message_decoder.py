"""Decoding of received entries into messages: batches, compression, metadata."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from pulsarbox.client.compression import decompress
from pulsarbox.client.places import MessageId
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata

if TYPE_CHECKING:
    from pulsarbox.client.partition_consumer import TopicConsumer

_u32 = Struct(">I").unpack_from
_parse_single = SingleMessageMetadata.FromString


class ReceivedEntry:
    """State shared by the messages of one entry: position, metadata, and pending acknowledgements."""

    __slots__ = ("chunks", "consumer", "entry", "ledger", "metadata", "redelivery", "unacked")

    def __init__(
        self, consumer: TopicConsumer, ledger: int, entry: int, metadata: MessageMetadata, redelivery: int
    ) -> None:
        self.consumer = consumer
        self.ledger = ledger
        self.entry = entry
        self.metadata = metadata
        self.redelivery = redelivery
        self.unacked = 1
        """Bitmap of the entry's unacknowledged messages."""
        self.chunks: list[tuple[int, int]] = []
        """Positions (ledger, entry) of a chunked message's entries, including this one."""

    @property
    def places(self) -> list[tuple[int, int]]:
        """Positions (ledger, entry) of all entries of the message."""
        return self.chunks or [(self.ledger, self.entry)]


class ReceivedMessage:
    """A received message. ``payload`` is None for a null value (a tombstone)."""

    __slots__ = ("entry", "index", "payload", "single")

    def __init__(
        self, entry: ReceivedEntry, index: int, payload: bytes | None, single: SingleMessageMetadata | None
    ) -> None:
        self.entry = entry
        self.index = index
        """Batch index; -1 for a message outside a batch."""
        self.payload = payload
        self.single = single

    @property
    def topic(self) -> str:
        """The topic or partition of the message."""
        return self.entry.consumer.topic

    @property
    def partition(self) -> int:
        """The partition index, -1 for none."""
        return self.entry.consumer.partition

    @property
    def id(self) -> MessageId:
        """The message ID."""
        entry = self.entry
        return MessageId(entry.ledger, entry.entry, self.index, entry.consumer.partition)

    @property
    def _own(self) -> MessageMetadata | SingleMessageMetadata:
        return self.entry.metadata if self.single is None else self.single

    @property
    def key(self) -> str | None:
        """The partition key as text."""
        own = self._own
        return text(own.partition_key) if own.HasField("partition_key") else None

    @property
    def key_is_base64(self) -> bool:
        """Whether the key is base64-encoded bytes."""
        return self._own.partition_key_b64_encoded

    @property
    def null_key(self) -> bool:
        """Whether the key of a key-value message is null."""
        return self._own.null_partition_key

    @property
    def ordering_key(self) -> bytes | None:
        """The key for Key_Shared subscriptions, if it differs from the partition key."""
        own = self._own
        return own.ordering_key if own.HasField("ordering_key") else None

    @property
    def properties(self) -> list[tuple[str, str]]:
        """The properties in order; names may repeat."""
        return [(text(each.key), text(each.value)) for each in self._own.properties]

    @property
    def event_time(self) -> int:
        """Milliseconds since 1970, 0 for none."""
        return self._own.event_time

    @property
    def publish_time(self) -> int:
        """Milliseconds since 1970, by the producer's clock."""
        return self.entry.metadata.publish_time

    @property
    def deliver_at(self) -> int:
        """Milliseconds since 1970, 0 for immediate delivery."""
        return self.entry.metadata.deliver_at_time

    @property
    def sequence_id(self) -> int:
        """The sequence ID assigned by the producer."""
        if self.single is None:
            return self.entry.metadata.sequence_id
        if self.single.HasField("sequence_id"):
            return self.single.sequence_id
        return self.entry.metadata.sequence_id + self.index

    @property
    def producer_name(self) -> str:
        """The name of the producer."""
        return text(self.entry.metadata.producer_name)

    @property
    def schema_version(self) -> bytes | None:
        """The version of the message's schema, or None."""
        metadata = self.entry.metadata
        return metadata.schema_version if metadata.HasField("schema_version") else None

    @property
    def encrypted(self) -> bool:
        """Whether the payload is the ciphertext of a message or of a whole batch."""
        return len(self.entry.metadata.encryption_keys) > 0


def text(value: str | bytes) -> str:
    """Return a string field as text; bytes that are not UTF-8 become surrogate escapes, which encode back unchanged."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def unpack(entry: ReceivedEntry, body: bytes, ack_set: list[int]) -> list[ReceivedMessage]:
    """Return the unacknowledged messages of an entry. Raises MalformedMetadata and Unusable."""
    metadata = entry.metadata
    if metadata.encryption_keys:
        return [ReceivedMessage(entry, -1, body, None)]
    if metadata.compression:
        body = decompress(metadata.compression, body, metadata.uncompressed_size)
    count = metadata.num_messages_in_batch
    if count == 1 and not metadata.HasField("num_messages_in_batch"):
        return [ReceivedMessage(entry, -1, None if metadata.null_value else body, None)]
    wanted = _bits(ack_set) if ack_set else -1
    found: list[ReceivedMessage] = []
    append = found.append
    at = 0
    try:
        for index in range(count):
            start = at + 4
            end = start + _u32(body, at)[0]
            single = _parse_single(body[start:end])
            at = end + single.payload_size
            if single.null_value:
                append(ReceivedMessage(entry, index, None, single))
            else:
                append(ReceivedMessage(entry, index, body[end:at], single))
    except (DecodeError, IndexError, ValueError, OverflowError) as error:
        raise MalformedMetadata(
            f"entry {entry.ledger}:{entry.entry}: message {len(found)} of {count}: {error}"
        ) from None
    except Exception as error:  # struct.error, whose class has no other name in C
        raise MalformedMetadata(f"entry {entry.ledger}:{entry.entry} is not a batch of {count}: {error}") from None
    if at > len(body):
        raise MalformedMetadata(f"entry {entry.ledger}:{entry.entry} ends within its batch of {count} messages")
    entry.unacked = ((1 << count) - 1) & wanted
    return [each for each in found if wanted >> each.index & 1] if wanted != -1 else found


def _bits(words: list[int]) -> int:
    return sum((word & 0xFFFFFFFFFFFFFFFF) << 64 * place for place, word in enumerate(words))


def ack_words(bits: int) -> list[int]:
    """Return the ack_set of a bitmap: signed 64-bit words, lowest first; a set bit is an unacknowledged message."""
    words = []
    while bits:
        word = bits & 0xFFFFFFFFFFFFFFFF
        words.append(word - (1 << 64) if word >> 63 else word)
        bits >>= 64
    return words
