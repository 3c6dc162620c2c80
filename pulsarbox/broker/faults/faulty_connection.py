"""Fault injection in front of a connection and behind it.

Used only with ``faultInjectionEnabled``; the real connection and outbox are unaware of it. A delayed command holds back
later ones of the same producer or consumer, and so does a delayed answer: messages are reordered only as in a slow
network. The core still executes commands in the order it receives them, so no fault can release an answer before its
data is durable.
"""

import logging
from collections import deque
from typing import TYPE_CHECKING

from pulsarbox.broker.connection.cnx import ConnectionOrigin, ConnectionState, ServerCnx
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.faults.rule import ANSWER, Occasion, Rule
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.frames import Frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, ServerError
from pulsarbox.protocol.violations import ProtocolError

if TYPE_CHECKING:
    from pulsarbox.broker.broker import Broker

log = logging.getLogger(__name__)

Lane = tuple[str, int]
"""A sequence that preserves order: the commands or answers of one producer or consumer."""
Key = tuple[str, int, int]
"""Identifies an answer: of a message, by producer ID and sequence ID; of a request, by request ID."""

_NO_REQUEST = 0xFFFFFFFFFFFFFFFF
_PREFIX = 8
"""Bytes of a frame before its command: two lengths."""
_FAILED = {
    BaseCommand.LOOKUP: replies.lookup_failed,
    BaseCommand.PARTITIONED_METADATA: replies.partition_metadata_failed,
    BaseCommand.CONSUMER_STATS: replies.consumer_stats_failed,
    BaseCommand.GET_SCHEMA: replies.get_schema_failed,
    BaseCommand.GET_OR_CREATE_SCHEMA: replies.get_or_create_schema_failed,
}
"""Requests with their own form of error response."""


class FaultyOutbox(Outbox):
    """An outbox that passes every answer to its connection first."""

    __slots__ = ("cnx",)

    def __init__(self, waiting: list[Outbox], limit: int) -> None:
        super().__init__(waiting, limit)
        self.cnx: FaultyCnx | None = None

    def send(self, data: bytes) -> None:
        """See Outbox.send."""
        if self.cnx is None or self.cnx.passes_answer(data):
            super().send(data)

    def pass_on(self, data: bytes) -> None:
        """Send without applying faults."""
        super().send(data)


class FaultyCnx(ServerCnx):
    """A connection that applies the rules to every command."""

    def __init__(self, broker: "Broker", outbox: Outbox, origin: ConnectionOrigin, now: Now) -> None:
        super().__init__(broker, outbox, origin, now)
        faults = broker.faults
        assert isinstance(outbox, FaultyOutbox) and faults is not None
        outbox.cnx = self
        self._out = outbox
        self._faults = faults
        self._held_in: dict[Lane, deque[Frame]] = {}
        self._held_out: dict[Lane, deque[bytes]] = {}
        self._awaited: dict[Key, tuple[Rule, BaseCommand, float]] = {}
        """Answers with a pending fault, and when their commands arrived."""

    # Inbound

    def receive(self, frame: Frame, now: Now) -> None:
        """See ServerCnx.receive."""
        if not self._faults.rules and not self._held_in:
            super().receive(frame, now)
            return
        try:
            command = parse_command(frame[0])
        except ProtocolError:
            super().receive(frame, now)
            return
        held = self._held_in.get(_lane_in(command) or ("", 0))
        if held is not None:
            self._heard = True
            held.append(frame)
        else:
            self._take(command, frame, now)

    def _take(self, command: BaseCommand, frame: Frame, now: Now) -> None:
        rule = self._faults.decide(self._occasion(command)) if command.type in _KNOWN else None
        if rule is None:
            super().receive(frame, now)
        elif rule.at == ANSWER:
            key = _key_of(command)
            if key is not None:
                self._awaited[key] = rule, command, now.monotonic
            super().receive(frame, now)
        elif rule.action == "delay":
            self._heard = True
            self._delay(command, frame, rule, now)
        elif rule.action == "disconnect":
            self._disconnect(command)
        else:
            self._heard = True
            failure = _error_answer(command, rule) if rule.action == "error" else None
            if failure is not None:
                self._out.pass_on(failure)

    def _delay(self, command: BaseCommand, frame: Frame, rule: Rule, now: Now) -> None:
        lane = _lane_in(command)
        held: deque[Frame] = deque()
        if lane is not None:
            self._held_in[lane] = held

        def release(when: Now) -> None:
            if lane is not None:
                del self._held_in[lane]
            if self.state is ConnectionState.CLOSED:
                return
            super(FaultyCnx, self).receive(frame, when)
            while held:
                following = held.popleft()
                again = self._held_in.get(lane) if lane is not None else None
                if again is not None:  # a waiting command is delayed in turn
                    again.append(following)
                else:
                    self._take(parse_command(following[0]), following, when)

        self._timers.at(now.monotonic + rule.delay / 1000, release)

    def _occasion(self, command: BaseCommand) -> Occasion:
        spec = COMMANDS[command.type]
        part = getattr(command, spec.field)
        topic = producer_name = subscription = consumer_name = ""
        if command.type in _OF_PRODUCER:
            producer = self.producers.get(part.producer_id)
            if producer is not None:
                topic, producer_name = str(producer.topic.name), producer.name
        elif command.type in _OF_CONSUMER:
            consumer = self.consumers.get(part.consumer_id)
            if consumer is not None:
                subscription, consumer_name = consumer.subscription.name, consumer.name
                topic = str(consumer.subscription.topic_name)
        else:
            topic = _full(getattr(part, "topic", ""))
            if command.type == BaseCommand.PRODUCER:
                producer_name = part.producer_name
            elif command.type == BaseCommand.SUBSCRIBE:
                subscription, consumer_name = part.subscription, part.consumer_name
        client = self.client_version or getattr(part, "client_version", "")
        return Occasion(
            spec.name.lower(), topic, f"{client}\n{self.address}", producer_name, subscription, consumer_name
        )

    # Outbound

    def passes_answer(self, data: bytes) -> bool:
        """Return whether to send an answer unchanged now."""
        if not self._awaited and not self._held_out:
            return True
        command = parse_command(data[_PREFIX : _PREFIX + int.from_bytes(data[4:_PREFIX], "big")])
        lane = _lane_out(command)
        held = self._held_out.get(lane) if lane is not None else None
        if held is not None:
            held.append(data)
            return False
        return self._pass_out(command, data, lane)

    def _pass_out(self, command: BaseCommand, data: bytes, lane: Lane | None) -> bool:
        key = _key_of_answer(command)
        awaited = self._awaited.pop(key, None) if key is not None else None
        if awaited is None:
            return True
        rule, asked, since = awaited
        if rule.action == "duplicate":
            self._out.pass_on(data)
            return True
        if rule.action == "error":
            self._out.pass_on(_error_answer(asked, rule) or data)
        elif rule.action == "disconnect":
            self._disconnect(asked)
        elif rule.action == "delay":
            self._delay_answer(data, lane, since + rule.delay / 1000)
        return False

    def _delay_answer(self, data: bytes, lane: Lane | None, until: float) -> None:
        held: deque[bytes] = deque()
        if lane is not None:
            self._held_out[lane] = held

        def release(when: Now) -> None:
            if lane is not None:
                del self._held_out[lane]
            if self.state is ConnectionState.CLOSED:
                return
            self._out.pass_on(data)
            while held:
                self._out.send(held.popleft())  # may be held again

        self._timers.at(until, release)

    def _disconnect(self, command: BaseCommand) -> None:
        self.abort(f"a fault was injected at {COMMANDS[command.type].name}")


