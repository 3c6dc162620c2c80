"""Attacks on the binary protocol: false sizes, unknown commands, impossible counts, compressed garbage."""

import random
import socket
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

import zstandard

from pulsarbox.protocol.commands import encode_frame, encode_payload_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandConnect,
    CommandFlow,
    CommandGetTopicsOfNamespace,
    CommandProducer,
    CommandSend,
    CommandSubscribe,
    CompressionType,
    MessageIdData,
    MessageMetadata,
)
from tests.attack.victim import Victim, answered, send

U32: Final = 2**32 - 1
U64: Final = 2**64 - 1


def frame(command: bytes, rest: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(command) + len(rest), len(command)) + command + rest


def hello(token: bytes) -> bytes:
    """Return a CONNECT frame with a token."""
    connect = CommandConnect(client_version="x", protocol_version=21, auth_method_name="token", auth_data=token)
    return encode_frame(BaseCommand(type=BaseCommand.CONNECT, connect=connect))


def lengths(victim: Victim) -> None:
    """Frames of impossible sizes, before and after CONNECT, and incomplete frames."""
    sizes = [0, 1, 3, 4, 5, 7, 2**16, 2**20, 5 << 20, 2**24, 2**31 - 1, 2**31, U32]
    bad = [struct.pack(">II", total, size) for total in sizes for size in sizes if total > 2**23 or size > total]
    for head in bad[:: max(1, int(1 / victim.scale) // 4)]:
        for start in (b"", hello(victim.token)):
            with victim.connect(victim.doors[0]) as connection:
                send(connection, start + head + b"x" * 100)
                answered(connection)


def large_frames_before_connect(victim: Victim) -> None:
    """Many unauthenticated connections send the start of a 5 MiB frame: the broker buffers none of them."""
    before, held = victim.memory, []
    head = struct.pack(">II", 5 << 20, 100)
    for _ in range(min(victim.times(150), 150)):
        connection = victim.connect(victim.doors[0])
        send(connection, head + b"x" * (1 << 20))
        held.append(connection)
    assert all(answered(each) == b"" for each in held)
    for each in held:
        each.close()
    assert victim.memory < before + (40 << 20), "frames are kept of who has not said who it is"


def garbage(victim: Victim) -> None:
    """Commands of random bytes, of nested groups, of false lengths; each command without fields."""
    dice = random.Random(7)
    nested = b"\x0b" * 20_000 + b"\x0c" * 20_000  # groups of an unknown field
    told = [
        *(dice.randbytes(dice.randrange(1, 300)) for _ in range(victim.times(300))),
        *(bytes([8, number]) for number in range(100)),
        *(bytes([8, number, dice.randrange(256)]) + dice.randbytes(20) for number in range(100)),
        *(struct.pack("BB", 8, each) + bytes([each << 3 & 0x7F | 2]) + b"\xff\xff\xff\xff\x0f" for each in range(64)),
        *(nested, b"\x08\x02" + nested, b"\x08\x02\x12" + b"\x80" * 50, b"\x08" + b"\xff" * 10),
    ]
    for command in told:
        for start in (b"", hello(victim.token)):
            with victim.connect(victim.doors[0]) as connection:
                connection.settimeout(0.02)  # not disconnected, which is acceptable
                send(connection, start + frame(command) + frame(command, dice.randbytes(50)))
                answered(connection, 2000)


def _commands(victim: Victim) -> Iterator[bytes]:
    """Yield commands with impossible counts or with false lengths."""
    many = [MessageIdData(ledgerId=U64 - n, entryId=n, batch_index=2**31 - 1) for n in range(victim.times(20_000))]
    yield encode_frame(
        BaseCommand(
            type=BaseCommand.ACK, ack=CommandAck(consumer_id=1, ack_type=CommandAck.Individual, message_id=many)
        )
    )
    bits = [2**62] * 50_000
    one = MessageIdData(ledgerId=0, entryId=0, ack_set=bits, batch_size=2**31 - 1)
    yield encode_frame(
        BaseCommand(
            type=BaseCommand.ACK,
            ack=CommandAck(consumer_id=1, ack_type=CommandAck.Individual, message_id=[one], request_id=9),
        )
    )
    for _ in range(100):
        yield encode_frame(BaseCommand(type=BaseCommand.FLOW, flow=CommandFlow(consumer_id=1, messagePermits=U32)))
    redeliver: Any = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    redeliver.redeliverUnacknowledgedMessages.consumer_id = 1
    redeliver.redeliverUnacknowledgedMessages.message_ids.extend(many)
    yield encode_frame(redeliver)
    seek: Any = BaseCommand(type=BaseCommand.SEEK)
    seek.seek.consumer_id, seek.seek.request_id = 1, 10
    seek.seek.message_id.ledgerId = seek.seek.message_id.entryId = U64
    yield encode_frame(seek)
    pattern = CommandGetTopicsOfNamespace(
        request_id=11,
        namespace="public/default",
        mode=CommandGetTopicsOfNamespace.ALL,
        topics_pattern="(a+)+" * 9 + "$",
    )
    yield encode_frame(BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=pattern))
    names = ("x" * 60_000, "../../etc/passwd", "persistent://public/default/" + "%2e%2e%2f" * 20, "\0", "a/b/c/d/e/f")
    for number, name in enumerate(names):
        producer = CommandProducer(topic=name, producer_id=100 + number, request_id=100 + number)
        yield encode_frame(BaseCommand(type=BaseCommand.PRODUCER, producer=producer))
    for number in range(victim.times(3000)):
        producer = CommandProducer(topic="crowd", producer_id=1000 + number, request_id=1000 + number)
        yield encode_frame(BaseCommand(type=BaseCommand.PRODUCER, producer=producer))


def counts(victim: Victim) -> None:
    """Excessive permits, acknowledgements, redeliveries, positions, patterns, names and producers."""
    with victim.connect(victim.doors[0]) as connection:
        subscribe = CommandSubscribe(
            topic="counts", subscription="s", subType=CommandSubscribe.Shared, consumer_id=1, request_id=1
        )
        send(
            connection, hello(victim.token) + encode_frame(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe))
        )
        for number, command in enumerate(_commands(victim)):
            send(connection, command)
            if number % 20 == 0:
                victim.good.gets_on()
        connection.settimeout(1)
        answered(connection)


