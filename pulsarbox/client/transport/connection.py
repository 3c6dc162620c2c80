"""A connection to a broker: framing, requests, and dispatch of frames to producers and consumers.

A broker's command is either a response, matched by its request ID, or addressed to a producer or consumer by its ID.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pulsarbox import __version__
from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.errors import NoAnswer, NotConnected, error_for
from pulsarbox.client.transport.loop import READ, WRITE, Loop
from pulsarbox.errors import NotAllowed, ProducerHeld, PulsarBoxError
from pulsarbox.protocol.commands import encode_command, encode_frame, parse_command
from pulsarbox.protocol.features import DEFAULT_MAX_MESSAGE_SIZE, PROTOCOL_VERSION
from pulsarbox.protocol.frames import FrameDecoder, max_frame_size
from pulsarbox.protocol.PulsarApi_pb2 import (
    AuthData,
    BaseCommand,
    CommandAuthResponse,
    CommandConnect,
    CommandConnected,
    CommandMessage,
    CommandPing,
    CommandPong,
    CommandSendReceipt,
    FeatureFlags,
)
from pulsarbox.protocol.violations import ProtocolError

if TYPE_CHECKING:
    import ssl

    from pulsarbox.protocol.message_stream_decoder import Deliveries

Address = tuple[str, int]

CLIENT_VERSION: Final = f"pulsarbox-{__version__}"
CONNECT_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 30.0
"""Seconds of silence after which a PING is sent; after twice as long the connection is closed."""
_SEND_SIZE: Final = 256 * 1024
"""Bytes of output that are flushed at once."""

_OTHERS: Final = {
    b"HT": "the server speaks HTTP: it may be the port of the Admin API",
    b"\x15\x03": "the server speaks TLS: use pulsar+ssl://",
}
"""Errors for other protocols, by the first two bytes received; those of a frame's size are zeros."""
_MESSAGE_START = b"\x08\x09\x4a"
_RECEIPT_START = b"\x08\x07\x3a"
"""The type numbers and field tags of these two commands, as every broker encodes them."""
_sizes: Final = Struct(">II").unpack_from
"""Unpacks a frame's size fields: totalSize and cmdSize."""


class Attached(Protocol):
    """A producer or a consumer attached to a connection."""

    def receipt(self, receipt: CommandSendReceipt) -> None:
        """Handle SEND_RECEIPT; producers only."""

    def message(self, message: CommandMessage, payload: bytes) -> None:
        """Handle MESSAGE; consumers only."""

    def handle_command(self, command: BaseCommand) -> None:
        """Handle any other command with its ID: SEND_ERROR, CLOSE_PRODUCER, CLOSE_CONSUMER, REACHED_END_OF_TOPIC,
        ..."""

    def lost(self, reason: str) -> None:
        """Handle the loss of the connection."""


