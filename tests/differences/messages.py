"""Messages of scenarios, encoded as frames."""

import time
from dataclasses import dataclass, field
from typing import Any, Final

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.commands import encode_payload, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, MessageIdData

PRODUCER_NAME: Final = "p"
"""Producer name in the metadata of messages: part of the key of a message without one."""

EARLIEST: Final = MessageIdData(ledgerId=(1 << 64) - 1, entryId=(1 << 64) - 1)
LATEST: Final = MessageIdData(ledgerId=(1 << 63) - 1, entryId=(1 << 63) - 1)


@dataclass(frozen=True)
class Draft:
    """Message, or with ``batch`` a batch of several; ``metadata`` has fields of MessageMetadata."""

    text: str = ""
    batch: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """Return the payload as ``telling.payload_text`` renders it."""
        return f"[{' '.join(self.batch)}]" if self.batch else self.text


def numbered(count: int, start: int = 0) -> list[str]:
    """Return payloads ``m0``, ``m1``, ..."""
    return [f"m{number}" for number in range(start, start + count)]


def keyed(key: str, text: str | None = None) -> Draft:
    """Return a message with a partition key; the payload defaults to the key."""
    return Draft(key if text is None else text, metadata={"partition_key": key})


def batch(*texts: str) -> Draft:
    return Draft(batch=texts)


def send_frame(draft: Draft, producer: int, sequence: int) -> bytes:
    metadata = api.MessageMetadata(
        producer_name=PRODUCER_NAME, sequence_id=sequence, publish_time=time.time_ns() // 1_000_000
    )
    for name, value in draft.metadata.items():
        setattr(metadata, name, value)
    body = draft.text.encode()
    if draft.batch:
        metadata.num_messages_in_batch = len(draft.batch)
        body = encode_batch((api.SingleMessageMetadata(payload_size=0), each.encode()) for each in draft.batch)
    send = api.CommandSend(producer_id=producer, sequence_id=sequence, num_messages=max(1, len(draft.batch)))
    if "chunk_id" in draft.metadata:
        send.is_chunk = True
    if "txnid_most_bits" in draft.metadata:
        send.txnid_most_bits, send.txnid_least_bits = metadata.txnid_most_bits, metadata.txnid_least_bits
    command = BaseCommand(type=BaseCommand.SEND, send=send)
    return encode_payload_frame(command, encode_payload(metadata.SerializeToString(), body))


def at(message_id: MessageIdData, **fields: Any) -> MessageIdData:
    """Return a copy of a message ID with other fields: ``ack_set``, ``batch_index``, ``entryId`` ..."""
    copy = MessageIdData()
    copy.CopyFrom(message_id)
    for name, value in fields.items():
        if name == "ack_set":
            copy.ack_set.extend(value)
        else:
            setattr(copy, name, value)
    return copy
