"""A producer that sends what no client would send, such as the chunks of two messages in an order that a test wants."""

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
    CommandProducer,
    CommandSend,
    MessageMetadata,
)

SECONDS = 20.0


class RawProducer:
    """A connection with one producer; it waits for the answer of whatever it sends."""

    def __init__(self, service_url: str, topic: str, name: str) -> None:
        host, _, port = service_url.removeprefix("pulsar://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=SECONDS)
        self._decoder = FrameDecoder(10 << 20)
        self._frames: list[tuple[bytes, bytes]] = []
        self._name = name
        connect = CommandConnect(client_version="raw", protocol_version=21)
        self._ask(encode_frame(BaseCommand(type=BaseCommand.CONNECT, connect=connect)), "connected")
        producer = CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name=name)
        opened = self._ask(encode_frame(BaseCommand(type=BaseCommand.PRODUCER, producer=producer)), "producer_success")
        self.last_sequence_id: int = opened.last_sequence_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def chunk(self, sequence_id: int, index: int, count: int, body: bytes) -> Any:
        """Send one chunk; the message id of its receipt."""
        return self.send(
            sequence_id,
            body,
            uuid=f"{self._name}-{sequence_id}",
            chunk_id=index,
            num_chunks_from_msg=count,
            total_chunk_msg_size=len(body) * count,
        )

    def send(self, sequence_id: int, body: bytes, **fields: Any) -> Any:
        """Send one entry whose metadata has these fields; the message id of its receipt."""
        metadata = MessageMetadata(
            producer_name=self._name, sequence_id=sequence_id, publish_time=time.time_ns() // 1_000_000, **fields
        )
        send = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=sequence_id))
        return self._ask(encode_payload_frame(send, encode_entry(metadata, body)), "send_receipt").message_id

    def _ask(self, frame: bytes, answer: str) -> Any:
        self._socket.sendall(frame)
        while not self._frames:
            data = self._socket.recv(65536)
            assert data, "the box closed the connection"
            self._frames += self._decoder.feed(data)
        command = parse_command(self._frames.pop(0)[0])
        field = COMMANDS[command.type].field
        assert field == answer, str(command)
        return getattr(command, field)
