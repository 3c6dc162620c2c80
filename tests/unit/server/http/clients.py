"""Clients of the binary protocol for a test box, with effects visible in the Admin API."""

from typing import Any

from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandAck, MessageIdData
from tests.unit.broker.core_driver import Connection
from tests.unit.server.http.harness import HttpBox


class Client(Connection):
    """One connection to the core of a box."""

    def __init__(self, box: HttpBox) -> None:
        self._shell = box.shell
        super().__init__(box.shell.core, "127.0.0.1:4711")
        self._requests = 0
        self.ask("connect", client_version="test-client", protocol_version=21)

    def settle(self) -> None:
        """Run the pending work of the box and receive its frames."""
        self._shell.kick()

    def producer(self, topic: str, **fields: Any) -> int:
        """Open a producer and return its ID."""
        self._requests += 1
        self.ask("producer", topic=topic, producer_id=self._requests, request_id=self._requests, **fields)
        return self._requests

    def send(self, producer_id: int, sequence_id: int, body: bytes = b"x", batch: int = 0, **metadata: Any) -> None:
        """Publish one entry."""
        metadata = {"publish_time": self._shell.now().wall} | metadata
        self.send_entry(producer_id, sequence_id, body, batch, **metadata)

    def publish(self, topic: str, count: int, **metadata: Any) -> list[tuple[int, int]]:
        """Publish ``count`` entries and return their positions."""
        producer_id = self.producer(topic)
        self.inbox.clear()
        for i in range(count):
            self.send(producer_id, i, b"m%d" % i, **metadata)
        ids = [each.send_receipt.message_id for each in self.commands() if each.type == BaseCommand.SEND_RECEIPT]
        self.ask("close_producer", producer_id=producer_id, request_id=1000 + producer_id)
        return [(each.ledgerId, each.entryId) for each in ids]

    def subscribe(self, topic: str, name: str = "s", permits: int = 0, **fields: Any) -> int:
        """Open a consumer from the earliest message and return its ID."""
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

    def redeliver(self, consumer_id: int, *positions: tuple[int, int]) -> None:
        """Request the redelivery of entries."""
        ids = [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in positions]
        self.ask("redeliverUnacknowledgedMessages", consumer_id=consumer_id, message_ids=ids)

    def ack_in_batch(self, consumer_id: int, position: tuple[int, int], left: int, messages: int = 4) -> None:
        """Acknowledge the messages of a batch except those whose bits are set in ``left``."""
        some = MessageIdData(ledgerId=position[0], entryId=position[1], ack_set=[left], batch_size=messages)
        self.ask("ack", consumer_id=consumer_id, ack_type=CommandAck.Individual, message_id=[some])
