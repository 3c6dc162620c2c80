"""The producer of one topic or partition: opening, pending messages, receipts, reopening."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.protocol.commands import encode_payload
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandCloseProducer,
    CommandProducer,
    CommandSend,
    MessageIdData,
    MessageMetadata,
)
from pulsarbox.server.tasks import spawn
from pulsarbox.server.websocket.broker_connection import BrokerConnection
from pulsarbox.server.websocket.reattachment import reattach

log = logging.getLogger(__name__)

READY_SECONDS: Final = 60.0
"""Time to wait for a topic without a send timeout."""
NO_MESSAGE: Final = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1, batch_size=0)
"""The message ID of a duplicate."""


class SendOutcome(NamedTuple):
    """Where the outcome of one message goes."""

    stored: Callable[[MessageIdData], None]
    failed: Callable[[str], None]


class _Pending(NamedTuple):
    outcomes: Sequence[SendOutcome]
    batched: bool
    at: float
    """When it was sent, monotonic."""


class SocketProducer:
    """Publishes entries to one topic in order."""

    def __init__(
        self,
        connection: BrokerConnection,
        topic: TopicName,
        *,
        name: str = "",
        initial_sequence_id: int | None = None,
        send_seconds: float = 30.0,
    ) -> None:
        self.name = name
        self._given_name = bool(name)
        self._connection = connection
        self._topic = topic
        self._partition = topic.partition_index
        self._send_seconds = send_seconds
        self._failure: PulsarBoxError | None = None
        """Why the producer cannot be reopened."""
        self._sequence = initial_sequence_id
        self._id = -1
        self._epoch = 0
        self._pending: dict[tuple[int, int], _Pending] = {}
        self._open = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Create the producer at the broker. Raises BrokerRefusal, RequestTimeout."""
        connection, number = self._connection, self._connection.number()
        command = CommandProducer(
            topic=str(self._topic),
            producer_id=number,
            request_id=connection.number(),
            epoch=self._epoch,
            user_provided_producer_name=self._given_name,
        )
        if self.name:
            command.producer_name = self.name
        connection.producers[number] = self
        try:
            answer = await connection.ask(command)
        except BaseException:
            connection.producers.pop(number, None)
            connection.send(CommandCloseProducer(producer_id=number, request_id=connection.number()))
            raise
        self.name = answer.producer_name
        self._id = number
        if self._sequence is None:
            self._sequence = answer.last_sequence_id
        self._open.set()

    @property
    def pending(self) -> int:
        """Number of messages without a receipt."""
        return sum(len(each.outcomes) for each in self._pending.values())

    async def ready(self) -> None:
        """Wait until messages can be sent. Raises TimeoutError after the send timeout, or why they cannot."""
        if self._failure is not None:
            raise self._failure
        if not self._open.is_set():
            async with asyncio.timeout(self._send_seconds or READY_SECONDS):
                await self._open.wait()
            await self.ready()

    def next_sequence_id(self) -> int:
        """Return the sequence ID of the next message."""
        assert self._sequence is not None
        self._sequence += 1
        return self._sequence & (2**64 - 1)

    def send(self, metadata: MessageMetadata, body: bytes, outcomes: Sequence[SendOutcome], *, batched: bool) -> None:
        """Publish an entry whose messages have these outcomes; with ``batched`` they are a batch."""
        metadata.producer_name = self.name
        command = CommandSend(producer_id=self._id, sequence_id=metadata.sequence_id)
        if batched:
            command.num_messages = len(outcomes)
            command.highest_sequence_id = metadata.highest_sequence_id
        loop = asyncio.get_running_loop()
        self._pending[self._id, metadata.sequence_id] = _Pending(outcomes, batched, loop.time())
        if self._send_seconds and self._timer is None:
            self._timer = loop.call_later(self._send_seconds, self._expire)
        self._connection.send(command, encode_payload(metadata.SerializeToString(), body))

    def close(self) -> None:
        """Close the producer at the broker."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._open.is_set():
            self._connection.producers.pop(self._id, None)
            self._connection.send(CommandCloseProducer(producer_id=self._id, request_id=self._connection.number()))

    # From the broker

    def receive(self, command: BaseCommand, payload: bytes) -> None:
        """See CommandTarget."""
        if command.type == BaseCommand.SEND_RECEIPT:
            self._stored(command.send_receipt)
        elif command.type == BaseCommand.SEND_ERROR:
            error = command.send_error
            self._failed(error.producer_id, error.sequence_id, error.message)
        elif command.close_producer.producer_id == self._id:
            self._reopen()

    def _stored(self, receipt: Any) -> None:
        found = self._take(receipt.producer_id, receipt.sequence_id)
        if found is None:
            return
        where = receipt.message_id
        for index, outcome in enumerate(found.outcomes):
            stored = MessageIdData(ledgerId=where.ledgerId, entryId=where.entryId, batch_size=0)
            if self._partition >= 0:
                stored.partition = self._partition
            if found.batched:
                stored.batch_index = index
            outcome.stored(stored if receipt.HasField("message_id") else NO_MESSAGE)

    def _failed(self, producer_id: int, sequence_id: int, reason: str) -> None:
        found = self._take(producer_id, sequence_id)
        for outcome in found.outcomes if found is not None else ():
            outcome.failed(reason)

    def _take(self, producer_id: int, sequence_id: int) -> _Pending | None:
        found = self._pending.pop((producer_id, sequence_id), None)
        if producer_id != self._id and not any(each == producer_id for each, _ in self._pending):
            self._connection.producers.pop(producer_id, None)
        return found

    def _expire(self) -> None:
        """Fail the messages without a receipt after the send timeout."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for key, each in list(self._pending.items()):
            left = each.at + self._send_seconds - loop.time()
            if left > 0:
                self._timer = loop.call_later(left, self._expire)
                return
            self._failed(*key, f"The message was not stored within {self._send_seconds:g} s; it may still be")

    def _reopen(self) -> None:
        """Open the producer again, after the broker has closed it: its topic was unloaded or deleted.

        The broker still answers the pending messages of the closed one.
        """
        closed = self._id
        self._open.clear()
        self._epoch += 1
        if not any(each == closed for each, _ in self._pending):
            self._connection.producers.pop(closed, None)
        spawn("WebSocket producer", reattach(self._connection, self.open, self._gone))

    def _gone(self, error: PulsarBoxError) -> None:
        self._failure = error
        self._open.set()
        for key in list(self._pending):
            self._failed(*key, str(error))
