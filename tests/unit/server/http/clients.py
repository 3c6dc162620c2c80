"""Clients of the binary protocol beside a harness box: what the Admin API shows and changes, they did."""

from typing import Any

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.clock import Now
from pulsarbox.protocol.commands import COMMANDS, encode_frame, encode_payload_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandAck, CommandSend, MessageIdData, MessageMetadata
from tests.unit.server.http.harness import Box

TYPE_OF = {spec.field: number for number, spec in COMMANDS.items()}


class Client:
    """One connection to the core of a box."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._shell = box.shell
        self._requests = 0
        self.outbox = box.broker.new_outbox()
        self.cnx: ServerCnx = box.broker.connected(self.outbox, "127.0.0.1:4711", self._now)
        self._decoder, self._to_box = FrameDecoder(10 << 20), FrameDecoder(10 << 20)
        self.inbox: list[tuple[bytes, bytes]] = []
        self.ask("connect", client_version="test-client", protocol_version=21)

    @property
    def _now(self) -> Now:
        return self._shell.now()

    def _raw(self, data: bytes) -> None:
        for frame in self._to_box.feed(data):
            self.cnx.receive(frame, self._now)
        self.settle()

    def settle(self) -> None:
        """Let the box do what is to be done, and take what it sends."""
        self._shell.kick()
        self.inbox += self._decoder.feed(self.outbox.take())

    def ask(self, field: str, **fields: Any) -> None:
        """Send a command by the name of its field in BaseCommand."""
        command = BaseCommand(type=TYPE_OF[field])  # type: ignore[arg-type]
        part = getattr(command, field)
        part.SetInParent()
        part.MergeFrom(type(part)(**fields))
        self._raw(encode_frame(command))

    def producer(self, topic: str, **fields: Any) -> int:
        """Open a producer; its id."""
        self._requests += 1
        self.ask("producer", topic=topic, producer_id=self._requests, request_id=self._requests, **fields)
        return self._requests

    def send(self, producer_id: int, sequence_id: int, body: bytes = b"x", batch: int = 0, **metadata: Any) -> None:
        """Publish one entry."""
        if batch:
            metadata["num_messages_in_batch"] = batch
        fields: dict[str, Any] = {
            "producer_name": "p",
            "sequence_id": sequence_id,
            "publish_time": self._now.wall,
        } | metadata
        send = CommandSend(producer_id=producer_id, sequence_id=sequence_id, num_messages=batch or 1)
        payload = encode_entry(MessageMetadata(**fields), body)
        self._raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))

    def publish(self, topic: str, count: int, **metadata: Any) -> list[tuple[int, int]]:
        """Publish so many entries; their positions."""
        producer_id = self.producer(topic)
        self.inbox.clear()
        for i in range(count):
            self.send(producer_id, i, b"m%d" % i, **metadata)
        ids = [each.send_receipt.message_id for each in self._commands() if each.type == BaseCommand.SEND_RECEIPT]
        self.ask("close_producer", producer_id=producer_id, request_id=1000 + producer_id)
        return [(each.ledgerId, each.entryId) for each in ids]

    def subscribe(self, topic: str, name: str = "s", permits: int = 0, **fields: Any) -> int:
        """Open a consumer from the earliest message; its id."""
        self._requests += 1
        consumer_id = self._requests
        fields = {"initialPosition": 1, "subType": 1} | fields
        self.ask(
            "subscribe",
            topic=topic,
            subscription=name,
            consumer_id=consumer_id,
            request_id=consumer_id,
            **fields,
        )
        if permits:
            self.ask("flow", consumer_id=consumer_id, messagePermits=permits)
        return consumer_id

    def ack(self, consumer_id: int, *positions: tuple[int, int]) -> None:
        """Acknowledge entries one by one."""
        ids = [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in positions]
        self.ask("ack", consumer_id=consumer_id, ack_type=CommandAck.Individual, message_id=ids)

    def ack_in_batch(self, consumer_id: int, position: tuple[int, int], left: int, messages: int = 4) -> None:
        """Acknowledge the messages of a batch but those whose bits are in ``left``."""
        some = MessageIdData(ledgerId=position[0], entryId=position[1], ack_set=[left], batch_size=messages)
        self.ask("ack", consumer_id=consumer_id, ack_type=CommandAck.Individual, message_id=[some])

    def _commands(self) -> list[BaseCommand]:
        taken, self.inbox = self.inbox, []
        return [parse_command(data) for data, _ in taken]

    def names(self) -> list[str]:
        """Take all frames; the names of their commands."""
        return [COMMANDS[each.type].field for each in self._commands()]
