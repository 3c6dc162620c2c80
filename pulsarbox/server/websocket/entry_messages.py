"""Messages of received entries: decompression, batches, and the JSON of their metadata."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked, decompress
from pulsarbox.protocol.ack_sets import bits_of, indexes_of
from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.PulsarApi_pb2 import CommandMessage, MessageIdData, MessageMetadata, SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.server.one_shot_thread import run_in_thread
from pulsarbox.server.websocket.message_json import encode_id, encryption_context, timestamp

IN_LOOP_MAX: Final = 64 << 10
"""Bytes that are decompressed, or encoded as JSON, in the event loop; more are in a thread."""
SKIPPED_IN_TURN: Final = 1000
"""Acknowledged messages of a batch that are skipped in one turn of the loop."""
UNCOMPRESSED_MAX: Final = 64 << 20
"""Maximum bytes of a decompressed entry."""


class UnreadableEntry(Exception):
    """An entry cannot be decoded; the message names it."""


class SocketMessage(NamedTuple):
    """One message of an entry."""

    metadata: MessageMetadata
    own: MessageMetadata | SingleMessageMetadata
    """The metadata of the message itself: that of the entry, or that of one message of its batch."""
    payload: bytes
    id: MessageIdData
    redeliveries: int

    @property
    def properties(self) -> dict[str, str]:
        """The properties; of a repeated name, the last."""
        return {_text(each.key): _text(each.value) for each in self.own.properties}

    @property
    def key(self) -> str | None:
        """The key as text."""
        return _text(self.own.partition_key) if self.own.HasField("partition_key") else None

    def about(self) -> dict[str, Any]:
        """Return the JSON fields without the payload."""
        found: dict[str, Any] = {
            "messageId": encode_id(self.id),
            "properties": self.properties,
            "publishTime": timestamp(self.metadata.publish_time),
            "redeliveryCount": self.redeliveries,
        }
        if self.own.event_time:
            found["eventTime"] = timestamp(self.own.event_time)
        if self.metadata.encryption_keys:
            found["encryptionContext"] = encryption_context(self.metadata)
        if (key := self.key) is not None:
            found["key"] = key
        return found


async def uncompressed(metadata: MessageMetadata, body: bytes) -> bytes:
    """Return the uncompressed body of an entry. Raises UnreadableEntry."""
    number, size = metadata.compression, metadata.uncompressed_size
    if not number:
        return body
    try:
        if size <= IN_LOOP_MAX:
            return decompress(number, body, size, UNCOMPRESSED_MAX)
        return await run_in_thread("decompress", lambda: decompress(number, body, size, UNCOMPRESSED_MAX))
    except (CodecMissing, NotUnpacked) as error:
        raise UnreadableEntry(str(error)) from None


def messages_of(
    command: CommandMessage, metadata: MessageMetadata, body: bytes, partition: int
) -> Iterator[SocketMessage | None]:
    """Yield the unacknowledged messages of an entry with an uncompressed body; None after many acknowledged ones.

    Raises UnreadableEntry.
    """
    redeliveries = command.redelivery_count
    if not metadata.HasField("num_messages_in_batch") or metadata.encryption_keys:
        where = entry_id(command.message_id, partition)
        yield SocketMessage(metadata, metadata, b"" if metadata.null_value else body, where, redeliveries)
        return
    count = metadata.num_messages_in_batch
    wanted = indexes_of(bits_of(command.ack_set)) if command.ack_set else iter(range(count))
    following = next(wanted, count)
    try:
        for index, (single, payload) in enumerate(iterate_batch(body, count)):
            if index == following:
                following = next(wanted, count)
                where = entry_id(command.message_id, partition)
                where.batch_index, where.batch_size = index, count
                yield SocketMessage(metadata, single, payload, where, redeliveries)
            elif index % SKIPPED_IN_TURN == 0:
                yield None
    except MalformedMetadata as error:
        raise UnreadableEntry(str(error)) from None


def entry_id(where: MessageIdData, partition: int) -> MessageIdData:
    """Return the ID of an entry's only message."""
    found = MessageIdData(ledgerId=where.ledgerId, entryId=where.entryId, batch_size=0)
    if partition >= 0:
        found.partition = partition
    return found


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")
