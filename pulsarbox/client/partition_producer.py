"""A producer of one topic or partition: batches, the frames on their way, receipts, and sending again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.client.compression import compress
from pulsarbox.client.errors import NoAnswer, NotConnected, passes, told
from pulsarbox.client.reconnect import Comeback
from pulsarbox.client.routing import Route
from pulsarbox.errors import ProducerHeld, PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.frames import MESSAGE_SIZE_FRAME_PADDING
from pulsarbox.protocol.message_encoder import (
    Envelope,
    Outgoing,
    StoredEntry,
    in_batch,
    metadata,
    plain_in_batch,
    send_frame,
)
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandCloseProducer,
    CommandMessage,
    CommandProducer,
    CommandSendReceipt,
)

if TYPE_CHECKING:
    from pulsarbox.client.client import Client
    from pulsarbox.client.connection import Connection
    from pulsarbox.client.transaction import Transaction

PENDING_FRAMES: Final = 1000
PENDING_BYTES: Final = 32 << 20
BATCH_MESSAGES: Final = 1000
BATCH_BYTES: Final = 128 << 10
_AFTER_AN_ERROR_SECONDS: Final = 0.2
_METADATA_MAX: Final = MESSAGE_SIZE_FRAME_PADDING - 256
"""Bytes of metadata that a frame takes beside a body of the largest size; its command has the rest."""

Stored = Callable[[int, int, int, int, Sequence[Any]], None]
"""Told of a receipt: partition (-1 for none), ledger, entry, number of messages, the tokens that came with them. The
ledger is -1 where the broker had the messages already."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a producer sends."""

    name: str | None = None
    """None: the broker makes one."""
    compression: int = 0
    """CompressionType."""
    batching: bool = True
    mix_keys: bool = False
    """Whether a batch may hold messages of several keys: Key_Shared then gives all of them to one consumer."""
    route: Route = field(default_factory=Route)
    skip_stored: bool = False
    """Whether messages are passed over whose sequence ids the broker had of this name when the producer was opened."""
    batch_messages: int = BATCH_MESSAGES
    """So many messages a batch at most."""


class _Sent(NamedTuple):
    sequence_id: int
    frame: bytes
    messages: int
    """That are complete with it: 0 for a chunk that is not the last."""
    tokens: Sequence[Any]
    txn: Transaction | None


_PLAIN: Final = (None, False, None, None, 0, False)


