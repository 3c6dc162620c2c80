"""A consumer's or reader's WebSocket: messages out, acknowledgements and commands in."""

import asyncio
import logging
import time
from collections import deque
from functools import partial
from typing import Final

from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import BadRequest, InvalidTopicName, PulsarBoxError
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.chunks import Place
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandGetTopicsOfNamespace, MessageIdData
from pulsarbox.protocol.topics_pattern import PatternError, TopicsPattern, topics_pattern
from pulsarbox.protocol.violations import ProtocolError
from pulsarbox.server.one_shot_thread import run_in_thread
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.server.tasks import spawn
from pulsarbox.server.websocket.broker_connection import INTERNAL
from pulsarbox.server.websocket.dead_letters import DeadLetters
from pulsarbox.server.websocket.endpoint import READER, SocketEndpoint
from pulsarbox.server.websocket.entry_messages import (
    IN_LOOP_MAX,
    SocketMessage,
    UnreadableEntry,
    messages_of,
    uncompressed,
)
from pulsarbox.server.websocket.message_json import (
    RECEIVED_END,
    encode_id,
    encode_payload,
    end_of_topic,
    parse_object,
    received_head,
)
from pulsarbox.server.websocket.parameters import ConsumerParameters, message_id
from pulsarbox.server.websocket.redelivery_schedule import RedeliverySchedule
from pulsarbox.server.websocket.session import SocketSession, pause
from pulsarbox.server.websocket.socket_consumer import ONE_ACTIVE, Arrival, SocketConsumer
from pulsarbox.server.websocket.socket_producer import SendOutcome

REFRESH_SECONDS: Final = 60.0
"""How often partitions and topics of a pattern are looked up: as Java clients do."""
TURN_BYTES: Final = 64 << 10
"""Bytes that are sent in one turn of the loop."""
TURN_MESSAGES: Final = 32
TOPICS_IN_TURN: Final = 500
"""Topics that a pattern is compared with in one turn of the loop."""
READ_ENTRIES: Final = 500
"""Entries after which a reader acknowledges."""
SOURCES_MAX: Final = 100_000
"""Maximum number of remembered messages of several topics, whose IDs do not name the topic."""

_log = logging.getLogger(__name__)

Origin = tuple[SocketConsumer, Place]


class InvalidCommand(Exception):
    """A command of the client that closes the socket."""


