"""Messages as they come: entries taken apart, decompressed, each message with what its metadata says."""

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


class Entry:
    """What several messages share: the place of their entry, its metadata, and which of them are acknowledged."""

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
        """A bit for each message of it that is not acknowledged yet."""
        self.chunks: list[tuple[int, int]] = []
        """The entries of a message in chunks: ledgers and entries, this one too."""

    @property
    def places(self) -> list[tuple[int, int]]:
        """Ledger and entry of all that it is made of."""
        return self.chunks or [(self.ledger, self.entry)]


class Message:
    """A message. ``payload`` is None for a null value (a tombstone)."""

    __slots__ = ("entry", "index", "payload", "single")

    def __init__(self, entry: Entry, index: int, payload: bytes | None, single: SingleMessageMetadata | None) -> None:
        self.entry = entry
        self.index = index
        """In its batch; -1 where it is in none."""
        self.payload = payload
        self.single = single

    @property
    def topic(self) -> str:
        """The topic or partition that it came from."""
        return self.entry.consumer.topic

    @property
    def partition(self) -> int:
        """The partition's number, -1 for none."""
        return self.entry.consumer.partition

    @property
    def id(self) -> MessageId:
        """Where it is."""
        entry = self.entry
        return MessageId(entry.ledger, entry.entry, self.index, entry.consumer.partition)

    @property
    def _own(self) -> MessageMetadata | SingleMessageMetadata:
        return self.entry.metadata if self.single is None else self.single

    @property
    def key(self) -> str | None:
        """The partition key, as text."""
        own = self._own
        return text(own.partition_key) if own.HasField("partition_key") else None

    @property
    def key_is_base64(self) -> bool:
        """Whether the key is bytes in base64."""
        return self._own.partition_key_b64_encoded

    @property
    def null_key(self) -> bool:
        """Whether the key of a key-value message is null."""
        return self._own.null_partition_key

    @property
    def ordering_key(self) -> bytes | None:
        """Its key for Key_Shared subscriptions, where it has another one there."""
        own = self._own
        return own.ordering_key if own.HasField("ordering_key") else None

    @property
    def properties(self) -> list[tuple[str, str]]:
        """In their order; a name may come twice."""
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
        """Milliseconds since 1970, 0 for at once."""
        return self.entry.metadata.deliver_at_time

    @property
    def sequence_id(self) -> int:
        """The producer's number for it."""
        if self.single is None:
            return self.entry.metadata.sequence_id
        if self.single.HasField("sequence_id"):
            return self.single.sequence_id
        return self.entry.metadata.sequence_id + self.index

    @property
    def producer_name(self) -> str:
        """Who sent it."""
        return text(self.entry.metadata.producer_name)

    @property
    def schema_version(self) -> bytes | None:
        """The schema that it was written with."""
        metadata = self.entry.metadata
        return metadata.schema_version if metadata.HasField("schema_version") else None

    @property
    def encrypted(self) -> bool:
        """Whether the payload is what encryption left of a message, or of a whole batch."""
        return len(self.entry.metadata.encryption_keys) > 0


def text(value: str | bytes) -> str:
    """A field that should be UTF-8; bytes that are not come as surrogate escapes, and go out again as they were."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def unpack(entry: Entry, body: bytes, ack_set: list[int]) -> list[Message]:
    """The messages of an entry that are not acknowledged yet. Raises MalformedMetadata and Unusable."""
    metadata = entry.metadata
    if metadata.encryption_keys:
        return [Message(entry, -1, body, None)]
    if metadata.compression:
        body = decompress(metadata.compression, body, metadata.uncompressed_size)
    count = metadata.num_messages_in_batch
    if count == 1 and not metadata.HasField("num_messages_in_batch"):
        return [Message(entry, -1, None if metadata.null_value else body, None)]
    wanted = _bits(ack_set) if ack_set else -1
    found: list[Message] = []
    append = found.append
    at = 0
    try:
        for index in range(count):
            start = at + 4
            end = start + _u32(body, at)[0]
            single = _parse_single(body[start:end])
            at = end + single.payload_size
            if single.null_value:
                append(Message(entry, index, None, single))
            else:
                append(Message(entry, index, body[end:at], single))
    except (DecodeError, IndexError, ValueError, OverflowError) as error:
        raise MalformedMetadata(
            f"entry {entry.ledger}:{entry.entry}: message {len(found)} of {count}: {error}"
        ) from None
    except Exception as error:  # struct.error has no other name in C
        raise MalformedMetadata(f"entry {entry.ledger}:{entry.entry} is no batch of {count}: {error}") from None
    if at > len(body):
        raise MalformedMetadata(f"entry {entry.ledger}:{entry.entry} ends before its batch of {count} messages does")
    entry.unacked = ((1 << count) - 1) & wanted
    return [each for each in found if wanted >> each.index & 1] if wanted != -1 else found


def _bits(words: list[int]) -> int:
    return sum((word & 0xFFFFFFFFFFFFFFFF) << 64 * place for place, word in enumerate(words))


def ack_words(bits: int) -> list[int]:
    """The ack_set of an acknowledgement: signed words of 64 bits, lowest first, a bit for each message still open."""
    words = []
    while bits:
        word = bits & 0xFFFFFFFFFFFFFFFF
        words.append(word - (1 << 64) if word >> 63 else word)
        bits >>= 64
    return words
