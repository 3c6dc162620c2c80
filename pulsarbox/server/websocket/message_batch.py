"""Batches of a producer's messages."""

from time import time_ns
from typing import Final

from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.server.websocket.message_json import OutgoingMessage
from pulsarbox.server.websocket.socket_producer import SendOutcome

BATCH_BYTES: Final = 128 << 10
"""Maximum bytes of payloads in a batch: batchingMaxBytes of Java clients."""


class MessageBatch:
    """The messages of one batch: without delay and replication clusters, for which an entry has one value."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._messages: list[tuple[SingleMessageMetadata, bytes]] = []
        self._outcomes: list[SendOutcome] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._messages)

    @staticmethod
    def takes(message: OutgoingMessage, payload: bytes) -> bool:
        """Return whether a message may be part of a batch."""
        single = message.deliver_at > 0 or message.deliver_after > 0 or bool(message.replication_clusters)
        return not single and len(payload) < BATCH_BYTES

    def fits(self, message: OutgoingMessage, payload: bytes) -> bool:
        """Return whether there is room for a message."""
        return not self.is_full and self._size + len(payload) <= BATCH_BYTES

    @property
    def is_full(self) -> bool:
        """Whether the batch has all its messages."""
        return len(self._messages) >= self._most

    def add(self, message: OutgoingMessage, payload: bytes, sequence_id: int, outcome: SendOutcome) -> None:
        """Add a message."""
        single = SingleMessageMetadata(sequence_id=sequence_id, payload_size=len(payload))
        for name, value in message.properties.items():
            single.properties.add(key=name, value=value)
        if message.key is not None:
            single.partition_key = message.key
        if message.event_time:
            single.event_time = message.event_time
        self._messages.append((single, payload))
        self._outcomes.append(outcome)
        self._size += len(payload)

    def entry(self) -> tuple[MessageMetadata, bytes, list[SendOutcome]]:
        """Return the metadata and body of the batch's entry, and the outcomes of its messages."""
        first, last = self._messages[0][0], self._messages[-1][0]
        metadata = MessageMetadata(
            publish_time=time_ns() // 1_000_000,
            sequence_id=first.sequence_id,
            highest_sequence_id=last.sequence_id,
            num_messages_in_batch=len(self._messages),
        )
        if first.HasField("partition_key"):
            metadata.partition_key = first.partition_key
        return metadata, encode_batch(self._messages), self._outcomes
