"""Benchmark of the protocol room: ns per operation, against plain protobuf.

Run `python -m benchmarks.protocol_codec`. Prints the best of seven rounds, to exclude interference.
"""

from __future__ import annotations

import os
import timeit
from collections.abc import Callable
from functools import partial

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol import replies
from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.checksum import ACCELERATED, crc32c
from pulsarbox.protocol.commands import (
    encode_frame,
    encode_payload_frame,
    parse_command,
)
from pulsarbox.protocol.frames import SMALL_BUFFER, FrameDecoder, max_frame_size
from pulsarbox.protocol.message_frame import DeliveryEncoder
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from pulsarbox.protocol.send_decoder import parse_send
from pulsarbox.protocol.send_receipt import ReceiptEncoder

LIMIT = max_frame_size(5 * 1024 * 1024)
ENTRY_IDS = [base + step for base in (0, 100, 20_000, 49_000) for step in range(256)]


def show(name: str, operation: Callable[[], object], per_call: int = 1, seconds: float = 0.1) -> None:
    """Time ``operation``, which repeats the measured step ``per_call`` times, and print ns per step."""
    timer = timeit.Timer(operation)
    number = max(1, int(seconds / max(timer.timeit(1), 1e-7) / 3))
    best = min(timer.repeat(7, number)) / number / per_call
    print(f"{name:<58} {best * 1e9:>10,.0f} ns")


def receipts() -> None:
    """Measure a SEND_RECEIPT frame, with entry IDs of one to three bytes."""
    encode = ReceiptEncoder(3).encode

    def by_protobuf(sequence_id: int, highest: int, ledger_id: int, entry_id: int) -> bytes:
        command = BaseCommand()
        command.type = BaseCommand.SEND_RECEIPT
        receipt = command.send_receipt
        receipt.producer_id = 3
        receipt.sequence_id = sequence_id
        if highest:
            receipt.highest_sequence_id = highest
        position = receipt.message_id
        position.ledgerId = ledger_id
        position.entryId = entry_id
        return encode_frame(command)

    count = len(ENTRY_IDS)
    show("receipt: ReceiptEncoder", lambda: [encode(e, 0, 17, e) for e in ENTRY_IDS], count)
    show("receipt: ReceiptEncoder, highest sequence id", lambda: [encode(e, e + 9, 17, e) for e in ENTRY_IDS], count)
    show("receipt: protobuf", lambda: [by_protobuf(e, 0, 17, e) for e in ENTRY_IDS], count)


def deliveries() -> None:
    """Measure the header of a MESSAGE frame."""
    header = DeliveryEncoder(2).header

    def by_protobuf(ledger_id: int, entry_id: int, body_length: int) -> bytes:
        command = BaseCommand()
        command.type = BaseCommand.MESSAGE
        command.message.consumer_id = 2
        position = command.message.message_id
        position.ledgerId = ledger_id
        position.entryId = entry_id
        data = command.SerializeToString()
        return (4 + len(data) + body_length).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data

    count = len(ENTRY_IDS)
    show("delivery: DeliveryEncoder", lambda: [header(17, e, 1024) for e in ENTRY_IDS], count)
    show("delivery: DeliveryEncoder, redelivered", lambda: [header(17, e, 1024, 2) for e in ENTRY_IDS], count)
    show("delivery: protobuf", lambda: [by_protobuf(17, e, 1024) for e in ENTRY_IDS], count)