class ClientConnection:
    """An established connection. Created by ``connect``."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        address: Address,
        credentials: Credentials = NOBODY,
        held: Callable[[], int] | None = None,
    ) -> None:
        """``held``: returns the bytes buffered by TLS, which epoll does not report."""
        self.address = address
        self._credentials = credentials
        self.producers: dict[int, Attached] = {}
        self.consumers: dict[int, Attached] = {}
        self.max_message_size = DEFAULT_MAX_MESSAGE_SIZE
        self.closed = ""
        """Why the connection is closed; empty while it is open."""
        self._held = held
        self._deliveries: Deliveries | None = None
        self._loop = loop
        self._socket = sock
        self._decoder = FrameDecoder(max_frame_size(DEFAULT_MAX_MESSAGE_SIZE))
        self._out: list[bytes] = []
        self._out_size = 0
        self._writing = False
        self._answers: dict[int, BaseCommand | None] = {}
        self._held_back: set[int] = set()
        """PRODUCER requests that the broker has answered as waiting; a second response follows when the producer
        opens."""
        self._connected: CommandConnected | None = None
        self._refused: PulsarBoxError | None = None
        self._heard = time.monotonic()
        self._asked = False
        sock.setblocking(False)
        loop.watch(sock, READ, self._ready)
        loop.each_second(self._keep_alive)

    # Sending ---------------------------------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Queue a frame for the next turn of the loop, or flush now if the queue is large. Dropped if disconnected."""
        self._out.append(frame)
        self._out_size += len(frame)
        if self._out_size == len(frame):
            self._loop.flush_later(self.flush)
        if self._out_size >= _SEND_SIZE and not self._writing:
            self.flush()

    @property
    def waiting(self) -> int:
        """Bytes not yet accepted by the socket."""
        return self._out_size

    def flush(self) -> None:
        """Write as much as the socket accepts; the rest is written when it is writable again."""
        if self.closed or not self._out:
            return
        data = b"".join(self._out) if len(self._out) > 1 else self._out[0]
        try:
            sent = self._socket.send(data)
        except OSError as error:
            if not _waits(error):
                self.close(in_words(error))
                return
            sent = 0
        self._out_size = len(data) - sent
        self._out = [data[sent:]] if self._out_size else []
        if bool(self._out) != self._writing:
            self._writing = bool(self._out)
            self._loop.change(self._socket, READ | WRITE if self._writing else READ)

    # Requests --------------------------------------------------------------------------------------------------------

    def ask(self, command: BaseCommand, request_id: int, seconds: float) -> BaseCommand:
        """Send a request and wait for its response. Raises the broker's error, NoAnswer or NotConnected."""
        self.ask_later(command, request_id)
        return self.answer(request_id, seconds, BaseCommand.Type.Name(command.type))

    def ask_later(self, command: BaseCommand, request_id: int) -> None:
        """Send a request whose response is fetched later with ``answer`` or ``answered``."""
        self._answers[request_id] = None
        self.send(encode_frame(command))

    def answered(self, request_id: int) -> bool:
        """Return whether ``answer`` would not block; True on a closed connection, where it raises."""
        return bool(self.closed) or self._answers.get(request_id) is not None

    def acknowledged(self, request_id: int) -> bool:
        """Return whether the broker has answered an ACK without an error, also if the connection is closed by now."""
        answer = self._answers.get(request_id)
        return (
            answer is not None and answer.type == BaseCommand.ACK_RESPONSE and not answer.ackResponse.HasField("error")
        )

    def answer(self, request_id: int, seconds: float, what: str) -> BaseCommand:
        """Wait for the response to a request and return it.

        Raises ProducerHeld if the broker makes a producer wait; the call may then be repeated.
        """
        deadline = time.monotonic() + seconds
        try:
            while (answer := self._answers.get(request_id)) is None:
                if self.closed:
                    raise NotConnected(self.closed)
                if request_id in self._held_back:
                    raise ProducerHeld("the broker has not created the producer yet")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NoAnswer(f"no answer to {what} within {seconds:g} s")
                self._loop.turn(left)
        except ProducerHeld:
            raise
        except BaseException:
            self.forget(request_id)
            raise
        self.forget(request_id)
        if answer.type == BaseCommand.ERROR:
            raise error_for(answer.error.error, answer.error.message)
        return answer

    def holds_back(self, request_id: int) -> bool:
        """Return whether the broker holds a PRODUCER request, which it may still answer."""
        return request_id in self._held_back

    def forget(self, request_id: int) -> None:
        """Discard a request: its response is no longer needed."""
        self._answers.pop(request_id, None)
        self._held_back.discard(request_id)

    # Receiving -------------------------------------------------------------------------------------------------------

    def deliver_to(self, deliveries: Deliveries) -> None:
        """From now on, decode entries of bulk readers into ``deliveries``; other frames are dispatched as before."""
        self._deliveries = deliveries
        self._decoder.expect_much()

    def _ready(self, mask: int) -> None:
        if mask & WRITE:
            self.flush()
        if mask & READ and not self.closed:
            self._read()
            while self._held is not None and self._held() and not self.closed:
                self._read()

    def _read(self) -> None:
        decoder = self._decoder
        space = decoder.get_buffer()
        try:
            size = self._socket.recv_into(space)
        except OSError as error:
            if not _waits(error):
                self.close(in_words(error))
            return
        if not size:
            self.close("the broker closed the connection")
            return
        if self._connected is None and size > 1 and (other := _OTHERS.get(bytes(space[:2]))):
            self.close(other)
            return
        self._heard = time.monotonic()
        try:
            if self._deliveries is not None:
                decoder.give(size, self._take)
            else:
                for data, rest in decoder.buffer_updated(size):
                    self._dispatch(data, rest)
                    if self.closed:
                        return
        except ProtocolError as error:
            self.close(f"the broker violated the protocol: {error}")
            return
        if decoder.error is not None:
            self.close(f"the broker violated the protocol: {decoder.error}")

    def _take(self, data: bytes) -> int:
        """Consume complete frames; return the offset of the first incomplete or invalid one."""
        assert self._deliveries is not None
        take, at, end = self._deliveries.decode, 0, len(data)
        while not self.closed:
            at = take(data, at)
            if at + 8 > end:
                return at
            total, size = _sizes(data, at)
            rest, stop = at + 8 + size, at + 4 + total
            if not at + 8 < rest <= stop <= end:
                return at
            self._dispatch(data[at + 8 : rest], data[rest:stop])
            at = stop
        return end

    def _dispatch(self, data: bytes, rest: bytes) -> None:
        if data[:3] == _MESSAGE_START and data[3] == len(data) - 4 and data[3] < 128:
            message = CommandMessage.FromString(data[4:])
            consumer = self.consumers.get(message.consumer_id)
            if consumer is not None:
                consumer.message(message, rest)
            return
        if data[:3] == _RECEIPT_START and data[3] == len(data) - 4 and data[3] < 128:
            receipt = CommandSendReceipt.FromString(data[4:])
            producer = self.producers.get(receipt.producer_id)
            if producer is not None:
                producer.receipt(receipt)
            return
        command = parse_command(data)
        handle = _HANDLERS.get(command.type)
        if handle is not None:
            handle(self, command, rest)

    def _message(self, command: BaseCommand, rest: bytes) -> None:
        consumer = self.consumers.get(command.message.consumer_id)
        if consumer is not None:
            consumer.message(command.message, rest)

    def _receipt(self, command: BaseCommand, rest: bytes) -> None:
        producer = self.producers.get(command.send_receipt.producer_id)
        if producer is not None:
            producer.receipt(command.send_receipt)

    def _to_producer(self, command: BaseCommand, rest: bytes) -> None:
        part = command.send_error if command.type == BaseCommand.SEND_ERROR else command.close_producer
        producer = self.producers.get(part.producer_id)
        if producer is not None:
            producer.handle_command(command)

    def _to_consumer(self, command: BaseCommand, rest: bytes) -> None:
        part = command.close_consumer if command.type == BaseCommand.CLOSE_CONSUMER else command.reachedEndOfTopic
        consumer = self.consumers.get(part.consumer_id)
        if consumer is not None:
            consumer.handle_command(command)

    def _ping(self, command: BaseCommand, rest: bytes) -> None:
        self.send(encode_command(CommandPong()))

    def _challenged(self, command: BaseCommand, rest: bytes) -> None:
        """Answer AUTH_CHALLENGE: the credentials have expired, so send the current ones."""
        try:
            method, shown = self._credentials.proof()
        except PulsarBoxError as error:
            self.close(str(error))
            return
        response = CommandAuthResponse(
            client_version=CLIENT_VERSION,
            response=AuthData(auth_method_name=method, auth_data=shown),
            protocol_version=PROTOCOL_VERSION,
        )
        self.send(encode_command(response))

    def _hello(self, command: BaseCommand, rest: bytes) -> None:
        self._connected = command.connected
        if command.connected.max_message_size > 0:
            self.max_message_size = command.connected.max_message_size
            self._decoder.allow(max_frame_size(self.max_message_size))

    def _answer(self, command: BaseCommand, rest: bytes) -> None:
        part = getattr(command, _ANSWERS[command.type])
        if command.type == BaseCommand.PRODUCER_SUCCESS and not part.producer_ready:
            if part.request_id in self._answers:
                self._held_back.add(part.request_id)
            return
        if self._connected is None and command.type == BaseCommand.ERROR:
            refused = error_for(command.error.error, command.error.message)
            # NotAllowed before CONNECTED means that this port is not allowed for the client.
            self._refused = NotConnected(str(refused)) if isinstance(refused, NotAllowed) else refused
            self.close(f"the broker rejected the connection: {command.error.message}")
        if part.request_id in self._answers:
            self._answers[part.request_id] = command

    # Ending ----------------------------------------------------------------------------------------------------------

    def _keep_alive(self, now: float) -> None:
        quiet = now - self._heard
        if quiet > 2 * KEEP_ALIVE_SECONDS and self._asked:
            self.close(f"nothing received from the broker for {quiet:.0f} s")
        elif quiet > KEEP_ALIVE_SECONDS:
            if not self._asked:
                self.send(encode_command(CommandPing()))
            self._asked = True
        else:
            self._asked = False

    def close(self, reason: str = "closed") -> None:
        """Close the connection and notify its producers and consumers."""
        if self.closed:
            return
        self.closed = reason or "closed"
        self._loop.forget(self._socket, self._keep_alive)
        with contextlib.suppress(OSError):
            self._socket.close()
        attached = [*self.producers.values(), *self.consumers.values()]
        self.producers.clear()
        self.consumers.clear()
        for each in attached:
            each.lost(self.closed)

    def shake_hands(self, proxy_to: str, seconds: float) -> None:
        """Send CONNECT and wait for CONNECTED. ``proxy_to``: host:port of the broker behind a proxy; empty for none."""
        connect = CommandConnect(
            client_version=CLIENT_VERSION,
            protocol_version=PROTOCOL_VERSION,
            feature_flags=FeatureFlags(supports_auth_refresh=True, supports_partial_producer=False),
        )
        method, shown = self._credentials.proof()
        if method:
            connect.auth_method_name, connect.auth_data = method, shown
        if proxy_to:
            connect.proxy_to_broker_url = proxy_to
        self.send(encode_command(connect))
        deadline = time.monotonic() + seconds
        while self._connected is None:
            if self._refused is not None:
                raise self._refused
            if self.closed:
                raise NotConnected(self.closed)
            left = deadline - time.monotonic()
            if left <= 0:
                self.close("the server does not speak the Pulsar protocol")
                raise NotConnected(f"no answer to CONNECT within {seconds:g} s: is this a Pulsar broker's port?")
            self._loop.turn(left)