def _entries(victim: Victim) -> Iterator[bytes]:
    """Yield entries with false metadata: of impossibly many messages, chunks or bytes."""
    zeros = bytes(min(victim.times(200), 200) << 20)
    bomb = zstandard.compress(zeros)
    for size in (len(zeros), 100, U32):
        for count in (1, 1000, 2**31 - 1):
            yield _entry(bomb, compression=CompressionType.ZSTD, uncompressed_size=size, num_messages_in_batch=count)
            packed = zlib.compress(zeros[: 50 << 20], 1)
            yield _entry(packed, compression=CompressionType.ZLIB, uncompressed_size=size, num_messages_in_batch=count)
    yield _entry(b"\0" * 100, num_messages_in_batch=2**31 - 1)
    yield _entry(b"\xff" * 100, num_messages_in_batch=1000)
    for chunk, of, total in ((0, 2**31 - 1, 2**31 - 1), (-1, -5, -1), (2**31 - 1, 1, 0)):
        yield _entry(b"x", uuid="u" * 1000, chunk_id=chunk, num_chunks_from_msg=of, total_chunk_msg_size=total)
    yield _entry(b"x", deliver_at_time=2**63 - 1)
    yield _entry(b"x", partition_key="k" * 1_000_000, highest_sequence_id=U64)
    yield b"\x0e\x01" + b"\0" * 4 + struct.pack(">I", U32) + b"x" * 10
    yield b""


def _entry(body: bytes, **fields: Any) -> bytes:
    return encode_entry(MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **fields), body)


def bombs(victim: Victim) -> None:
    """Publish malformed entries one by one, then read them by everything in the broker that parses messages."""
    for number, entry in enumerate(_entries(victim)):
        with victim.connect(victim.doors[0]) as connection:
            producer = CommandProducer(topic="bombs", producer_id=1, request_id=1)
            sending = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=number))
            send(
                connection,
                hello(victim.token) + encode_frame(BaseCommand(type=BaseCommand.PRODUCER, producer=producer)),
            )
            until(connection, BaseCommand.PRODUCER_SUCCESS)
            send(connection, encode_payload_frame(sending, entry))
            until(connection, BaseCommand.SEND_RECEIPT, BaseCommand.SEND_ERROR)
    base = "/admin/v2/persistent/public/default/bombs"
    peeks = [("GET", f"{base}/examinemessage?initialPosition=earliest&messagePosition={n}") for n in range(1, 30)]
    more = [("GET", f"{base}/subscription/s/position/{n}") for n in range(1, 30)]
    for method, path in [("PUT", f"{base}/subscription/s"), *peeks, *more, ("PUT", f"{base}/compaction")]:
        ask(victim, method, path)
    victim.wait_for(lambda: b"RUNNING" not in ask(victim, "GET", f"{base}/compaction"), "the compaction ends")


def until(connection: socket.socket, *wanted: int) -> None:
    """Read until one of these commands arrives or the connection closes."""
    decoder = FrameDecoder(10 << 20)
    while part := connection.recv(65536):
        if any(parse_command(data).type in wanted for data, _ in decoder.feed(part)):
            return


def ask(victim: Victim, method: str, path: str) -> bytes:
    """Return the answer to a request with a token."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n"
    with victim.connect(victim.doors[2]) as connection:
        connection.settimeout(60)
        send(connection, f"{head}Authorization: Bearer {victim.token.decode()}\r\n\r\n".encode())
        return answered(connection, 64 << 20)