def commands() -> None:
    """Measure parsing of SEND and other commands."""
    send = BaseCommand(type=BaseCommand.SEND, send=api.CommandSend(producer_id=3, sequence_id=90_000, num_messages=10))
    data = send.SerializeToString()

    def read(part: api.CommandSend | None) -> None:
        assert part is not None
        _ = (part.producer_id, part.sequence_id, part.num_messages, part.highest_sequence_id, part.is_chunk)

    show("SEND: parse_send", lambda: parse_send(data))
    show("SEND: parse_send and five reads", lambda: read(parse_send(data)))
    show("SEND: parse_command", lambda: parse_command(data))
    show("SEND: parse_command and five reads", lambda: read(parse_command(data).send))
    show("SEND: protobuf, nothing checked, and five reads", lambda: read(BaseCommand.FromString(data).send))
    ids = [api.MessageIdData(ledgerId=17, entryId=entry) for entry in range(100)]
    ack = BaseCommand(type=BaseCommand.ACK, ack=api.CommandAck(consumer_id=1, ack_type=api.CommandAck.Individual))
    ack.ack.message_id.append(ids[0])
    one = ack.SerializeToString()
    show("ACK of 1: parse_command", lambda: parse_command(one))
    ack.ack.message_id.extend(ids[1:])
    hundred = ack.SerializeToString()
    show("ACK of 100: parse_command", lambda: parse_command(hundred))
    show("SUCCESS: replies.success", lambda: replies.success(7))


def payloads() -> None:
    """Measure parsing of entries and batches."""
    plain = api.MessageMetadata(producer_name="standalone-0-1", sequence_id=9, publish_time=1_700_000_000_000)
    keyed = api.MessageMetadata()
    keyed.CopyFrom(plain)
    keyed.partition_key = "customer-17"
    for index in range(3):
        keyed.properties.add(key=f"name-{index}", value="value")
    for name, metadata, size in (
        ("1 KiB", plain, 1024),
        ("1 KiB, key, 3 properties", keyed, 1024),
        ("128 KiB", plain, 1 << 17),
    ):
        entry = encode_entry(metadata, os.urandom(size))
        show(f"entry of {name}: parse_entry", partial(parse_entry, entry))
        show(f"entry of {name}: parse_entry, verify=False", partial(parse_entry, entry, False))
        show(f"entry of {name}: crc32c alone", partial(crc32c, entry))
    data = plain.SerializeToString()
    show("metadata: protobuf alone", lambda: api.MessageMetadata.FromString(data))
    body = encode_batch([(api.SingleMessageMetadata(), b"x" * 100) for _ in range(100)])
    show("batch of 100: iterate_batch, a message", lambda: list(iterate_batch(body, 100)), 100)


def frames() -> None:
    """Measure splitting a stream of SEND frames, in reads of the sizes that a socket returns."""
    for name, size, read in (
        ("100 B", 100, SMALL_BUFFER),
        ("1 KiB", 1024, SMALL_BUFFER),
        ("1 KiB, one frame a read", 1024, 0),
        ("16 KiB", 16 << 10, SMALL_BUFFER),
        ("128 KiB", 128 << 10, SMALL_BUFFER),
        ("128 KiB, reads as large as offered", 128 << 10, 1 << 30),
        ("4 MiB", 4 << 20, SMALL_BUFFER),
    ):
        frame = encode_payload_frame(usual_send(), os.urandom(size))
        count = max(4, min(2000, (8 << 20) // size))
        stream = frame * count
        show(f"frame of {name}: FrameDecoder", partial(cut, stream, read or len(frame)), count)
        show(f"frame of {name}: copy into the buffer alone", partial(copy, stream, read or len(frame)), count)


def usual_send() -> BaseCommand:
    """Return a SEND command of typical size."""
    return BaseCommand(type=BaseCommand.SEND, send=api.CommandSend(producer_id=3, sequence_id=90_000))


def cut(stream: bytes, read: int) -> None:
    """Feed ``stream`` to a decoder in reads of at most ``read`` bytes."""
    decoder = FrameDecoder(LIMIT)
    view = memoryview(stream)
    at = 0
    while at < len(view):
        free = decoder.get_buffer(-1)
        size = min(len(free), read, len(view) - at)
        free[:size] = view[at : at + size]
        at += size
        decoder.buffer_updated(size)


def copy(stream: bytes, read: int) -> None:
    """Copy as a socket does in any case, for comparison with the decoder."""
    buffer = memoryview(bytearray(SMALL_BUFFER))
    view = memoryview(stream)
    step = min(read, SMALL_BUFFER)
    for at in range(0, len(view), step):
        part = view[at : at + step]
        buffer[: len(part)] = part


if __name__ == "__main__":
    print(f"crc32c in C: {ACCELERATED}")
    for part in (receipts, deliveries, commands, payloads, frames):
        part()
