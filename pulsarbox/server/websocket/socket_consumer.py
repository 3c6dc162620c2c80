"""The consumer of one topic or partition: permits, acknowledgements, redelivery, reopening."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.protocol.ack_sets import bits_of, words_of
from pulsarbox.protocol.chunks import Chunking, Chunks, Place
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandCloseConsumer,
    CommandFlow,
    CommandMessage,
    CommandRedeliverUnacknowledgedMessages,
    CommandSubscribe,
    CommandUnsubscribe,
    KeySharedMeta,
    KeySharedMode,
    MessageIdData,
    MessageMetadata,
)
from pulsarbox.server.tasks import spawn
from pulsarbox.server.websocket.broker_connection import BrokerConnection
from pulsarbox.server.websocket.parameters import EARLIEST, LATEST, ConsumerParameters
from pulsarbox.server.websocket.partial_batches import PartialBatches
from pulsarbox.server.websocket.reattachment import reattach

ONE_ACTIVE: Final = (CommandSubscribe.Exclusive, CommandSubscribe.Failover)
INCOMPLETE_MAX: Final = 10
CHUNKED_MAX: Final = 64 << 20
"""Maximum number of incomplete chunked messages, and bytes of one."""
_CHUNKED_MESSAGES_MAX: Final = 1000
"""Maximum number of remembered chunked messages; of earlier ones, only the last chunk is acknowledged."""


class Arrival(NamedTuple):
    """A received entry. It is outdated once ``generation`` is not that of its consumer."""

    consumer: "SocketConsumer"
    generation: int
    command: CommandMessage
    payload: bytes


class SocketConsumer:
    """Receives the entries of one topic. ``arrived`` is called with each, ``ended`` if it cannot be reopened."""

    def __init__(
        self,
        connection: BrokerConnection,
        topic: TopicName,
        subscription: str,
        parameters: ConsumerParameters,
        arrived: Callable[[Arrival], None],
        ended: Callable[[str], None],
    ) -> None:
        self.topic = topic
        self.partition = topic.partition_index
        self.reached_end = False
        """Whether the topic is terminated and read to its end."""
        self.generation = 0
        self._connection = connection
        self._subscription = subscription
        self._parameters = parameters
        self._arrived = arrived
        self._ended = ended
        self._queue = max(1, parameters.queue)
        self._id = -1
        self._owed = 0
        self._epoch = 0
        self._start = parameters.start
        self._partial = PartialBatches()
        self._chunks = Chunks(Chunking(most=INCOMPLETE_MAX, size=CHUNKED_MAX))
        self._chunked: dict[Place, Sequence[Place]] = {}
        """The entries of chunked messages by their last one, until they are acknowledged."""

    async def open(self) -> None:
        """Subscribe. Raises BrokerRefusal, RequestTimeout."""
        connection, number = self._connection, self._connection.number()
        connection.consumers[number] = self
        self._id, self._owed = number, 0
        try:
            await connection.ask(self._subscribe(number))
        except BaseException:
            connection.consumers.pop(number, None)
            connection.send(CommandCloseConsumer(consumer_id=number, request_id=connection.number()))
            raise
        connection.send(CommandFlow(consumer_id=number, messagePermits=self._queue))

    def _subscribe(self, number: int) -> CommandSubscribe:
        parameters = self._parameters
        command = CommandSubscribe(
            topic=str(self.topic),
            subscription=self._subscription,
            subType=CommandSubscribe.SubType.Name(parameters.type),
            consumer_id=number,
            request_id=self._connection.number(),
            durable=parameters.durable,
            priority_level=parameters.priority,
            initialPosition=CommandSubscribe.Earliest if parameters.start == EARLIEST else CommandSubscribe.Latest,
        )
        if parameters.name:
            command.consumer_name = parameters.name
        if self._epoch:
            command.consumer_epoch = self._epoch
        if parameters.type == CommandSubscribe.Key_Shared:
            command.keySharedMeta.CopyFrom(KeySharedMeta(keySharedMode=KeySharedMode.AUTO_SPLIT))
        if not parameters.durable:
            command.start_message_id.CopyFrom(self._start)
        return command

    def close(self) -> None:
        """Close the consumer at the broker."""
        self.generation += 1
        if self._connection.consumers.pop(self._id, None) is not None:
            self._connection.send(CommandCloseConsumer(consumer_id=self._id, request_id=self._connection.number()))

    async def unsubscribe(self) -> None:
        """Delete the subscription. Raises BrokerRefusal, RequestTimeout."""
        connection = self._connection
        await connection.ask(CommandUnsubscribe(consumer_id=self._id, request_id=connection.number()))
        connection.consumers.pop(self._id, None)
        self.generation += 1

    # From the broker

    def receive(self, command: BaseCommand, payload: bytes) -> None:
        """See CommandTarget."""
        if command.type == BaseCommand.MESSAGE:
            message = CommandMessage()
            message.CopyFrom(command.message)
            if message.consumer_epoch < self._epoch:
                self.used(permits_of(message, payload))  # it is redelivered
                return
            self._connection.took(len(payload))
            self._arrived(Arrival(self, self.generation, message, payload))
        elif command.type == BaseCommand.REACHED_END_OF_TOPIC:
            self.reached_end = True
        else:
            self._reopen()

    def _reopen(self) -> None:
        """Subscribe again, after the broker has closed the consumer: its topic was unloaded or deleted."""
        self._connection.consumers.pop(self._id, None)
        self._discard()
        spawn("WebSocket consumer", reattach(self._connection, self.open, self._gone))

    def _discard(self) -> None:
        """Discard the state of entries, because all unacknowledged ones are redelivered."""
        self.generation += 1
        self._partial.clear()
        self._chunks.clear()
        self._chunked.clear()

    def _gone(self, error: PulsarBoxError) -> None:
        self._ended(f"The consumer cannot be reopened: {error}")

    # Delivered messages

    def is_outdated(self, arrival: Arrival) -> bool:
        """Return whether an entry is redelivered, and must be dropped; its permits are granted again."""
        if arrival.generation == self.generation:
            return False
        if arrival.command.consumer_id == self._id:
            self.used(permits_of(arrival.command, arrival.payload))
        return True

    def used(self, permits: int) -> None:
        """Count delivered messages, and grant as many permits again."""
        self._owed += permits
        if self._owed >= max(1, self._queue // 2) and self._id in self._connection.consumers:
            self._connection.send(CommandFlow(consumer_id=self._id, messagePermits=self._owed))
            self._owed = 0

    def join(self, place: Place, metadata: MessageMetadata, body: bytes) -> bytes | None:
        """Add a chunk; for the last one, return the body of the message."""
        now = time.monotonic()
        self._chunks.expire(now)
        whole = self._chunks.add(*place, metadata, body, now, time.time())
        useless = self._chunks.take_useless()
        if self._parameters.durable:
            self.acknowledge_entries(useless)
        if whole is None:
            return None
        self._chunked[place] = whole[1]
        if len(self._chunked) > _CHUNKED_MESSAGES_MAX:
            del self._chunked[next(iter(self._chunked))]
        return whole[0]

    def read_up_to(self, where: MessageIdData) -> None:
        """For a reader: continue behind this message after the consumer is reopened."""
        self._start = where

    def is_before_start(self, where: MessageIdData) -> bool:
        """For a reader: return whether a message is not behind the start, which may be within a batch."""
        start = self._start
        if start in (EARLIEST, LATEST) or (where.ledgerId, where.entryId) != (start.ledgerId, start.entryId):
            return False
        return where.batch_index <= start.batch_index

    # Acknowledgements

    def acknowledge(self, where: MessageIdData) -> bool:
        """Acknowledge a message; return whether that was the last one of its entry. Raises ValueError."""
        place = (where.ledgerId, where.entryId)
        ack = MessageIdData(ledgerId=where.ledgerId, entryId=where.entryId)
        if where.HasField("batch_index") and 0 <= where.batch_index < where.batch_size:
            left = self._partial.acknowledge(place, where.batch_index, where.batch_size)
            if left:
                ack.ack_set.extend(words_of(left))
                ack.batch_size = where.batch_size
        if ack.ack_set:
            self._acknowledge([ack], CommandAck.Individual)
            return False
        self._partial.discard(place)
        self.acknowledge_entries(self._chunked.pop(place, (place,)))
        return True

    def acknowledge_entries(self, places: Iterable[Place]) -> None:
        """Acknowledge whole entries."""
        ids = [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in places]
        if ids:
            self._acknowledge(ids, CommandAck.Individual)

    def acknowledge_up_to(self, place: Place) -> None:
        """Acknowledge all entries up to this one."""
        self._acknowledge([MessageIdData(ledgerId=place[0], entryId=place[1])], CommandAck.Cumulative)

    def _acknowledge(self, ids: list[MessageIdData], kind: CommandAck.AckType) -> None:
        if self._id in self._connection.consumers:
            name = CommandAck.AckType.Name(kind)
            self._connection.send(CommandAck(consumer_id=self._id, ack_type=name, message_id=ids))

    def redeliver(self, places: Iterable[Place]) -> None:
        """Request redelivery of these entries; on Exclusive and Failover, of all unacknowledged ones."""
        if self._id not in self._connection.consumers:
            return  # everything is redelivered once it is reopened
        again = CommandRedeliverUnacknowledgedMessages(consumer_id=self._id)
        if self._parameters.type in ONE_ACTIVE:
            self._epoch += 1
            self._discard()
            again.consumer_epoch = self._epoch
        else:
            every = (part for place in places for part in self._chunked.pop(place, (place,)))
            again.message_ids.extend(MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in every)
        self._connection.send(again)


def permits_of(command: CommandMessage, payload: bytes) -> int:
    """Return the number of messages that an entry counts for."""
    if command.ack_set:
        return bits_of(command.ack_set).bit_count()
    return parse_entry(payload, verify=False).metadata.num_messages_in_batch
