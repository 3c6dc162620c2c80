"""A producer's WebSocket: messages in, results out."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from time import time_ns
from typing import cast

from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.plugins.compression.wire import CodecMissing, compress
from pulsarbox.plugins.registry import get
from pulsarbox.protocol.PulsarApi_pb2 import CompressionType, MessageMetadata
from pulsarbox.server.one_shot_thread import run_in_thread
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.server.tasks import spawn
from pulsarbox.server.websocket.message_batch import MessageBatch
from pulsarbox.server.websocket.message_json import (
    BAD_PAYLOAD,
    NOT_SENT,
    InvalidMessage,
    OutgoingMessage,
    decode_payload,
    not_sent,
    parse_message,
    sent,
)
from pulsarbox.server.websocket.parameters import ProducerParameters
from pulsarbox.server.websocket.session import SocketSession, pause
from pulsarbox.server.websocket.socket_producer import SendOutcome, SocketProducer

IN_LOOP_MAX = 64 << 10
"""Bytes that are compressed in the event loop; more are in a thread."""
RESULTS_MAX = 1000
"""Unread results from which no more messages of the client are read."""
_HASH_MAX = 0x7FFFFFFF


class ProducerSession(SocketSession):
    """Publishes the client's messages to a topic or its partitions."""

    def __init__(
        self,
        shell: Shell,
        address: str,
        principal: Principal | None,
        topic: TopicName,
        parameters: ProducerParameters,
        *,
        secure: bool,
    ) -> None:
        super().__init__(shell, address, principal, secure=secure)
        self._topic = topic
        self._parameters = parameters
        self._parts: list[TopicName] = [topic]
        self._producers: dict[int, SocketProducer] = {}
        self._batches: dict[int, MessageBatch] = {}
        self._hash32: Callable[[bytes], int] = get("hashing", parameters.hashing).hash32
        self._next = 0
        self._batch_timer: asyncio.TimerHandle | None = None
        self._results: deque[bytes] = deque()
        self._sending = False
        self._unread = asyncio.Event()
        """Set unless the client leaves too many results unread."""
        self._unread.set()
        self._order = asyncio.Lock()
        """Held while messages get sequence IDs and are sent."""

    async def open(self) -> None:
        """See SocketSession."""
        self._parts = await self.partitions(self._topic)
        self._next = random.randrange(len(self._parts))
        for index in range(len(self._parts)):
            await self._open_part(index)

    async def _open_part(self, index: int) -> None:
        parameters = self._parameters
        producer = SocketProducer(
            self.connection,
            self._parts[index],
            name=parameters.name,
            initial_sequence_id=parameters.initial_sequence_id,
            send_seconds=parameters.send_seconds,
        )
        await producer.open()
        self._producers[index] = producer

    async def handle(self, text: str) -> None:
        """Publish a message; wait while the client does not read the results."""
        await self._unread.wait()
        try:
            message = parse_message(text)
            payload = await decode_payload(message, pause)
            self._check_encryption(message)
            if self._is_full():
                raise InvalidMessage(NOT_SENT, "The producer's send queue is full", message.context)
            index = self._route(message)
            producer = self._producers[index]
            await self._ready(producer, message)
            async with self._order:
                await self._publish(index, message, payload)
        except InvalidMessage as error:
            await self.send(not_sent(error.code, str(error), error.context))

    def _check_encryption(self, message: OutgoingMessage) -> None:
        if self._parameters.encryption and bool(message.compression) != (message.uncompressed_size is not None):
            raise InvalidMessage(
                BAD_PAYLOAD,
                "compressionType and uncompressedMessageSize must either both be given or both be absent",
                message.context,
            )

    def _is_full(self) -> bool:
        most = self._parameters.max_pending
        if not most:
            return False
        return sum(each.pending for each in self._producers.values()) + sum(map(len, self._batches.values())) >= most

    async def _ready(self, producer: SocketProducer, message: OutgoingMessage) -> None:
        try:
            await producer.ready()
        except TimeoutError:
            raise InvalidMessage(NOT_SENT, "The topic is not available", message.context) from None
        except PulsarBoxError as error:
            raise InvalidMessage(NOT_SENT, str(error), message.context) from None

    def _route(self, message: OutgoingMessage) -> int:
        """Return the partition of a message."""
        count = len(self._parts)
        if message.key is not None:
            return (self._hash32(message.key.encode()) & _HASH_MAX) % count
        if self._parameters.round_robin and self._next not in self._batches:
            self._next = (self._next + 1) % count
        return self._next

    async def _publish(self, index: int, message: OutgoingMessage, payload: bytes) -> None:
        outcome = SendOutcome(
            lambda where: self._answer(sent(where, message.context)),
            lambda reason: self._answer(not_sent(NOT_SENT, reason, message.context)),
        )
        if self._parameters.batching is not None and MessageBatch.takes(message, payload):
            await self._add_to_batch(index, message, payload, outcome)
            return
        await self._send_batch(index)
        metadata = self._metadata(message)
        metadata.sequence_id = self._producers[index].next_sequence_id()
        if metadata.compression:  # compressed and encrypted by the client
            self._producers[index].send(metadata, payload, [outcome], batched=False)
            return
        await self._send(index, metadata, payload, [outcome], batched=False)

    def _metadata(self, message: OutgoingMessage) -> MessageMetadata:
        now = time_ns() // 1_000_000
        metadata = MessageMetadata(publish_time=now)
        for name, value in message.properties.items():
            metadata.properties.add(key=name, value=value)
        if message.key is not None:
            metadata.partition_key = message.key
        if message.event_time:
            metadata.event_time = message.event_time
        if message.deliver_after > 0:
            metadata.deliver_at_time = min(now + message.deliver_after, 2**63 - 1)
        elif message.deliver_at > 0:
            metadata.deliver_at_time = message.deliver_at
        metadata.replicate_to.extend(message.replication_clusters)
        if self._parameters.encryption:
            metadata.encryption_keys.extend(self._parameters.encryption)
            if message.encryption_param:
                metadata.encryption_param = message.encryption_param
            if message.uncompressed_size is not None:
                metadata.compression = cast(CompressionType, message.compression)
                metadata.uncompressed_size = message.uncompressed_size & 0xFFFFFFFF
        return metadata

    async def _send(
        self, index: int, metadata: MessageMetadata, body: bytes, outcomes: list[SendOutcome], *, batched: bool
    ) -> None:
        number = self._parameters.compression
        metadata.uncompressed_size = len(body)
        try:
            if number and len(body) > IN_LOOP_MAX:
                body = await run_in_thread("compress", partial(compress, number, body))
            elif number:
                body = compress(number, body)
        except CodecMissing as error:
            for each in outcomes:
                each.failed(str(error))
            return
        if number:
            metadata.compression = cast(CompressionType, number)
        self._producers[index].send(metadata, body, outcomes, batched=batched)

    # Batches

    async def _add_to_batch(self, index: int, message: OutgoingMessage, payload: bytes, outcome: SendOutcome) -> None:
        batching = self._parameters.batching
        assert batching is not None
        batch = self._batches.get(index)
        if batch is not None and not batch.fits(message, payload):
            await self._send_batch(index)
            batch = None
        if batch is None:
            batch = self._batches[index] = MessageBatch(batching.messages)
        batch.add(message, payload, self._producers[index].next_sequence_id(), outcome)
        if batch.is_full:
            await self._send_batch(index)
        elif self._batch_timer is None:
            loop = asyncio.get_running_loop()
            self._batch_timer = loop.call_later(batching.seconds, self._flush)

    def _flush(self) -> None:
        self._batch_timer = None
        spawn("WebSocket batches", self._send_batches())

    async def _send_batches(self) -> None:
        async with self._order:
            for index in list(self._batches):
                await self._send_batch(index)

    async def _send_batch(self, index: int) -> None:
        batch = self._batches.pop(index, None)
        if batch is None or self.connection.is_closed():
            return
        metadata, body, outcomes = batch.entry()
        await self._send(index, metadata, body, outcomes, batched=True)

    # Results

    def _answer(self, result: bytes) -> None:
        """Send a result, in order, as soon as the client reads."""
        self._results.append(result)
        if len(self._results) >= RESULTS_MAX:
            self._unread.clear()
        if not self._sending:
            self._sending = True
            spawn("WebSocket results", self._send_results())

    async def _send_results(self) -> None:
        try:
            while self._results:
                await self.send(self._results.popleft())
        except ConnectionError:
            self._results.clear()
        finally:
            self._sending = False
            self._unread.set()

    def close(self) -> None:
        """See SocketSession."""
        if self._batch_timer is not None:
            self._batch_timer.cancel()
        for each in self._producers.values():
            each.close()
        super().close()
