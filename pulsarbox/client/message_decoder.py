"""Decoding of received entries into messages: batches, compression, metadata."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from pulsarbox.client.compression import decompress
from pulsarbox.client.places import MessageId
from pulsarbox.protocol.ack_sets import bits_of, indexes_of
from pulsarbox.protocol.batch import message_sequence_id, read_batch
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata

if TYPE_CHECKING:
    from pulsarbox.client.partition_consumer import TopicConsumer


class ReceivedEntry:
    """State shared by the messages of one entry: position, metadata, and pending acknowledgements."""

    __slots__ = ("chunks", "consumer", "entry", "generation", "ledger", "metadata", "redelivery", "unacked")

    def __init__(
        self, consumer: TopicConsumer, ledger: int, entry: int, metadata: MessageMetadata, redelivery: int
    ) -> None:
        self.consumer = consumer
        self.generation = consumer.generation
        """``TopicConsumer.generation`` at the delivery."""
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
        return message_sequence_id(self.entry.metadata, self._own, self.index)

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
    try:
        singles, payloads = read_batch(body, count)
    except MalformedMetadata as error:
        raise MalformedMetadata(f"entry {entry.ledger}:{entry.entry}: {error}") from None
    found = list(map(ReceivedMessage, repeat(entry), range(count), payloads, singles))
    entry.unacked = (1 << count) - 1
    if not ack_set:
        return found
    entry.unacked &= bits_of(ack_set)
    return [found[index] for index in indexes_of(entry.unacked)]