_OF_PRODUCER = frozenset((BaseCommand.SEND, BaseCommand.CLOSE_PRODUCER))
_OF_CONSUMER = frozenset(
    (
        BaseCommand.ACK,
        BaseCommand.FLOW,
        BaseCommand.UNSUBSCRIBE,
        BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        BaseCommand.SEEK,
        BaseCommand.CLOSE_CONSUMER,
        BaseCommand.GET_LAST_MESSAGE_ID,
        BaseCommand.CONSUMER_STATS,
    )
)
_KNOWN = frozenset(COMMANDS) - {BaseCommand.PING, BaseCommand.PONG}


def _full(topic: str) -> str:
    try:
        return str(parse_topic(topic)) if topic else ""
    except PulsarBoxError:
        return topic


def _lane_in(command: BaseCommand) -> Lane | None:
    part = getattr(command, COMMANDS[command.type].field)
    if command.type in _OF_PRODUCER or command.type == BaseCommand.PRODUCER:
        return "producer", part.producer_id
    if command.type in _OF_CONSUMER or command.type == BaseCommand.SUBSCRIBE:
        return "consumer", part.consumer_id
    return None


def _lane_out(command: BaseCommand) -> Lane | None:
    part = getattr(command, COMMANDS[command.type].field)
    if command.type in (BaseCommand.SEND_RECEIPT, BaseCommand.SEND_ERROR, BaseCommand.CLOSE_PRODUCER):
        return "producer", part.producer_id
    return None


def _key_of(command: BaseCommand) -> Key | None:
    """Return the key of the command's answer; None if it has none."""
    part = getattr(command, COMMANDS[command.type].field)
    if command.type == BaseCommand.SEND:
        return "send", part.producer_id, part.sequence_id
    if command.type == BaseCommand.CONNECT:
        return "connect", 0, 0
    fields = part.DESCRIPTOR.fields_by_name
    if "request_id" not in fields or (command.type == BaseCommand.ACK and not part.HasField("request_id")):
        return None
    return "request", part.request_id, 0


def _key_of_answer(command: BaseCommand) -> Key | None:
    part = getattr(command, COMMANDS[command.type].field)
    if command.type in (BaseCommand.SEND_RECEIPT, BaseCommand.SEND_ERROR):
        return "send", part.producer_id, part.sequence_id
    if command.type == BaseCommand.CONNECTED:
        return "connect", 0, 0
    request_id = getattr(part, "request_id", None)
    return None if request_id is None else ("request", request_id, 0)


def _error_answer(command: BaseCommand, rule: Rule) -> bytes | None:
    """Return the error in the command's own form; None if it has no error response."""
    part = getattr(command, COMMANDS[command.type].field)
    code, text = ServerError.Value(rule.error), "A fault was injected"
    if command.type == BaseCommand.SEND:
        return replies.send_error(part.producer_id, part.sequence_id, code, text)
    if command.type == BaseCommand.CONNECT:
        return replies.error(_NO_REQUEST, code, text)
    if _key_of(command) is None:
        return None
    if command.type == BaseCommand.ACK:
        return replies.ack_response(part.consumer_id, part.request_id, code, text)
    failed = _FAILED.get(command.type)
    return failed(part.request_id, code, text) if failed else replies.error(part.request_id, code, text)