_ANSWERS: Final = {
    BaseCommand.SUCCESS: "success",
    BaseCommand.ERROR: "error",
    BaseCommand.PRODUCER_SUCCESS: "producer_success",
    BaseCommand.PARTITIONED_METADATA_RESPONSE: "partitionMetadataResponse",
    BaseCommand.LOOKUP_RESPONSE: "lookupTopicResponse",
    BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE: "getLastMessageIdResponse",
    BaseCommand.GET_SCHEMA_RESPONSE: "getSchemaResponse",
    BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE: "getOrCreateSchemaResponse",
    BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE: "getTopicsOfNamespaceResponse",
    BaseCommand.ACK_RESPONSE: "ackResponse",
    BaseCommand.NEW_TXN_RESPONSE: "newTxnResponse",
    BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE: "addPartitionToTxnResponse",
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE: "addSubscriptionToTxnResponse",
    BaseCommand.END_TXN_RESPONSE: "endTxnResponse",
    BaseCommand.TC_CLIENT_CONNECT_RESPONSE: "tcClientConnectResponse",
}

_HANDLERS: Final[dict[int, Callable[[ClientConnection, BaseCommand, bytes], None]]] = {
    **dict.fromkeys(_ANSWERS, ClientConnection._answer),
    BaseCommand.CONNECTED: ClientConnection._hello,
    BaseCommand.AUTH_CHALLENGE: ClientConnection._challenged,
    BaseCommand.MESSAGE: ClientConnection._message,
    BaseCommand.SEND_RECEIPT: ClientConnection._receipt,
    BaseCommand.SEND_ERROR: ClientConnection._to_producer,
    BaseCommand.CLOSE_PRODUCER: ClientConnection._to_producer,
    BaseCommand.CLOSE_CONSUMER: ClientConnection._to_consumer,
    BaseCommand.REACHED_END_OF_TOPIC: ClientConnection._to_consumer,
    BaseCommand.PING: ClientConnection._ping,
}
"""Handlers by command. PONG needs none, as any bytes prove that the broker is alive; ACTIVE_CONSUMER_CHANGE is
ignored."""


