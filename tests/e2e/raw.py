"""Connections for frames that no client would send, such as chunks in a given order, with unprocessed responses."""

import socket
import time
from types import TracebackType
from typing import Any, Self

from pulsarbox.protocol.commands import COMMANDS, encode_frame, encode_payload_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandFlow,
    CommandPong,
    CommandProducer,
    CommandSend,
    CommandSubscribe,
    MessageMetadata,
)

SECONDS = 20.0


class Refused(Exception):
    """The box answers with an error: its code and its text."""


class Raw:
    """Connection whose requests wait for their response."""

    def __init__(self, service_url: str) -> None:
        host, _, port = service_url.removeprefix("pulsar://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=SECONDS)
        self._decoder = FrameDecoder(10 << 20)
        self._frames: list[tuple[bytes, bytes]] = []
        connect = CommandConnect(client_version="raw", protocol_version=21)
        self.tell(encode_frame(BaseCommand(type=BaseCommand.CONNECT, connect=connect)))
        self.take("connected")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def until_closed(self) -> None:
        """Wait until the box has closed the connection."""
        with self._socket:
            while self._socket.recv(65536):
                pass

    def tell(self, frame: bytes) -> None:
        """Send a frame."""
        self._socket.sendall(frame)

    def answer(self) -> tuple[int, int | None]:
        """Return the next response: the request ID and the error code; other frames are dropped."""
        while True:
            command = parse_command(self._frame()[0])
            body = getattr(command, COMMANDS[command.type].field)
            if hasattr(body, "request_id"):
                return body.request_id, body.error if command.HasField("error") else None

    def take(self, field: str) -> tuple[Any, bytes]:
        """Return the next command, which must be of this type, and the data after it. Raises Refused."""
        head, payload = self._frame()
        command = parse_command(head)
        if command.type == BaseCommand.PING and field != "ping":  # after a quiet half minute of a busy machine
            self.tell(encode_frame(BaseCommand(type=BaseCommand.PONG, pong=CommandPong())))
            return self.take(field)
        if command.HasField("error"):
            self._socket.close()
            raise Refused(command.error.error, command.error.message)
        assert COMMANDS[command.type].field == field, str(command)
        return getattr(command, field), payload

    def _frame(self) -> tuple[bytes, bytes]:
        while not self._frames:
            data = self._socket.recv(65536)
            assert data, "the box closed the connection"
            self._frames += self._decoder.feed(data)
        return self._frames.pop(0)


class RawProducer(Raw):
    """Connection with one producer."""

    def __init__(self, service_url: str, topic: str, name: str, *, encrypted: bool = False) -> None:
        super().__init__(service_url)
        self._name = name
        producer = CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name=name, encrypted=encrypted)
        self.tell(encode_frame(BaseCommand(type=BaseCommand.PRODUCER, producer=producer)))
        self.last_sequence_id: int = self.take("producer_success")[0].last_sequence_id

    def chunk(self, sequence_id: int, index: int, count: int, body: bytes) -> Any:
        """Send one chunk; return the message ID of its receipt."""
        return self.send(
            sequence_id,
            body,
            uuid=f"{self._name}-{sequence_id}",
            chunk_id=index,
            num_chunks_from_msg=count,
            total_chunk_msg_size=len(body) * count,
        )

    def send(self, sequence_id: int, body: bytes, **fields: Any) -> Any:
        """Send one entry with these metadata fields; return the message ID of its receipt."""
        self.post(sequence_id, body, **fields)
        return self.take("send_receipt")[0].message_id

    def post(self, sequence_id: int, body: bytes, **fields: Any) -> None:
        """Send one entry with these metadata fields, without waiting."""
        now = time.time_ns() // 1_000_000
        metadata = MessageMetadata(producer_name=self._name, sequence_id=sequence_id, publish_time=now, **fields)
        self.send_entry(sequence_id, encode_entry(metadata, body))

    def send_entry(self, sequence_id: int, entry: bytes) -> None:
        """Send an unmodified entry, without waiting."""
        send = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=sequence_id))
        self.tell(encode_payload_frame(send, entry))


class RawConsumer(Raw):
    """Connection with one consumer, which starts at the earliest message."""

    def __init__(self, service_url: str, topic: str) -> None:
        super().__init__(service_url)
        subscribe = CommandSubscribe(
            topic=topic,
            subscription="raw",
            subType=CommandSubscribe.Exclusive,
            consumer_id=1,
            request_id=1,
            initialPosition=CommandSubscribe.Earliest,
        )
        self.tell(encode_frame(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe)))
        self.take("success")
        flow = CommandFlow(consumer_id=1, messagePermits=1000)
        self.tell(encode_frame(BaseCommand(type=BaseCommand.FLOW, flow=flow)))

    def entry(self) -> bytes:
        """Return the next entry unmodified."""
        return self.take("message")[1]
