"""Client with transactions on one connection; the official Python client lacks transactions."""

import itertools
from typing import Any

from pulsarbox.protocol.commands import COMMANDS, encode_frame, encode_payload_frame, parse_command
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend, MessageMetadata, TxnAction
from tests.e2e.raw import Raw

TYPE_OF = {spec.field: number for number, spec in COMMANDS.items()}
Bits = dict[str, Any]


class Transacting(Raw):
    """Begins, fills and ends transactions, with a producer per topic. Raises OSError or AssertionError if the box is
    killed.
    """

    def __init__(self, service_url: str, topics: list[str]) -> None:
        super().__init__(service_url)
        self._ids = itertools.count(1)
        self._producers = {topic: number for number, topic in enumerate(topics, 1)}
        self._sequence_ids = itertools.count()
        for topic, number in self._producers.items():
            self.request("producer", "producer_success", topic=topic, producer_id=number)

    def request(self, field: str, answer: str, **fields: Any) -> Any:
        """Send a command and return its response."""
        command = BaseCommand(type=TYPE_OF[field])  # type: ignore[arg-type]
        part = getattr(command, field)
        part.MergeFrom(type(part)(request_id=next(self._ids), **fields))
        self.tell(encode_frame(command))
        while True:
            found = self._next()
            if COMMANDS[found.type].field == answer:
                reply = getattr(found, answer)
                if hasattr(reply, "error"):
                    assert not reply.HasField("error"), reply
                return reply

    def _next(self) -> BaseCommand:
        while not self._frames:
            data = self._socket.recv(65536)
            assert data, "the box closed the connection"
            self._frames += self._decoder.feed(data)
        return parse_command(self._frames.pop(0)[0])

    def begin(self, timeout_ms: int = 600_000) -> Bits:
        """Begin a transaction and return its ID."""
        begun = self.request("newTxn", "newTxnResponse", txn_ttl_seconds=timeout_ms, tc_id=0)
        return {"txnid_most_bits": begun.txnid_most_bits, "txnid_least_bits": begun.txnid_least_bits}

    def send(self, bits: Bits, topic: str, body: bytes) -> None:
        """Publish in a transaction, and wait for the receipt."""
        number, sequence_id = self._producers[topic], next(self._sequence_ids)
        fields: dict[str, Any] = {"producer_name": "p", "sequence_id": sequence_id, "publish_time": 1}
        payload = encode_entry(MessageMetadata(**fields, **bits), body)
        send = CommandSend(producer_id=number, sequence_id=sequence_id, num_messages=1, **bits)
        self.tell(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))
        while self._next().type != BaseCommand.SEND_RECEIPT:
            pass

    def end(self, bits: Bits, *, commit: bool) -> None:
        """Commit or abort a transaction."""
        action = TxnAction.COMMIT if commit else TxnAction.ABORT
        self.request("endTxn", "endTxnResponse", txn_action=action, **bits)
