"""The connection of a WebSocket to the broker, inside the process: commands in, commands out, no socket.

The broker serves it as it serves a client of the binary protocol: authorization, limits, policies and statistics apply.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from google.protobuf.message import Message

from pulsarbox import __version__
from pulsarbox.broker.handlers.authentication import accept_authenticated
from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.commands import COMMANDS, encode_command, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandPartitionedTopicMetadataResponse,
    CommandPong,
    ServerError,
)
from pulsarbox.server.shell_protocol import Shell

log = logging.getLogger(__name__)

CLIENT_VERSION: Final = f"pulsarbox-websocket-{__version__}"
"""The client version that statistics show for a WebSocket."""
REQUEST_SECONDS: Final = 30.0
"""Timeout of a request to the broker: the operation timeout of Java clients."""
HELD_HIGH: Final = 512 << 10
"""Bytes of undelivered entries from which a client counts as slow: the dispatcher then stops."""
HELD_LOW: Final = 128 << 10
GOING_AWAY: Final = 1001
INTERNAL: Final = 1011
_FAILED: Final = CommandPartitionedTopicMetadataResponse.Failed
_OF_REQUESTS: Final = frozenset(
    (
        BaseCommand.SUCCESS,
        BaseCommand.ERROR,
        BaseCommand.PRODUCER_SUCCESS,
        BaseCommand.PARTITIONED_METADATA_RESPONSE,
        BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    )
)


class BrokerRefusal(PulsarBoxError):
    """The broker refused a request; ``code`` is its ServerError."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class RequestTimeout(PulsarBoxError):
    """The broker did not answer a request in time."""

    http_status = 504


class CommandTarget(Protocol):
    """A producer or consumer, which receives the broker's commands."""

    def receive(self, command: BaseCommand, payload: bytes) -> None:
        """Handle a command that names this producer or consumer."""


class BrokerConnection:
    """One connection. ``lost`` is called once with a close code and a reason when it ends, unless ``end`` is called."""

    def __init__(
        self, shell: Shell, address: str, principal: Principal | None, *, secure: bool, lost: Callable[[int, str], None]
    ) -> None:
        """``address`` is the client's ``host:port``."""
        self.producers: dict[int, CommandTarget] = {}
        self.consumers: dict[int, CommandTarget] = {}
        self._closed = False
        self._shell = shell
        self._lost = lost
        self._numbers = itertools.count()
        self._requests: dict[int, asyncio.Future[Any]] = {}
        self._decoder = FrameDecoder(2 * shell.max_frame_size)
        self._held = 0
        self._readable = asyncio.Event()
        self._readable.set()
        self.outbox = shell.broker.new_outbox()
        self.cnx = shell.broker.connected(self.outbox, address, shell.now(), secure=secure)
        shell.connections[self.outbox] = self
        accept_authenticated(self.cnx, principal, CLIENT_VERSION, shell.now())

    def is_closed(self) -> bool:
        """Return whether the connection has ended."""
        return self._closed

    def number(self) -> int:
        """Return a number for a request, producer or consumer."""
        return next(self._numbers)

    # To the broker

    async def ask(self, command: Message, seconds: float = REQUEST_SECONDS) -> Any:
        """Send a request with a ``request_id`` from ``number``; return the answer's own message.

        Raises BrokerRefusal, RequestTimeout.
        """
        number: int = command.request_id  # type: ignore[attr-defined]
        future = self._requests[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(command)
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            raise RequestTimeout(f"The broker did not answer within {seconds:g} s") from None
        finally:
            self._requests.pop(number, None)

    def send(self, command: Message, payload: bytes = b"") -> None:
        """Send a command. Large amounts suspend ``readable``."""
        if self._closed:
            return
        shell = self._shell
        self.cnx.receive((encode_command(command)[8:], payload), shell.now())
        if self._readable.is_set() and (shell.broker.full or self.cnx.overdrawn):
            shell.hold(self)
        shell.after_read()

    async def readable(self) -> None:
        """Wait until the broker accepts more messages."""
        await self._readable.wait()

    # From the broker

    def flush(self) -> None:
        """Pass the core's output to producers and consumers."""
        try:
            for data, payload in self._decoder.feed(self.outbox.take()):
                self._receive(parse_command(data), payload)
        except Exception:
            log.exception("the WebSocket of %s cannot process the broker's output", self.cnx.address)
            self._end(INTERNAL, "Internal error")
        if self.outbox.close_reason is not None:
            self._end(INTERNAL, self.outbox.close_reason)

    def _receive(self, command: BaseCommand, payload: bytes) -> None:
        body = getattr(command, COMMANDS[command.type].field)
        if command.type in _OF_REQUESTS:
            self._answered(command.type, body)
        elif command.type == BaseCommand.PING:
            self.send(CommandPong())
        elif command.type in (BaseCommand.SEND_RECEIPT, BaseCommand.SEND_ERROR, BaseCommand.CLOSE_PRODUCER):
            if target := self.producers.get(body.producer_id):
                target.receive(command, payload)
        elif command.type in (BaseCommand.MESSAGE, BaseCommand.CLOSE_CONSUMER, BaseCommand.REACHED_END_OF_TOPIC):
            if target := self.consumers.get(body.consumer_id):
                target.receive(command, payload)

    def _answered(self, kind: int, body: Any) -> None:
        future = self._requests.get(body.request_id)
        if future is None or future.done():
            return
        if kind == BaseCommand.PRODUCER_SUCCESS and not body.producer_ready:
            return  # the broker holds the producer, and answers again
        if kind == BaseCommand.ERROR or getattr(body, "response", 0) == _FAILED:
            future.set_exception(BrokerRefusal(body.error, body.message))
        else:
            future.set_result(body)

    # Backpressure

    def took(self, size: int) -> None:
        """Count the bytes of an entry that is not delivered yet."""
        self._held += size
        if self._held > HELD_HIGH:
            self.outbox.blocked = self.outbox.full = True

    def gave(self, size: int) -> None:
        """Discount the bytes of an entry that is delivered."""
        self._held -= size
        if self.outbox.blocked and self._held < HELD_LOW:
            self.outbox.blocked = self.outbox.full = False
            self.cnx.writable(self._shell.now())
            self._shell.kick()

    def pause_reading(self) -> None:
        """Accept no more messages from the client."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """Accept messages again."""
        self._readable.set()

    # The end

    def forget(self) -> None:
        """Do nothing: there is no inherited socket."""

    def close(self) -> None:
        """Close because the box stops."""
        self._end(GOING_AWAY, "The box is stopping")

    def abort(self) -> None:
        """Close immediately."""
        self.close()

    def end(self) -> None:
        """Close without a notice, because the client has gone."""
        if self._closed:
            return
        self._closed = True
        self._shell.connections.pop(self.outbox, None)
        self._readable.set()
        self.cnx.closed(self._shell.now())
        self._shell.kick()
        for future in self._requests.values():
            if not future.done():
                future.set_exception(BrokerRefusal(ServerError.ServiceNotReady, "The connection was closed"))

    def _end(self, code: int, reason: str) -> None:
        if not self._closed:
            self.end()
            self._lost(code, reason)
