"""The broker's side of a client connection: its state, producers and consumers, and the dispatch of its commands.

Frames are the input; answers go to the outbox. A protocol violation closes the connection, with the reason in the log.
A request that cannot be served is answered with Pulsar's error code.
"""

import logging
from collections import OrderedDict
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsarbox.broker.backlog.refused_producers import RefusedProducer
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.connection.pending_opening import Key, Kind, PendingOpening
from pulsarbox.broker.connection.served_connection import Answered, UnreadReason
from pulsarbox.broker.limits.publish_throttle import UNREAD_FACTOR
from pulsarbox.broker.security.command_rules import Needs
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.subscription.consumer import BodyOf, Consumer
from pulsarbox.broker.timers import Timer
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.clock import Now
from pulsarbox.errors import AuthorizationError, PersistenceError, PulsarBoxError
from pulsarbox.protocol import replies
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.features import client_error_code
from pulsarbox.protocol.frames import Frame
from pulsarbox.protocol.metadata import BROKER_ENTRY_MAGIC, with_broker_entry_metadata
from pulsarbox.protocol.PulsarApi_pb2 import BrokerEntryMetadata, CommandSend
from pulsarbox.protocol.send_decoder import parse_send
from pulsarbox.protocol.violations import ChecksumMismatch, MalformedCommand, ProtocolError
from pulsarbox.storage.record import Entry

if TYPE_CHECKING:
    from pulsarbox.broker.broker import Broker
    from pulsarbox.broker.connection.command_row import CommandRow
    from pulsarbox.broker.security.credential_expiry import CredentialExpiry
    from pulsarbox.broker.topic.list_watchers import TopicList

log = logging.getLogger(__name__)

MAX_WAITING_SCHEMAS = 1 << 20
"""Bytes of schemas waiting for comparison; beyond this, the connection is not read."""
MAX_RECENTLY_CLOSED = 1000
"""Closed producers whose late messages are ignored instead of closing the connection."""
SEND_COMMAND_START = b"\x08\x06"
"""BaseCommand.type = SEND, the first field in every client's encoding."""


class ConnectionState(Enum):
    """Lifecycle of a connection."""

    START = "start"
    AUTHENTICATING = "authenticating"
    CONNECTED = "connected"
    CLOSED = "closed"


CONNECTED = ConnectionState.CONNECTED
"""Module constant, because the Enum lookup costs more than the comparison."""


class ConnectionOrigin(NamedTuple):
    """How a client has reached the box."""

    number: int
    """Sequence number of the connection since the start."""
    address: str
    """The client's ``host:port``."""
    reached: str
    """Local ``host:port`` to which the client has connected; empty if unknown."""
    listener: str
    """Listener to which that port is assigned (bindAddresses); empty for the shared port."""
    secure: bool
    """Whether the connection uses TLS."""
    certificate: str
    """Common name of the client certificate (mutual TLS); empty without one."""


