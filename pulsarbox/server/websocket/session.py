"""The common part of all WebSocket sessions: the socket, the connection to the broker, and the end of both."""

import asyncio
import logging

from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import CommandPartitionedTopicMetadata
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.server.tasks import spawn
from pulsarbox.server.websocket.broker_connection import INTERNAL, BrokerConnection
from pulsarbox.server.websocket.text_socket import TextSocket

log = logging.getLogger(__name__)


class SocketSession:
    """One producer, consumer or reader. ``open`` is called before the upgrade, ``run`` after it, ``close`` always."""

    def __init__(self, shell: Shell, address: str, principal: Principal | None, *, secure: bool) -> None:
        self.connection = BrokerConnection(shell, address, principal, secure=secure, lost=self.end)
        self.address = address
        self._socket: TextSocket | None = None

    async def open(self) -> None:
        """Create the producers or consumers. Raises PulsarBoxError."""
        raise NotImplementedError

    async def handle(self, text: str) -> None:
        """Process a message of the client."""
        raise NotImplementedError

    def started(self) -> None:
        """Begin to send messages: the socket is open."""

    async def run(self, socket: TextSocket) -> None:
        """Process the client's messages until the socket is closed."""
        self._socket = socket
        if self.connection.is_closed():
            await socket.close(INTERNAL, "The broker has closed the connection")
            return
        self.started()
        while (text := await socket.receive()) is not None:
            await self.connection.readable()
            try:
                await self.handle(text)
            except ConnectionError:
                return
            except PulsarBoxError as error:
                self.end(INTERNAL, str(error))

    async def send(self, text: bytes) -> None:
        """Send a message to the client. Raises ConnectionError."""
        assert self._socket is not None
        await self._socket.send(text)

    def end(self, code: int, reason: str) -> None:
        """Close the socket with a code of RFC 6455."""
        log.info("closing the WebSocket of %s: %s", self.address, reason)
        if self._socket is not None:
            spawn("WebSocket close", self._socket.close(code, reason))

    def close(self) -> None:
        """Release everything."""
        if self._socket is not None:
            self._socket.end()
        self.connection.end()

    async def partitions(self, topic: TopicName) -> list[TopicName]:
        """Return the partitions of a topic, created if it may be, or the topic itself. Raises BrokerRefusal."""
        number = self.connection.number()
        command = CommandPartitionedTopicMetadata(topic=str(topic), request_id=number)
        count = (await self.connection.ask(command)).partitions
        return [topic.partition(index) for index in range(count)] or [topic]


async def pause() -> None:
    """Let other clients be served."""
    await asyncio.sleep(0)
