"""A consumer of one topic or partition: permits, receive queue, acknowledgements, reconnection."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError

from pulsarbox.client.errors import NotConnected, error_for, passes
from pulsarbox.client.message_decoder import ReceivedEntry, ReceivedMessage, unpack
from pulsarbox.client.pending_ack import PendingAck
from pulsarbox.client.places import EARLIEST, FROM_THE_START, LATEST, QUEUE, MessageId, Start
from pulsarbox.client.transport.reconnect import Reconnect
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.ack_sets import words_of
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.protocol.chunks import USUAL, Chunking, Chunks, Place
from pulsarbox.protocol.commands import MAGIC, encode_command, encode_frame
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandCloseConsumer,
    CommandFlow,
    CommandGetLastMessageId,
    CommandMessage,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSendReceipt,
    CommandSubscribe,
    KeySharedMeta,
    KeySharedMode,
    MessageIdData,
    MessageMetadata,
)

if TYPE_CHECKING:
    from pulsarbox.client.client import Client
    from pulsarbox.client.transaction import Transaction
    from pulsarbox.client.transport.connection import ClientConnection

TYPES: Final = {
    "exclusive": CommandSubscribe.Exclusive,
    "shared": CommandSubscribe.Shared,
    "failover": CommandSubscribe.Failover,
    "key_shared": CommandSubscribe.Key_Shared,
}
_ONE_ACTIVE: Final = (CommandSubscribe.Exclusive, CommandSubscribe.Failover)
_head: Final = Struct(">HII").unpack_from
_metadata: Final = MessageMetadata.FromString
_MAGIC: Final = int.from_bytes(MAGIC, "big")
_ACK_IDS_MAX: Final = 1000
_WORD: Final = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class Subscribing:
    """Subscription options of a consumer."""

    subscription: str
    type: int = CommandSubscribe.Exclusive
    """SubType; see ``TYPES``."""
    durable: bool = True
    start: Start = FROM_THE_START
    """Initial position of a non-durable or new subscription."""
    create: bool = True
    """Whether a missing topic is created."""
    name: str = ""
    queue: int = QUEUE
    chunking: Chunking = USUAL
    compacted: bool = False
    """Whether to read only the latest message of each key, as far as the topic is compacted."""
    acknowledges: bool = True
    """Whether chunks that cannot complete a message are acknowledged automatically."""


class TopicConsumer:
    """Consumer of one topic. ``waiting`` is called when messages arrive, which ``take`` returns."""

    def __init__(
        self, client: Client, topic: str, partition: int, options: Subscribing, waiting: Callable[[TopicConsumer], None]
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.seen: tuple[int, int] | None = None
        """Position (ledger, entry) of the last entry that was decoded, including one skipped before the start."""
        self.ended = False
        """Whether the topic is terminated and read to its end."""
        self.is_waiting = False
        """Whether ``waiting`` was called since messages were last taken."""
        self.generation = 0
        """How often the broker has closed this consumer. Messages of earlier generations are not acknowledged: after a
        seek this would undo the seek. If the cause was another, the broker delivers them again."""
        self._client = client
        self._options = options
        self._waiting = waiting
        self._id = next(client.numbers)
        self._connection: ClientConnection | None = None
        self._closed = False
        self._queue: deque[tuple[CommandMessage, bytes]] = deque()
        self._ready: deque[ReceivedMessage] = deque()
        self._owed = 0
        self._start = options.start
        self._sought: MessageId | None = None
        self._epoch = 0
        self._chunks = Chunks(options.chunking)
        self._resume: Place | None = None
        """For a reconnecting reader: first chunk of the incomplete messages; messages already read are skipped."""
        self._partial: dict[ReceivedEntry, None] = {}
        self._acks: deque[PendingAck] = deque()
        """Unconfirmed acknowledgements in order."""

    # Opening ---------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Look up the broker and subscribe. Raises the broker's error."""
        if self._closed:
            return
        connection = self._client.broker_of(self.topic)
        request_id = next(self._client.numbers)
        connection.consumers[self._id] = self
        try:
            command = BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=self._subscribe(request_id))
            self._client.ask(connection, command, request_id)
        except BaseException:
            connection.consumers.pop(self._id, None)
            raise
        if connection.closed:
            raise NotConnected(connection.closed)
        self._connection = connection
        self._owed = 0
        if not self._options.durable and self._start.id == LATEST and not self._start.time:
            self._remember_start()
        for ack in self._acks:
            if not ack.is_in_flight:
                self._send_ack(ack)
        self._flow(self._options.queue)

    def _remember_start(self) -> None:
        """Pin the start of a reader at LATEST, so that a reconnection resumes here."""
        try:
            _, mark = self.last_id()
        except PulsarBoxError as error:
            if passes(error):
                raise
            return  # a non-persistent topic
        if mark is not None:
            self._start = Start(mark, inclusive=False)

    def _subscribe(self, request_id: int) -> CommandSubscribe:
        options, start = self._options, self._start
        latest = start.id.ledger == LATEST.ledger and not start.time
        subscribe = CommandSubscribe(
            topic=self.topic,
            subscription=options.subscription,
            subType=CommandSubscribe.SubType.Name(options.type),
            consumer_id=self._id,
            request_id=request_id,
            durable=options.durable,
            initialPosition=CommandSubscribe.Latest if latest else CommandSubscribe.Earliest,
            force_topic_creation=options.create,
        )
        if options.name:
            subscribe.consumer_name = options.name
        if options.compacted:
            subscribe.read_compacted = True
        if self._epoch:  # only once needed: the broker would add it to every message
            subscribe.consumer_epoch = self._epoch
        if options.type == CommandSubscribe.Key_Shared:
            subscribe.keySharedMeta.CopyFrom(KeySharedMeta(keySharedMode=KeySharedMode.AUTO_SPLIT))
        if not options.durable:
            # With a batch index, a reader starts at the named entry instead of after it.
            resume = None if self._resume is None else MessageId(*self._resume, 0)
            subscribe.start_message_id.CopyFrom(_data(resume or start.id))
            if start.time:
                # Relative to the broker's clock, in seconds; earlier messages are filtered out on arrival.
                subscribe.start_message_rollback_duration_sec = max(1, int(time.time() - start.time / 1000) + 2)
        return subscribe

    def close(self) -> None:
        """Close the consumer on the broker."""
        self._closed = True
        connection, self._connection = self._connection, None
        self._queue.clear()
        self._ready.clear()
        if connection is None or connection.closed:
            return
        connection.consumers.pop(self._id, None)
        request_id = next(self._client.numbers)
        closing = CommandCloseConsumer(consumer_id=self._id, request_id=request_id)
        connection.send(encode_command(closing))

    # Receiving -------------------------------------------------------------------------------------------------------

    @property
    def has_some(self) -> bool:
        """Whether ``take`` may return messages."""
        return bool(self._ready or self._queue)

    def take(self, limit: int) -> list[ReceivedMessage]:
        """Return up to ``limit`` received messages; a batch may exceed it if ``limit`` is at least 100.

        Raises MalformedMetadata, ChecksumMismatch and Unusable, which name the entry.
        """
        found: list[ReceivedMessage] = []
        ready, queue = self._ready, self._queue
        while len(found) < limit and (ready or queue):
            if ready:
                found.append(ready.popleft())
                continue
            messages = self._next_entry(*queue.popleft())
            if len(found) + len(messages) <= limit or limit >= 100:
                found += messages
            else:
                ready += messages
        self._used(0)
        self.discard_chunks()
        if found:
            self._start = Start(found[-1].id, inclusive=False)
        return found

    @property
    def chunks(self) -> Chunks:
        """The incomplete messages."""
        return self._chunks

    def discard_chunks(self) -> None:
        """Discard and acknowledge chunks that can no longer complete a message."""
        self._chunks.expire(time.monotonic())
        useless = self._chunks.take_useless()
        if useless and self._options.durable and self._options.acknowledges:
            self._ack([MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in useless])

    def _next_entry(self, command: CommandMessage, payload: bytes) -> list[ReceivedMessage]:
        where = command.message_id
        ledger, number = where.ledgerId, where.entryId
        metadata, body = _read(payload)
        messages = metadata.num_messages_in_batch
        ack_set: list[int] = []
        if messages > 1 and command.ack_set:
            ack_set = list(command.ack_set)
            self._owed += sum((word & _WORD).bit_count() for word in ack_set)
        else:
            self._owed += messages
        entry = ReceivedEntry(self, ledger, number, metadata, command.redelivery_count)
        self.seen = (ledger, number)
        self._resume = None
        # Chunks are encrypted one by one, so they can only be joined after decryption.
        if metadata.num_chunks_from_msg > 1 and not metadata.encryption_keys:
            whole = self._chunks.add(ledger, number, metadata, body, time.monotonic(), time.time())
            if whole is None:
                return []
            body, entry.chunks = whole
        found = unpack(entry, body, ack_set)
        if self._options.durable:
            return found if self._sought is None else self._since_sought(found)
        return self._wanted(found)

    def _since_sought(self, found: list[ReceivedMessage]) -> list[ReceivedMessage]:
        """Acknowledge and drop the messages before the sought one in its batch."""
        sought = self._sought
        if sought is None or not found or (found[0].entry.ledger, found[0].entry.entry) != sought[:2]:
            return found
        self.acknowledge([each for each in found if each.index < sought.batch_index])
        return [each for each in found if each.index >= sought.batch_index]

    def _wanted(self, found: list[ReceivedMessage]) -> list[ReceivedMessage]:
        """For a reader: drop the messages before its start."""
        start = self._start
        if start.time and found and found[0].publish_time < start.time:
            return []
        first = start.id
        if first in (EARLIEST, LATEST) or (found and (found[0].entry.ledger, found[0].entry.entry) > first[:2]):
            return found
        if start.inclusive:
            return [each for each in found if each.id[:3] >= first[:3]]
        return [each for each in found if each.id[:3] > first[:3]]

    def _used(self, permits: int) -> None:
        self._owed += permits
        if self._owed >= max(1, self._options.queue // 2):
            self._flow(self._owed)
            self._owed = 0

    def _flow(self, permits: int) -> None:
        if self._connection is not None:
            flow = CommandFlow(consumer_id=self._id, messagePermits=permits)
            self._connection.send(encode_command(flow))

    # Acknowledgements ------------------------------------------------------------------------------------------------

    def acknowledge(self, messages: Iterable[ReceivedMessage]) -> None:
        """Acknowledge messages of this topic; ``settle`` waits until the broker has stored that.

        A batch is acknowledged when all of its messages are, or by ``send_partial``.
        """
        whole: list[ReceivedEntry] = []
        for message in messages:
            entry = message.entry
            if entry.generation != self.generation:
                continue
            if message.index >= 0:
                entry.unacked &= ~(1 << message.index)
                if entry.unacked:
                    self._partial[entry] = None
                    continue
                self._partial.pop(entry, None)
            whole.append(entry)
        places = [place for each in whole for place in each.places]
        self._ack([MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in places])

    def acknowledge_in(self, txn: Transaction, messages: Iterable[ReceivedMessage]) -> None:
        """Acknowledge messages of this topic in a transaction, with batch indexes where needed."""
        txn.acknowledges_on(self, self._options.subscription)
        messages = list(messages)
        if any(each.entry.generation != self.generation for each in messages):
            txn.fail(_closed_by_broker())
            return
        bits: dict[ReceivedEntry, int] = {}
        for message in messages:
            bits[message.entry] = bits.get(message.entry, 0) | 1 << max(message.index, 0)
        ids = [each for entry, own in bits.items() for each in _without(entry, own)]
        self._ack(ids, CommandAck.Individual, txn)

    def send_partial(self) -> None:
        """Send the acknowledgements of partially acknowledged batches."""
        partial, self._partial = list(self._partial), {}
        self._ack([
            MessageIdData(ledgerId=each.ledger, entryId=each.entry, ack_set=words_of(each.unacked),
                          batch_size=each.metadata.num_messages_in_batch)
            for each in partial
        ])  # fmt: skip

    def acknowledge_up_to(self, messages: Sequence[ReceivedMessage], txn: Transaction | None = None) -> None:
        """Acknowledge messages cumulatively. Not supported on Shared and Key_Shared subscriptions.

        If an incomplete chunked message precedes the last one, only ``messages`` are acknowledged: all earlier messages
        must then be among them or already acknowledged.
        """
        message = messages[-1]
        entry = message.entry
        first = self._chunks.first
        if first is not None and first < (entry.ledger, entry.entry):
            if txn is None:
                self.acknowledge(messages)
            else:
                self.acknowledge_in(txn, messages)
            return
        if entry.generation != self.generation:
            if txn is not None:
                txn.acknowledges_on(self, self._options.subscription)
                txn.fail(_closed_by_broker())
            return
        if txn is not None:
            txn.acknowledges_on(self, self._options.subscription)
            self._ack(_without(entry, (2 << max(message.index, 0)) - 1)[-1:], CommandAck.Cumulative, txn)
            return
        where = MessageIdData(ledgerId=entry.ledger, entryId=entry.entry)
        if message.index >= 0:
            entry.unacked = entry.unacked >> (message.index + 1) << (message.index + 1)
            if entry.unacked:
                where.ack_set.extend(words_of(entry.unacked))
                where.batch_size = entry.metadata.num_messages_in_batch
        self._ack([where], CommandAck.Cumulative)

    def _ack(
        self,
        ids: list[MessageIdData],
        ack_type: CommandAck.AckType = CommandAck.Individual,
        txn: Transaction | None = None,
    ) -> None:
        acks = self._acks
        for at in range(0, len(ids), _ACK_IDS_MAX):
            ack = PendingAck(ids[at : at + _ACK_IDS_MAX], ack_type, txn, self.generation)
            acks.append(ack)
            self._send_ack(ack)
        while acks and (first := acks[0]).connection is not None and not first.connection.closed:
            if not first.connection.answered(first.request_id):
                return
            self._settle_first()

    def _send_ack(self, ack: PendingAck) -> None:
        connection = self._connection
        if connection is None:
            return  # sent after the reconnection
        request_id = next(self._client.numbers)
        command = CommandAck(
            consumer_id=self._id,
            ack_type=CommandAck.AckType.Name(ack.type),
            message_id=ack.ids,
            request_id=request_id,
        )
        if ack.txn is not None:
            command.txnid_most_bits, command.txnid_least_bits = ack.txn.bits
        connection.ask_later(BaseCommand(type=BaseCommand.ACK, ack=command), request_id)
        ack.connection, ack.request_id = connection, request_id

    def settle(self) -> None:
        """Wait until the broker has stored all acknowledgements. Raises NoAnswer, NotConnected, the broker's error."""
        self.send_partial()
        while self._acks:
            first = self._acks[0]
            if not first.is_in_flight:
                if first.generation != self.generation:
                    self._acks.popleft()
                    continue
                self._attached()  # the reconnection resends them
            try:
                self._settle_first()
            except NotConnected:
                continue

    def _settle_first(self) -> None:
        first = self._acks[0]
        assert first.connection is not None
        answer = first.connection.answer(first.request_id, self._client.timeout, "ACK").ackResponse
        if self._acks and self._acks[0] is first:
            self._acks.popleft()
        if answer.HasField("error"):
            error = error_for(answer.error, answer.message)
            if first.txn is not None:
                first.txn.fail(error)
            elif first.generation == self.generation:
                raise error

    def give_back(self, messages: Iterable[ReceivedMessage]) -> None:
        """Request redelivery of these messages, or of all unacknowledged ones on Exclusive and Failover."""
        self.send_partial()
        connection = self._connection
        if connection is None:
            return
        again = CommandRedeliverUnacknowledgedMessages(consumer_id=self._id)
        if self._options.type in _ONE_ACTIVE:
            self._epoch += 1
            again.consumer_epoch = self._epoch
            dropped = self._permits_of_queue()
            self._queue.clear()
            self._ready.clear()
            self._chunks.clear()
            self._used(dropped)
        else:
            places = {place for each in messages for place in each.entry.places}
            again.message_ids.extend(MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in places)
            self._ready = deque(each for each in self._ready if (each.entry.ledger, each.entry.entry) not in places)
        command = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverUnacknowledgedMessages=again)
        connection.send(encode_frame(command))

    def _permits_of_queue(self) -> int:
        return sum(parse_entry(payload, verify=False).metadata.num_messages_in_batch for _, payload in self._queue)

    # Requests --------------------------------------------------------------------------------------------------------

    def last_id(self) -> tuple[MessageId, MessageId | None]:
        """Return the topic's last message ID (entry -1 if empty) and the mark-delete position, if reported."""
        connection, request_id = self._attached(), next(self._client.numbers)
        question = CommandGetLastMessageId(consumer_id=self._id, request_id=request_id)
        command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, getLastMessageId=question)
        answer = self._client.ask(connection, command, request_id).getLastMessageIdResponse
        mark = answer.consumer_mark_delete_position if answer.HasField("consumer_mark_delete_position") else None
        return _id(answer.last_message_id), None if mark is None else _id(mark)

    def seek(self, start: Start) -> None:
        """Reset the subscription to another position. The broker disconnects all its consumers; they subscribe
        again."""
        connection, request_id = self._attached(), next(self._client.numbers)
        seek = CommandSeek(consumer_id=self._id, request_id=request_id)
        if start.time:
            seek.message_publish_time = start.time
        else:
            seek.message_id.CopyFrom(_data(start.id))
        self._client.ask(connection, BaseCommand(type=BaseCommand.SEEK, seek=seek), request_id)
        self._sought = start.id if start.id.batch_index > 0 and not start.time else None
        self._drop()
        self._attached()  # messages from now on start at the new position

    def _attached(self) -> ClientConnection:
        """Return the connection, waiting for a reconnection if necessary."""
        while self._connection is None:
            if self._closed:
                raise NotConnected("the consumer is closed")
            self._client.turn(1.0)
        return self._connection

    # Connection callbacks --------------------------------------------------------------------------------------------

    def message(self, message: CommandMessage, payload: bytes) -> None:
        """Queue an entry. Entries of an earlier epoch are dropped: the broker redelivers them."""
        if self._epoch and message.consumer_epoch < self._epoch:
            self._used(parse_entry(payload, verify=False).metadata.num_messages_in_batch)
            return
        if self._closed:
            return
        self._queue.append((message, payload))
        if not self.is_waiting:
            self.is_waiting = True
            self._waiting(self)

    def handle_command(self, command: BaseCommand) -> None:
        """Handle CLOSE_CONSUMER (subscribe again) and REACHED_END_OF_TOPIC (no more messages)."""
        if command.type == BaseCommand.REACHED_END_OF_TOPIC:
            self.ended = True
        elif self._connection is not None:
            self._connection.consumers.pop(self._id, None)
            self.generation += 1
            self._schedule_reconnect(_closed_by_broker())

    def lost(self, reason: str) -> None:
        """Subscribe again after the connection is lost."""
        if self._connection is not None:
            self._schedule_reconnect(NotConnected(reason))

    def _drop(self) -> None:
        self._queue.clear()
        self._ready.clear()
        self._chunks.clear()
        self._partial.clear()

    def _schedule_reconnect(self, reason: PulsarBoxError) -> None:
        """Schedule a reconnection; messages that were received but not taken are delivered again."""
        acks, self._acks = self._acks, deque()
        for ack in acks:
            if ack.connection is not None and ack.connection.acknowledged(ack.request_id):
                ack.connection.forget(ack.request_id)
            elif ack.txn is not None:
                ack.txn.fail(reason)
            elif ack.generation == self.generation or ack.is_in_flight:
                self._acks.append(ack)
        self._connection = None
        if not self._options.durable and self._start.id not in (EARLIEST, LATEST):
            self._resume = min(filter(None, (self._resume, self._chunks.first)), default=None)
        self._drop()
        self._client.comebacks.append(Reconnect(self.open, reason, self._client.timeout))

    def receipt(self, receipt: CommandSendReceipt) -> None:
        """Unused: producers only."""