class Wire(NamedTuple):
    """Transport settings for the brokers of a service URL."""

    tls: ssl.SSLContext | None = None
    """TLS context; None without TLS."""
    credentials: Credentials = NOBODY
    """The client's credentials."""


PLAIN: Final = Wire()


def wire_of(credentials: Credentials, secure: bool) -> Wire:
    """Return the transport settings for credentials. Raises NotConnected for unusable files."""
    try:
        return Wire(credentials.tls() if secure else None, credentials)
    except OSError as error:
        raise NotConnected(f"cannot load the certificates: {error}") from error


def connect(
    loop: Loop, address: Address, wire: Wire = PLAIN, proxy_to: str = "", seconds: float = CONNECT_SECONDS
) -> ClientConnection:
    """Open a connection and complete its handshake. Raises NotConnected."""
    try:
        sock = socket.create_connection(address, timeout=seconds)
    except TimeoutError:
        raise NotConnected(f"no connection within {seconds:g} s") from None
    except OSError as error:
        raise NotConnected(error.strerror or str(error)) from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    held: Callable[[], int] | None = None
    if wire.tls is not None:
        sock = wrapped = _wrapped(sock, wire.tls, address[0], seconds)
        held = wrapped.pending
    connection = ClientConnection(loop, sock, address, wire.credentials, held)
    try:
        connection.shake_hands(proxy_to, seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def _wrapped(sock: socket.socket, context: ssl.SSLContext, host: str, seconds: float) -> ssl.SSLSocket:
    """Wrap a socket in TLS. Raises NotConnected if the handshake fails."""
    try:
        return context.wrap_socket(sock, server_hostname=host)
    except OSError as error:
        sock.close()
        if isinstance(error, TimeoutError):
            raise NotConnected(f"no TLS handshake within {seconds:g} s: is this a TLS port?") from None
        raise NotConnected(f"TLS handshake failed: {in_words(error)}") from error


def in_words(error: OSError) -> str:
    """Describe a socket or TLS error, without its location in OpenSSL's source."""
    found = getattr(error, "verify_message", "") or getattr(error, "reason", "")
    if found == "WRONG_VERSION_NUMBER":
        return "the server does not speak TLS: use pulsar://"
    return str(found).replace("_", " ").lower() if found else error.strerror or str(error)


def _waits(error: OSError) -> bool:
    """Return whether an error only means that the socket, or TLS on it, is not ready."""
    return isinstance(error, BlockingIOError) or type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError")