def _now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class TopicProducer:
    """Takes messages in order; what has no receipt is sent again after a lost connection, under its sequence ids.

    But for messages in a transaction: they might be there twice then, so the transaction fails, and is begun again by
    who knows what belongs to it.
    """

    def __init__(self, client: Client, topic: str, partition: int, options: Options, stored: Stored) -> None:
        self.topic = topic
        self.failed: PulsarBoxError | None = None
        """Why it cannot go on."""
        self._client = client
        self._partition = partition
        self._options = options
        self._stored = stored
        self._id = next(client.numbers)
        self._name = options.name
        self._epoch = 0
        self._opened = False
        self._connection: Connection | None = None
        self._request: tuple[Connection, int] | None = None
        """The PRODUCER that has no answer yet."""
        self._max_message_size = 0
        self._next_sequence = 0
        self._pending: deque[_Sent] = deque()
        self._pending_bytes = 0
        self._progress = time.monotonic()
        self._parts: list[bytes] = []
        self._tokens: list[Any] = []
        self._size = 0
        self._count = 0
        self._first: Outgoing | bytes = b""
        self._first_sequence = 0
        self._last_sequence = -1
        self._stored_before = -1
        self._group: tuple[Any, ...] = _PLAIN
        self._txn: Transaction | None = None

    # Opening ---------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open it for the first time; wait while the broker holds it back.

        Raises as ``open``; ProducerHeld after the client's timeout.
        """
        opening = Comeback(self.open, NotConnected("not opened yet"), self._client.timeout)
        try:
            self.open()
        except ProducerHeld as error:
            opening.refused(error)
            self._epoch += 1  # a broker refuses a newcomer, and lets a producer wait that comes back
            self._client.comebacks.append(opening)
            while not self._opened:
                self._client.turn(1.0)

    def open(self) -> None:
        """Find the broker and announce the producer; then send whatever has no receipt.

        Raises what the broker says; ProducerHeld where it holds the producer back: then try again.
        """
        if self._request is None or self._request[0].closed:
            self._request = self._announce()
        connection, request_id = self._request
        try:
            answer = connection.answer(request_id, self._client.timeout, "PRODUCER").producer_success
        except BaseException as error:
            if not connection.holds_back(request_id):
                self._request = None
                connection.producers.pop(self._id, None)
            if isinstance(error, ProducerHeld):
                text = f"the backlog of {self.topic} has reached its quota: consume it, clear it, or raise the quota"
                raise ProducerHeld(text) from error
            raise
        self._request = None
        if connection.closed:
            raise NotConnected(connection.closed)
        if not self._opened:
            self._next_sequence = answer.last_sequence_id + 1
            self._last_sequence = answer.last_sequence_id
            self._stored_before = answer.last_sequence_id if self._options.skip_stored else -1
        self._opened = True
        self._name = answer.producer_name
        self._connection = connection
        self._max_message_size = connection.max_message_size
        self._progress = time.monotonic()
        for sent in self._pending:
            connection.send(sent.frame)

    def _announce(self) -> tuple[Connection, int]:
        connection = self._client.broker_of(self.topic)
        request_id = next(self._client.numbers)
        producer = CommandProducer(
            topic=self.topic,
            producer_id=self._id,
            request_id=request_id,
            epoch=self._epoch,
            user_provided_producer_name=self._options.name is not None,
        )
        if self._name is not None:
            producer.producer_name = self._name
        connection.producers[self._id] = self
        connection.ask_later(BaseCommand(type=BaseCommand.PRODUCER, producer=producer), request_id)
        return connection, request_id

    def close(self) -> None:
        """Tell the broker that nothing more comes. What is on its way has been waited for before, or is given up."""
        connection, self._connection = self._connection, None
        if self._request is not None:
            connection, self._request = self._request[0], None
        if connection is None or connection.closed:
            return
        connection.producers.pop(self._id, None)
        request_id = next(self._client.numbers)
        closing = CommandCloseProducer(producer_id=self._id, request_id=request_id)
        connection.send(encode_frame(BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=closing)))

    # Taking messages -------------------------------------------------------------------------------------------------

    def enter(self, txn: Transaction | None) -> None:
        """What is taken from now on is in this transaction; None for in none."""
        if self._txn is not None and self._txn.ended:
            self._discard_batch()
        self.send_batch()
        self._txn = txn
        if txn is not None:
            txn.joined(self)

    def _discard_batch(self) -> None:
        self._parts, self._tokens, self._count, self._size = [], [], 0, 0

    @property
    def unconfirmed(self) -> int:
        """Frames without a receipt, and a batch that is not sent yet."""
        return len(self._pending) + bool(self._count)

    @property
    def full(self) -> bool:
        """Whether as much is on its way as may be."""
        return len(self._pending) >= PENDING_FRAMES or self._pending_bytes >= PENDING_BYTES

    @property
    def batch_is_open(self) -> bool:
        """Whether messages wait in a batch."""
        return self._count > 0

    def add_plain(self, payloads: Sequence[bytes], start: int = 0) -> int:
        """Take payloads that are nothing but payloads, from ``start`` on, until a batch is complete; how many."""
        if not self._options.batching or (self._count and self._group != _PLAIN) or self._tokens:
            self._add(Outgoing(payloads[start]), ())
            return 1
        if not self._count:
            self._group = _PLAIN
            self._first = payloads[start]
            self._first_sequence = self._next_sequence
        room = self._options.batch_messages - self._count
        limit = min(BATCH_BYTES, self._max_message_size // 2)
        parts, size, sequence = self._parts, self._size, self._next_sequence
        taken = 0
        for payload in payloads[start : start + room]:
            if size + len(payload) > limit:
                break
            parts += plain_in_batch(payload, sequence)
            size += len(payload) + 16
            sequence += 1
            taken += 1
        self._size, self._next_sequence, self._last_sequence = size, sequence, sequence - 1
        self._count += taken
        if not taken and not self._count:  # one that is too large for any batch
            self._add(Outgoing(payloads[start]), ())
            return 1
        if start + taken < len(payloads) or self._count == self._options.batch_messages:
            self.send_batch()
        return taken

    def add(self, message: Outgoing, token: Any = None) -> None:
        """Take one message. Raises ValueError where its sequence id is not above the one before."""
        self._add(message, () if token is None else (token,))

    def _add(self, message: Outgoing, tokens: Sequence[Any]) -> None:
        sequence = self._next_sequence if message.sequence_id is None else message.sequence_id
        if sequence <= self._stored_before:
            return
        if sequence <= self._last_sequence:
            raise ValueError(f"sequence id {sequence} is not above {self._last_sequence}, which came before")
        size = len(message.payload or b"")
        limit = min(BATCH_BYTES, self._max_message_size // 2)
        if not self._options.batching or message.deliver_at or size > limit:
            self.send_batch()
            self._send_alone(message, sequence, tokens)
        else:
            self._add_to_batch(message, sequence, tokens, limit)
        self._last_sequence = sequence
        self._next_sequence = sequence + 1

    def add_stored(self, stored: StoredEntry, tokens: Sequence[Any] = ()) -> bool:
        """Take an entry that was stored before. It keeps its metadata; the broker's deduplication sees the sequence ids
        of this producer, which go on. False for a batch that is larger than the broker takes.

        Raises ValueError for a single message that is larger and cannot be cut into chunks.
        """
        self.send_batch()
        assert self._name is not None, "opened before anything is sent"
        count = stored.envelope.messages or 1
        first = self._last_sequence if stored.continues else self._next_sequence
        given = stored.envelope
        envelope = given._replace(
            producer_name=given.producer_name or self._name,
            sequence_id=first if given.sequence_id < 0 else given.sequence_id,
            publish_time=given.publish_time or _now(),
        )
        sent = envelope._replace(sequence_id=first, highest_sequence_id=first + count - 1 if count > 1 else 0)
        data = metadata(stored.message, envelope)
        limit = self._max_message_size
        if len(stored.body) <= limit and len(data) + len(stored.body) <= limit + _METADATA_MAX:
            self._send(sent, data, stored.body, stored.messages, tokens)
        elif given.messages:
            return False
        elif stored.encrypted or given.chunk is not None:
            raise ValueError(
                f"an encrypted message of {len(stored.body)} bytes is larger than the {self._max_message_size} that "
                "the broker takes, and cannot be cut"
            )
        else:
            self._send_in_chunks(stored.message, envelope, stored.body, tokens, first)
        self._last_sequence = first + count - 1
        self._next_sequence = first + count
        return True

    def _add_to_batch(self, message: Outgoing, sequence: int, tokens: Sequence[Any], limit: int) -> None:
        key = _PLAIN[:3] if self._options.mix_keys else (message.key, message.key_is_base64, message.ordering_key)
        null_key = message.null_key and not self._options.mix_keys
        group = (*key, message.schema_version, message.publish_time, null_key)
        parts = in_batch(message, sequence)
        size = len(parts[0]) + len(parts[1])
        if self._count and (group != self._group or self._size + size > limit):
            self.send_batch()
        if not self._count:
            self._group = group
            self._first, self._first_sequence = message, sequence
        self._parts += parts
        self._tokens += tokens
        self._size += size
        self._count += 1
        self._last_sequence = sequence
        if self._count >= self._options.batch_messages:
            self.send_batch()

    def send_batch(self) -> None:
        """Send what waits in a batch; a single message goes as if there were no batch."""
        if not self._count:
            return
        parts, tokens, count, first = self._parts, self._tokens, self._count, self._first
        self._discard_batch()
        if count == 1:
            message = Outgoing(first) if isinstance(first, bytes) else first
            self._send_alone(message, self._first_sequence, tokens)
            return
        key, is_base64, ordering_key, schema_version, publish_time, null_key = self._group
        common = Outgoing(b"", key, is_base64, ordering_key, schema_version=schema_version, null_key=null_key)
        body = b"".join(parts)
        packed = compress(self._options.compression, body)
        envelope = self._envelope(self._first_sequence, publish_time, len(body))._replace(
            messages=count, highest_sequence_id=self._last_sequence
        )
        self._send(envelope, metadata(common, envelope), packed, count, tokens)

    def _send_alone(self, message: Outgoing, sequence: int, tokens: Sequence[Any]) -> None:
        payload = message.payload or b""
        envelope = self._envelope(sequence, message.publish_time, len(payload))
        packed = compress(envelope.compression, payload)
        data = metadata(message, envelope)
        if len(data) + len(packed) <= self._max_message_size:
            self._send(envelope, data, packed, 1, tokens)
        else:
            self._send_in_chunks(message, envelope, packed, tokens, sequence)

    def _send_in_chunks(
        self, message: Outgoing, envelope: Envelope, packed: bytes, tokens: Sequence[Any], sequence: int
    ) -> None:
        """A message that is larger than the broker takes, in several entries, all sent under one sequence id."""
        if not parse_topic(self.topic).persistent:
            raise ValueError(
                f"a message of {len(packed)} bytes is larger than the {self._max_message_size} that the broker takes,"
                " and in chunks it can go to persistent topics only"
            )
        uuid = f"{self._name}-{sequence}"
        largest = envelope._replace(chunk=(uuid, 2**31 - 1, len(packed), 2**31 - 1))
        room = self._max_message_size - len(metadata(message, largest))
        if room <= 0:
            raise ValueError(f"key and properties leave no room: a message has {self._max_message_size} bytes at most")
        chunks = -(-len(packed) // room)
        for index in range(chunks):
            part = envelope._replace(chunk=(uuid, chunks, len(packed), index))
            last = index == chunks - 1
            body = packed[index * room : (index + 1) * room]
            data = metadata(message, part)
            self._send(part._replace(sequence_id=sequence), data, body, int(last), tokens if last else ())

    def _envelope(self, sequence: int, publish_time: int, size: int) -> Envelope:
        assert self._name is not None, "opened before anything is sent"
        when = publish_time or _now()
        # Other clients cannot unpack what is compressed and empty.
        compression = self._options.compression if size else 0
        return Envelope(
            self._name, sequence, when, compression, size, txn=None if self._txn is None else self._txn.bits
        )

    def _send(self, envelope: Envelope, data: bytes, body: bytes, messages: int, tokens: Sequence[Any]) -> None:
        txn = self._txn
        if txn is not None:
            txn.publishes_to(self.topic)
        frame = send_frame(self._id, envelope, data, body)
        if not self._pending:
            self._progress = time.monotonic()
        self._pending.append(_Sent(envelope.sequence_id, frame, messages, tokens, txn))
        self._pending_bytes += len(frame)
        if self._connection is not None:
            self._connection.send(frame)

    def check(self) -> None:
        """Raises why it cannot go on, and NoAnswer where receipts have not come for long."""
        if self.failed is not None:
            raise self.failed
        timeout = self._client.timeout
        if self._connection is not None and self._pending and time.monotonic() - self._progress > timeout:
            raise NoAnswer(f"{len(self._pending)} sends to {self.topic} have had no receipt for {timeout:g} s")

    # What the connection tells ---------------------------------------------------------------------------------------

    def receipt(self, receipt: CommandSendReceipt) -> None:
        """The first frame on its way is stored; one that is not the first was sent before the connection was lost."""
        pending = self._pending
        if not pending or receipt.sequence_id != pending[0].sequence_id:
            if pending and receipt.sequence_id > pending[0].sequence_id and self._connection is not None:
                self._connection.close(f"the broker left out the receipt of {pending[0].sequence_id}")
            return
        sent = pending.popleft()
        self._pending_bytes -= len(sent.frame)
        self._progress = time.monotonic()
        if sent.txn is not None:
            sent.txn.on_its_way -= 1
        if sent.messages:
            where = receipt.message_id
            ledger = -1 if where.ledgerId == 2**64 - 1 else where.ledgerId
            entry = -1 if where.entryId == 2**64 - 1 else where.entryId
            self._stored(self._partition, ledger, entry, sent.messages, sent.tokens)

    def told(self, command: BaseCommand) -> None:
        """CLOSE_PRODUCER: open again. SEND_ERROR: the same where it may pass, else this is the end; of what is in a
        transaction that fails.
        """
        connection = self._connection
        if connection is None:
            return
        if command.type == BaseCommand.SEND_ERROR:
            error = told(command.send_error.error, command.send_error.message)
            if self._give_up(command.send_error.sequence_id, error):
                return
            if not passes(error) or time.monotonic() - self._progress > self._client.timeout:
                self.failed = error
                return
            self.close()  # so that nothing later is stored before what was refused
            self._come_back(error, _AFTER_AN_ERROR_SECONDS)
            return
        connection.producers.pop(self._id, None)
        self._come_back(NotConnected("the broker closed the producer"))

    def lost(self, reason: str) -> None:
        """The connection is gone: open again."""
        if self._connection is not None:
            self._come_back(NotConnected(reason))

    def _give_up(self, sequence_id: int, error: PulsarBoxError) -> bool:
        """Whether what was refused is in a transaction, which fails."""
        for sent in self._pending:
            if sent.sequence_id == sequence_id and sent.txn is not None:
                self._pending.remove(sent)
                self._pending_bytes -= len(sent.frame)
                sent.txn.lost(error)
                return True
        return False

    def _come_back(self, reason: PulsarBoxError, pause: float = 0.0) -> None:
        for sent in [each for each in self._pending if each.txn is not None]:
            self._give_up(sent.sequence_id, reason)
        self._connection = None
        self._epoch += 1
        comeback = Comeback(self.open, reason, self._client.timeout)
        comeback.due += pause
        self._client.comebacks.append(comeback)

    def message(self, message: CommandMessage, payload: bytes) -> None:
        """Not for producers."""
