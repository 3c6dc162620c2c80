"""Acknowledgements that the broker has not answered yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarbox.client.transaction import Transaction
    from pulsarbox.client.transport.connection import ClientConnection
    from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, MessageIdData


class PendingAck:
    """A pending acknowledgement; resent after the connection is lost, unless it is part of a transaction."""

    __slots__ = ("connection", "generation", "ids", "request_id", "txn", "type")

    def __init__(
        self, ids: list[MessageIdData], ack_type: CommandAck.AckType, txn: Transaction | None, generation: int
    ) -> None:
        self.ids = ids
        self.type = ack_type
        self.txn = txn
        self.generation = generation
        """``TopicConsumer.generation`` of the messages."""
        self.connection: ClientConnection | None = None
        self.request_id = 0

    @property
    def is_in_flight(self) -> bool:
        """Whether the broker may still answer."""
        return self.connection is not None and not self.connection.closed
