"""Received messages, built from the messages that a producer sends."""

from types import SimpleNamespace
from typing import Any, cast

from pulsarbox.client.message_decoder import ReceivedEntry, ReceivedMessage, unpack
from pulsarbox.protocol.message_encoder import Envelope, Outgoing, in_batch, metadata
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata

TOPIC = "persistent://public/default/orders"
PUBLISHED = 1_700_000_000_000


def received(message: Outgoing, *, batched: bool = False, topic: str = TOPIC, partition: int = -1) -> ReceivedMessage:
    """A message as received: entry 12:7, as a single message or as the second of a batch of two."""
    when = message.publish_time or PUBLISHED
    consumer = cast(Any, SimpleNamespace(topic=topic, partition=partition, generation=0))
    if not batched:
        data = metadata(message, Envelope("sender", message.sequence_id or 0, when))
        entry = ReceivedEntry(consumer, 12, 7, MessageMetadata.FromString(data), 3)
        return unpack(entry, message.payload or b"", [])[0]
    common = Outgoing(b"", schema_version=message.schema_version)
    data = metadata(common, Envelope("sender", 0, when, messages=2, highest_sequence_id=1))
    entry = ReceivedEntry(consumer, 12, 7, MessageMetadata.FromString(data), 3)
    body = b"".join(
        [
            *in_batch(Outgoing(b"first"), 0),
            *in_batch(message, 1 if message.sequence_id is None else message.sequence_id),
        ]
    )
    return unpack(entry, body, [])[1]