class ConsumerSession(SocketSession):
    """Delivers the messages of one or several topics."""

    def __init__(
        self,
        shell: Shell,
        address: str,
        principal: Principal | None,
        endpoint: SocketEndpoint,
        parameters: ConsumerParameters,
        *,
        secure: bool,
    ) -> None:
        """Raises BadRequest, before a connection exists, for an invalid pattern or dead letter topic."""
        self._endpoint = endpoint
        self._parameters = parameters
        self._pattern = _pattern(endpoint.pattern) if endpoint.pattern else None
        letters = _dead_letter_topic(parameters.dead_letter_topic) if parameters.max_redeliveries else None
        super().__init__(shell, address, principal, secure=secure)
        self._consumers: dict[TopicName, SocketConsumer] = {}
        self._arrivals: deque[Arrival] = deque()
        self._changed = asyncio.Event()
        """Set when the pump may have something to do."""
        self._room = 0 if parameters.pull else max(1, parameters.queue)
        """Messages that the client may receive before it sends another acknowledgement or permit."""
        self._unacked: RedeliverySchedule[Origin] = RedeliverySchedule(parameters.ack_seconds)
        self._nacked: RedeliverySchedule[Origin] = RedeliverySchedule(parameters.nack_seconds)
        self._redelivery_timer: asyncio.TimerHandle | None = None
        self._refresh_timer: asyncio.TimerHandle | None = None
        self._pump: asyncio.Task[None] | None = None
        self._sources: dict[str, SocketConsumer] = {}
        self._read: dict[SocketConsumer, Place] = {}
        """The last entries that a reader has delivered and not acknowledged yet."""
        self._entries_read = 0
        self._letters: DeadLetters | None = None
        if letters is not None:
            self._letters = DeadLetters(self.connection, letters, endpoint.subscription, self.partitions)
        self._sent_in_turn = 0

    # Opening

    async def open(self) -> None:
        """See SocketSession."""
        await self._subscribe_to(await self._topics())
        if self._endpoint.pattern or len(self._consumers) != 1 or next(iter(self._consumers)).partition_index >= 0:
            self._refresh_later()

    async def _topics(self) -> list[TopicName]:
        """Return all topics and partitions that the consumer should have."""
        names = self._endpoint.topics if self._pattern is None else await self._matching(self._pattern)
        found: list[TopicName] = []
        for name in names:
            found += await self.partitions(name) if name.partition_index < 0 else [name]
        return found

    async def _matching(self, pattern: TopicsPattern) -> list[TopicName]:
        mode = CommandGetTopicsOfNamespace.Mode.Name(
            CommandGetTopicsOfNamespace.NON_PERSISTENT
            if self._endpoint.pattern.startswith("non-persistent://")
            else CommandGetTopicsOfNamespace.PERSISTENT
        )
        command = CommandGetTopicsOfNamespace(
            request_id=self.connection.number(),
            namespace=_namespace_of(self._endpoint.pattern),
            mode=mode,
            topics_pattern=pattern.text,
        )
        answer = await self.connection.ask(command)
        found: dict[TopicName, None] = {}
        for at in range(0, len(answer.topics), TOPICS_IN_TURN):
            page = list(answer.topics[at : at + TOPICS_IN_TURN])
            found.update((parse_topic(each).base, None) for each in (page if answer.filtered else pattern.of(page)))
            await pause()
        return list(found)

    async def _subscribe_to(self, topics: list[TopicName]) -> None:
        for topic in topics:
            if topic not in self._consumers:
                consumer = SocketConsumer(
                    self.connection,
                    topic,
                    self._endpoint.subscription,
                    self._parameters,
                    self._arrived,
                    partial(self.end, INTERNAL),
                )
                await consumer.open()
                self._consumers[topic] = consumer

    def _refresh_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._refresh_timer = loop.call_later(REFRESH_SECONDS, lambda: spawn("WebSocket topics", self._refresh()))

    async def _refresh(self) -> None:
        """Subscribe to topics and partitions that were created meanwhile."""
        if self.connection.is_closed():
            return
        try:
            await self._subscribe_to(await self._topics())
        except PulsarBoxError as error:
            if self.connection.is_closed():
                return
            _log.debug("the topics of the WebSocket of %s cannot be looked up: %s", self.address, error)
        self._refresh_later()

    def started(self) -> None:
        """See SocketSession."""
        self._pump = spawn("WebSocket messages", self._deliver_all())

    # Delivery

    def _arrived(self, arrival: Arrival) -> None:
        self._arrivals.append(arrival)
        self._changed.set()

    async def _deliver_all(self) -> None:
        """Deliver messages until the socket is closed."""
        try:
            while not self.connection.is_closed():
                if not self._arrivals:
                    self._acknowledge_read()
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                arrival = self._arrivals.popleft()
                try:
                    await self._deliver_entry(arrival)
                finally:
                    self.connection.gave(len(arrival.payload))
        except ConnectionError:
            self.connection.end()
        except (PulsarBoxError, ProtocolError, UnreadableEntry) as error:
            self.end(INTERNAL, str(error))
        except Exception:
            _log.exception("the WebSocket of %s cannot deliver a message", self.address)
            self.end(INTERNAL, "Internal error")

    async def _deliver_entry(self, arrival: Arrival) -> None:
        consumer, command = arrival.consumer, arrival.command
        if consumer.is_outdated(arrival):
            return
        where = command.message_id
        place = (where.ledgerId, where.entryId)
        parsed = parse_entry(arrival.payload)
        metadata, body = parsed.metadata, arrival.payload[parsed.body_offset :]
        permits = bits_of(command.ack_set).bit_count() if command.ack_set else metadata.num_messages_in_batch
        if metadata.encryption_keys and self._parameters.crypto != "CONSUME":
            if self._parameters.crypto == "DISCARD":
                consumer.acknowledge_entries([place])
            consumer.used(permits)
            return
        if metadata.num_chunks_from_msg > 1 and not metadata.encryption_keys:
            joined = consumer.join(place, metadata, body)
            if joined is None:
                consumer.used(permits)
                return
            body = joined
        if not metadata.encryption_keys:
            body = await uncompressed(metadata, body)
        for message in messages_of(command, metadata, body, consumer.partition):
            if consumer.generation != arrival.generation:
                break
            if message is None:
                await pause()
            else:
                await self._deliver(consumer, message, place)
        else:
            if self._endpoint.kind == READER:
                self._note_read(consumer, place)
        consumer.used(permits)

    async def _deliver(self, consumer: SocketConsumer, message: SocketMessage, place: Place) -> None:
        if self._endpoint.kind == READER and consumer.is_before_start(message.id):
            return
        most = self._parameters.max_redeliveries
        if self._letters is not None and message.redeliveries > most:
            await self._bury(self._letters, consumer, message, place)
            return
        generation = consumer.generation
        while self._room <= 0 and not self.connection.is_closed():
            self._changed.clear()
            await self._changed.wait()
            if consumer.generation != generation:
                return
        self._room -= 1
        if len(self._consumers) > 1 or self._endpoint.pattern:
            self._remember(encode_id(message.id), consumer)
        await self._send(await _head(message), message.payload)
        if self._endpoint.kind == READER:
            consumer.read_up_to(message.id)
        elif self._parameters.ack_seconds:
            self._unacked.add((consumer, place), time.monotonic())
            self._redeliver_later()

    async def _send(self, head: bytes, payload: bytes) -> None:
        parts = [head]
        parts.extend([piece async for piece in encode_payload(payload, pause)])
        parts.append(RECEIVED_END)
        await self.send(b"".join(parts))
        self._sent_in_turn += 1 + len(payload) * TURN_MESSAGES // TURN_BYTES
        if self._sent_in_turn >= TURN_MESSAGES:
            self._sent_in_turn = 0
            await pause()

    def _remember(self, text: str, consumer: SocketConsumer) -> None:
        self._sources[text] = consumer
        if len(self._sources) > SOURCES_MAX:
            del self._sources[next(iter(self._sources))]

    def _note_read(self, consumer: SocketConsumer, place: Place) -> None:
        self._read[consumer] = place
        self._entries_read += 1
        if self._entries_read >= READ_ENTRIES:
            self._acknowledge_read()

    def _acknowledge_read(self) -> None:
        """Acknowledge what a reader has delivered."""
        read, self._read = self._read, {}
        self._entries_read = 0
        for consumer, place in read.items():
            consumer.acknowledge_up_to(place)

    # Dead letters

    async def _bury(self, letters: DeadLetters, consumer: SocketConsumer, message: SocketMessage, place: Place) -> None:
        """Move a message to the dead letter topic; if that fails, redeliver it later."""

        def failed(reason: str) -> None:
            _log.warning("a message of %s cannot be moved to its dead letter topic: %s", consumer.topic, reason)
            self._nacked.add((consumer, place), time.monotonic())
            self._redeliver_later()

        outcome = SendOutcome(lambda stored: self._buried(consumer, message.id), failed)
        try:
            await letters.publish(message, consumer.topic.base, outcome)
        except (PulsarBoxError, TimeoutError) as error:
            failed(str(error))

    def _buried(self, consumer: SocketConsumer, where: MessageIdData) -> None:
        consumer.acknowledge(where)

    # Commands

    async def handle(self, text: str) -> None:
        """Process a command of the client."""
        try:
            command = parse_object(text)
            kind = command.get("type")
            if kind == "isEndOfTopic":
                await self.send(end_of_topic(all(each.reached_end for each in self._consumers.values())))
            elif self._endpoint.kind == READER:
                self._may_deliver(1)
            elif kind == "permit":
                self._permit(command.get("permitMessages"))
            elif kind == "unsubscribe":
                for each in self._consumers.values():
                    await each.unsubscribe()
            else:
                self._settle(command.get("messageId"), negative=kind == "negativeAcknowledge")
        except (ValueError, InvalidCommand) as error:
            self.end(INTERNAL, str(error))

    def _may_deliver(self, messages: int) -> None:
        if not self._parameters.pull:
            self._room = min(self._room + messages, max(1, self._parameters.queue))
        self._changed.set()

    def _permit(self, messages: object) -> None:
        if isinstance(messages, str) and messages.isascii() and messages.isdigit() and len(messages) < 10:
            messages = int(messages)
        if not isinstance(messages, int) or isinstance(messages, bool):
            raise InvalidCommand("permit requires a number in permitMessages")
        if self._parameters.pull and messages > 0:
            self._room = min(self._room + messages, 2**31)
            self._changed.set()

    def _settle(self, text: object, *, negative: bool) -> None:
        """Acknowledge a message, or have it redelivered later."""
        if not isinstance(text, str):
            raise InvalidCommand("expected messageId, the ID of a message")
        where = message_id(text)
        consumer = self._source(encode_id(where), where)
        if consumer is not None:
            place = (where.ledgerId, where.entryId)
            if negative:
                self._unacked.discard((consumer, place))
                self._nacked.add((consumer, place), time.monotonic())
                self._redeliver_later()
            elif consumer.acknowledge(where):
                self._unacked.discard((consumer, place))
                self._nacked.discard((consumer, place))
        self._may_deliver(1)

    def _source(self, text: str, where: MessageIdData) -> SocketConsumer | None:
        """Return the consumer of a message; None if it is unknown."""
        if len(self._consumers) == 1:
            return next(iter(self._consumers.values()))
        found = self._sources.pop(text, None)
        if found is None and len(self._endpoint.topics) == 1 and where.HasField("partition"):
            return self._consumers.get(self._endpoint.topics[0].partition(where.partition))
        return found

    # Redelivery

    def _redeliver_later(self) -> None:
        if self._redelivery_timer is None:
            due = [each for each in (self._unacked.next_due, self._nacked.next_due) if each is not None]
            if due and not self.connection.is_closed():
                seconds = max(0.0, min(due) - time.monotonic())
                self._redelivery_timer = asyncio.get_running_loop().call_later(seconds, self._redeliver)

    def _redeliver(self) -> None:
        self._redelivery_timer = None
        now = time.monotonic()
        places: dict[SocketConsumer, list[Place]] = {}
        for consumer, place in self._unacked.take_due(now) + self._nacked.take_due(now):
            places.setdefault(consumer, []).append(place)
        for consumer, found in places.items():
            consumer.redeliver(found)
            if self._parameters.type in ONE_ACTIVE:  # all of them are redelivered
                self._unacked.clear()
        self._changed.set()
        self._redeliver_later()

    def close(self) -> None:
        """See SocketSession."""
        for timer in (self._redelivery_timer, self._refresh_timer):
            if timer is not None:
                timer.cancel()
        if self._pump is not None:
            self._pump.cancel()
        self._acknowledge_read()
        super().close()


async def _head(message: SocketMessage) -> bytes:
    """Return the JSON of a message up to its payload; of much metadata, from a thread."""
    if message.own.ByteSize() <= IN_LOOP_MAX:
        return received_head(message.about())
    return await run_in_thread("metadata", lambda: received_head(message.about()))


def _dead_letter_topic(text: str) -> TopicName:
    try:
        return parse_topic(text)
    except InvalidTopicName as error:
        raise BadRequest(f"Invalid query params: deadLetterTopic: {error}") from None


def _pattern(text: str) -> TopicsPattern:
    """Compile a pattern for full topic names, or for names in public/default. Raises BadRequest."""
    try:
        return topics_pattern(text if "/" in text else f"public/default/{text}")
    except PatternError as error:
        raise BadRequest(f"Invalid query params: topicsPattern: {error}") from None


def _namespace_of(pattern: str) -> str:
    """Return ``tenant/namespace`` of a pattern for topic names."""
    parts = (pattern.partition("://")[2] or pattern).split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else "public/default"