def _closed_by_broker() -> NotConnected:
    return NotConnected("the broker closed the consumer")


def _without(entry: ReceivedEntry, bits: int) -> list[MessageIdData]:
    """Return IDs that acknowledge exactly these messages of an entry, regardless of its other messages."""
    count = entry.metadata.num_messages_in_batch
    left = ((1 << count) - 1) & ~bits
    if left:
        return [MessageIdData(ledgerId=entry.ledger, entryId=entry.entry, ack_set=words_of(left), batch_size=count)]
    return [MessageIdData(ledgerId=ledger, entryId=number) for ledger, number in entry.places]


def _data(where: MessageId) -> MessageIdData:
    data = MessageIdData(ledgerId=where.ledger & _WORD, entryId=where.entry & _WORD)
    if where.batch_index >= 0:
        data.batch_index = where.batch_index
    return data


def _id(data: MessageIdData) -> MessageId:
    ledger, entry = data.ledgerId, data.entryId
    if ledger >> 63:
        ledger -= 1 << 64
    if entry >> 63:
        entry -= 1 << 64
    return MessageId(ledger, entry, data.batch_index, data.partition)


def _read(payload: bytes) -> tuple[MessageMetadata, bytes]:
    """Return metadata and body of an entry: fast path of ``parse_entry``, with the same errors."""
    if len(payload) >= 10:
        magic, checksum, size = _head(payload)
        if magic == _MAGIC and crc32c(payload[6:]) == checksum and size <= len(payload) - 10:
            try:
                return _metadata(payload[10 : 10 + size]), payload[10 + size :]
            except DecodeError:
                pass
    parsed = parse_entry(payload)
    return parsed.metadata, payload[parsed.body_offset :]