class ServerCnx:
    """The broker's side of one connection."""

    refused: RefusedProducer | None = None
    """The last producer of this connection that a backlog quota has refused or queued."""

    def __init__(self, broker: "Broker", outbox: Outbox, origin: ConnectionOrigin, now: Now) -> None:
        self.broker = broker
        self.outbox = outbox
        self.number, self.address, self.reached, self.listener, self.secure, self.certificate = origin
        self.principal: Principal | None = None
        """Authenticated principal; None before authentication, or if it is disabled."""
        self.proof: CredentialExpiry | None = None
        """Credentials in use and their expiry; None if they cannot expire."""
        self.state = ConnectionState.START
        self.greeted = False
        """Whether CONNECT was accepted."""
        self.client_version = ""
        self.protocol_version = 0
        self.connected_since = now.wall
        self.producers: dict[int, AttachedProducer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.draining: dict[int, AttachedProducer] = {}
        """Producers that are closed, or have lost their topic, and have messages that are not durable yet."""
        self.recently_closed: OrderedDict[int, None] = OrderedDict()
        self.opening: dict[Key, PendingOpening] = {}
        """Pending PRODUCER and SUBSCRIBE commands by kind ("producer", "consumer") and id, oldest first."""
        self.watched: dict[int, TopicList] = {}
        """Watched topic lists by watcher ID."""
        self.pending_sends = 0
        """Entries of all producers that are not durable yet."""
        self.held_bytes = 0
        """Bytes of durable entries whose receipts publish rates hold back."""
        self.unread: UnreadReason | None = None
        """Set while the connection is not read."""
        self.body_of: BodyOf | None = None
        """Adds broker entry metadata for clients that support it."""
        self._heard = True
        """Whether a frame was received since the last PING."""
        self._table = broker.command_table
        self._timers = broker.timers
        self._events = broker.events
        self._limits = broker.limits
        self._computations = broker.computations
        self._max_pending = broker.settings.maxPendingPublishRequestsPerConnection
        self._interval = broker.settings.keepAliveIntervalSeconds
        self._timer: Timer | None = None
        self._check: Timer | None = None
        """Ends a liveness check."""
        self._pending_requests: list[Answered] = []
        if self._interval:
            self._timer = self._timers.at(now.monotonic + self._interval, self._keep_alive)

    # Input

    def receive(self, frame: Frame, now: Now) -> None:
        """Process a frame. Never raises for anything that a client can send."""
        self._heard = True
        data, payload = frame
        if data[:2] == SEND_COMMAND_START and self.state is CONNECTED:
            try:
                send = parse_send(data)
            except ProtocolError as error:
                self.abort(str(error))
                return
            if send is not None:
                self._send(send, payload, now)
            return
        if self.state is ConnectionState.CLOSED:
            return
        try:
            command = parse_command(data)
        except ProtocolError as error:
            self.abort(str(error))
            return
        row = self._table.get(command.type)
        if row is None or self.state.value not in row.states:
            self.abort(f"{COMMANDS[command.type].name} is not accepted in state {self.state.value}")
            return
        body = getattr(command, COMMANDS[command.type].field)
        if row.rule is not None and not self._may(row, body, now):
            return
        try:
            row.handler(self, body, now)
        except ProtocolError as error:
            self.abort(str(error))
        except PulsarBoxError as error:
            self._refuse(body, error)

    def _may(self, row: "CommandRow", body: Any, now: Now) -> bool:
        """Return whether the client may send a command. If not, answer with the error."""
        assert row.rule is not None
        try:
            row.rule(self.broker.authorization, self.principal, body)
        except PulsarBoxError as error:
            text = str(error)
            if isinstance(error, AuthorizationError):
                # Clients compare Pulsar's text for a rejected lookup; the log has the reason.
                reason = "" if row.permission is Needs.LOOKUP else f": {text}"
                text = f"Client is not authorized to {row.words}{reason}"
            self.broker.refusals.log(self.principal, self.address, COMMANDS[row.type].name, str(error), now)
            self.outbox.send(row.refusal(body.request_id, self.code_of(error), text))
            return False
        return True

    def _send(self, send: CommandSend, payload: bytes, now: Now) -> None:
        producer = self.producers.get(send.producer_id)
        if producer is None:
            if send.producer_id in self.draining:
                self._refuse_send(send, PersistenceError("Producer is closed"))
            elif send.producer_id not in self.recently_closed:
                self.abort(f"SEND of producer {send.producer_id}, which is not on this connection")
            return
        if producer.suspended:
            return  # the client must resend the message
        try:
            producer.topic.publish(producer, send, payload, now)
        except ChecksumMismatch as error:
            log.warning("producer %s on %s: %s", producer.name, producer.topic.name, error)
            self._refuse_send(send, error)
        except ProtocolError as error:
            self.abort(f"producer {producer.name} on {producer.topic.name}: {error}")
        except PulsarBoxError as error:
            self._refuse_send(send, error)

    def _refuse_send(self, send: CommandSend, error: PulsarBoxError) -> None:
        self.outbox.send(replies.send_error(send.producer_id, send.sequence_id, error.server_error, str(error)))

    def _refuse(self, body: Any, error: PulsarBoxError) -> None:
        request_id = getattr(body, "request_id", None)
        if request_id is None:
            log.warning("%s from %s refused: %s", type(body).__name__, self.address, error)
        else:
            self.outbox.send(replies.error(request_id, self.code_of(error), str(error)))

    def code_of(self, error: PulsarBoxError) -> int:
        """Return the error code that this client version understands."""
        return client_error_code(error.server_error, error.in_vain, self.client_version)

    @property
    def held_room(self) -> int:
        """Remaining bytes of entries with held-back receipts; negative if over the limit."""
        return self._limits.max_held_bytes - self.held_bytes

    @property
    def overdrawn(self) -> bool:
        """Whether to stop reading: too many messages wait for the disk or publish rates, or schemas for comparison."""
        return self.pending_sends > self._max_pending or self._holds_too_much or self._compares_too_much

    @property
    def _holds_too_much(self) -> bool:
        """Whether publish rates hold back too many receipts; once exceeded, until a quarter of the limit is free."""
        room = self._limits.max_held_bytes
        least = room // 4 if self.unread is not None else 0
        return self.held_bytes > UNREAD_FACTOR * room - least

    @property
    def _compares_too_much(self) -> bool:
        """Whether too many schemas of the client wait for comparison."""
        return self._computations.held(self) > MAX_WAITING_SCHEMAS

    def reading_stops(self, now: Now) -> None:
        """Note that the shell stops reading until ``reading_resumes``."""
        if self.unread is not None:
            return
        if self._holds_too_much:
            text = f"{self.held_bytes:,} bytes wait for publish rates"
            self._events.report("connection-unread", self.address, text, now, bytes=self.held_bytes)
        elif self.pending_sends > self._max_pending:
            text = f"{self.pending_sends:,} messages wait for the disk"
        elif self._compares_too_much:
            text = "too many schemas wait to be compared"
        else:
            text = "the box waits for the disk"
        self.unread = UnreadReason(now.wall, text)

    def reading_resumes(self) -> None:
        """Note that the shell reads again."""
        self.unread = None
        self._heard = True  # frames sent meanwhile are unread

    def writable(self, now: Now) -> None:
        """Resume dispatch after the outbox has room again."""
        for consumer in list(self.consumers.values()):
            consumer.subscription.flow(consumer, 0, now)

    def broken(self, error: ProtocolError) -> None:
        """Close the connection because its stream has no valid frame."""
        self.abort(str(error))

    def closed(self, now: Now) -> None:
        """Release everything of a connection that either side has closed."""
        if self not in self.broker.cnxs:
            return
        self.state = ConnectionState.CLOSED
        self._computations.drop(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._check is not None:
            self._check.cancel()
            self._check = None
        if self.proof is not None:
            self.proof.end()
            self.proof = None
        consumers = list(self.consumers.values())
        self.consumers.clear()
        for consumer in consumers:
            consumer.closed = True  # all first: none receives, and counts again, messages of another
        # Pending commands first, the newest first, so that none replaces a producer or consumer closed below.
        for opening in reversed(list(self.opening.values())):
            opening.abandon(now)
        producers = list(self.producers.values())
        self.producers.clear()
        self.draining.clear()
        for producer in producers:
            producer.closed = True
            producer.topic.remove_producer(producer, now)
        for consumer in consumers:
            consumer.subscription.remove_consumer(consumer, now, lost=True)
        for watcher_id in list(self.watched):
            self.broker.topics.lists.leave(self, watcher_id)
        self.broker.cnxs.pop(self, None)
        self._report_lost(now)
        self._report_alive(False, now)

    def _report_lost(self, now: Now) -> None:
        reason = self.outbox.close_reason
        if reason is not None:
            self._report("client-refused", now, f": {reason}")
        elif self.greeted:
            self._report("client-disconnected", now)

    def _report(self, kind: str, now: Now, more: str = "") -> None:
        """Record an event; the connections of one host share a subject, so that storms are summarized."""
        who = f"{self.principal} with {self.client_version}" if self.principal else self.client_version or "a client"
        host = self.address.rpartition(":")[0]
        self._events.report(kind, host, f"{who} from {self.address}{more}", now)

    def connect_accepted(self, now: Now) -> None:
        """Note that CONNECT is accepted."""
        self.state = ConnectionState.CONNECTED
        self.greeted = True
        self._report("client-connected", now)

    def abort(self, reason: str) -> None:
        """Close the connection because of a client error, and log it."""
        if self.state is not ConnectionState.CLOSED:
            # Unauthenticated peers could flood the log: the shell logs a limited number of them.
            level = logging.WARNING if self.greeted else logging.DEBUG
            who = self.client_version or "no name"
            log.log(level, "closing the connection of %s (%s): %s", self.address, who, reason)
            self.turn_away(reason)

    def turn_away(self, reason: str) -> None:
        """Close the connection without a log line."""
        self.state = ConnectionState.CLOSED
        self.outbox.close(reason)

    # Keep-alive

    def _keep_alive(self, now: Now) -> None:
        if self._timer is None:
            return
        if self.state is ConnectionState.START:
            self.abort(f"no CONNECT within {self._interval} s")
        elif self.state is ConnectionState.AUTHENTICATING:
            self.abort(f"its password was not verified within {self._interval} s")
        elif self._check is not None or self.unread is not None:  # stricter, or a PONG would not be read
            self._timer = self._timers.at(now.monotonic + self._interval, self._keep_alive)
        elif not self._heard:
            self.abort(f"nothing heard for {self._interval} s after a PING")
        else:
            self._heard = False
            self.outbox.send(replies.ping())
            self._timer = self._timers.at(now.monotonic + self._interval, self._keep_alive)

    def check_alive(self, now: Now, answered: Answered | None = None) -> None:
        """Close the connection unless it answers a PING, because another client wants something that it holds.

        ``answered`` receives whether it is alive: after the PONG, or after everything it held is released; True at once
        if such checks are disabled.
        """
        timeout = self.broker.settings.connectionLivenessCheckTimeoutMillis
        if timeout <= 0:
            if answered is not None:
                answered(True, now)
            return
        if answered is not None:
            self._pending_requests.append(answered)
        if self._check is not None or self.state is not ConnectionState.CONNECTED:
            return
        self._heard = False
        self.outbox.send(replies.ping())

        def check(when: Now) -> None:
            if self._heard or self.unread is not None:
                self.sign_of_life(when)
                return
            self.abort(f"no answer to a PING within {timeout} ms while another client wants its place")
            self.closed(when)  # closing the socket of a dead peer may take minutes

        self._check = self._timers.at(now.monotonic + timeout / 1000, check)

    def sign_of_life(self, now: Now) -> None:
        """Complete a liveness check."""
        if self._check is not None:
            self._check.cancel()
            self._check = None
            self._report_alive(True, now)

    def _report_alive(self, alive: bool, now: Now) -> None:
        who_asks, self._pending_requests = self._pending_requests, []
        for answered in who_asks:
            answered(alive, now)

    # Producers and consumers

    def abandon(self, kind: Kind, object_id: int, now: Now) -> None:
        """Abandon the pending PRODUCER or SUBSCRIBE of a producer or consumer, if there is one."""
        opening = self.opening.get((kind, object_id))
        if opening is not None:
            opening.abandon(now)

    def producer_closed(self, producer: AttachedProducer, now: Now) -> None:
        """Remove a producer that the broker has closed."""
        if self.producers.get(producer.producer_id) is producer:
            del self.producers[producer.producer_id]
            self.close_recently(producer.producer_id)

    def producer_drains(self, producer: AttachedProducer) -> None:
        """Remove a closed producer, but keep it until its pending messages are answered."""
        if self.producers.get(producer.producer_id) is producer:
            del self.producers[producer.producer_id]
        self.draining[producer.producer_id] = producer

    def producer_is_drained(self, producer: AttachedProducer) -> None:
        """Remove a closed producer whose messages are all answered."""
        if self.draining.get(producer.producer_id) is producer:
            del self.draining[producer.producer_id]

    def consumer_closed(self, consumer: Consumer, now: Now) -> None:
        """Remove a consumer that the broker has closed."""
        if self.consumers.get(consumer.consumer_id) is consumer:
            del self.consumers[consumer.consumer_id]

    def close_recently(self, producer_id: int) -> None:
        """Ignore late messages of a producer whose client may not know yet that it is closed."""
        self.recently_closed[producer_id] = None
        if len(self.recently_closed) > MAX_RECENTLY_CLOSED:
            self.recently_closed.popitem(last=False)

    def consumer(self, consumer_id: int) -> Consumer:
        """Return a consumer of this connection. Raises MalformedCommand if there is none."""
        consumer = self.consumers.get(consumer_id)
        if consumer is None:
            raise MalformedCommand(f"consumer {consumer_id} is not on this connection")
        return consumer


def with_index(entry: Entry) -> bytes:
    """Return the entry with broker entry metadata: append time, and index of its last message."""
    if entry.body[:2] == BROKER_ENTRY_MAGIC:
        return entry.body
    metadata = BrokerEntryMetadata(broker_timestamp=entry.append_time, index=entry.total_messages - 1)
    return with_broker_entry_metadata(entry.body, metadata)
