"""A TLS port: accepts connections, checks for other protocols, shakes hands, and passes the connection on.

It replaces asyncio's servers, which keep their initial context, wait a minute for a handshake, and log either nothing
or a traceback on failure.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from pulsarbox.server.network.certificates import Certificates
from pulsarbox.server.network.connection_limits import ConnectionLimits
from pulsarbox.server.network.protocol_mismatch import TLS, ProtocolUrls, advice, answer, detect_protocol

log = logging.getLogger(__name__)

ACCEPTS_A_TURN: Final = 64
PAUSE_SECONDS: Final = 1.0
"""Seconds without accepting connections after running out of files or memory."""
_SCARCE: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class TlsPort:
    """The sockets of one port."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        protocol: Callable[[], asyncio.BaseProtocol],
        certificates: Certificates,
        gate: ConnectionLimits,
        doors: ProtocolUrls,
        *,
        web: bool,
        seconds: float,
    ) -> None:
        """``sockets`` are listening. ``protocol`` creates the protocol of a connection; ``web``: the Admin API's.

        ``seconds`` is the timeout of a handshake.
        """
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._protocol = protocol
        self._certificates = certificates
        self._gate = gate
        self._doors = doors
        self._web = web
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start accepting connections."""
        self._pause = None
        for each in self._sockets:
            self._loop.add_reader(each, self._accept, each)

    def stop(self) -> None:
        """Stop accepting connections and cancel pending handshakes."""
        if self._pause is not None:
            self._pause.cancel()
        for each in self._sockets:
            self._loop.remove_reader(each)
        for task in self._tasks:
            task.cancel()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _SCARCE:
                    raise
                self._gate.warn("scarce", "cannot accept connections: %s", error.strerror)
                self._rest()
                return
            self._handshake(accepted, str(peer[0]), f"{peer[0]}:{peer[1]}")

    def _rest(self) -> None:
        """Pause accepting connections."""
        for each in self._sockets:
            self._loop.remove_reader(each)
        self._pause = self._loop.call_later(PAUSE_SECONDS, self.start)

    def _handshake(self, accepted: socket.socket, host: str, address: str) -> None:
        accepted.setblocking(False)
        refusal = self._gate.refusal(host)
        if refusal is not None:
            self._gate.warn("refused", "refusing the connection of %s: %s", address, refusal)
            accepted.close()
            return
        self._gate.enters(host)
        task = self._loop.create_task(self._welcome(accepted, address))
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._gate.leaves(host, half_open=True)  # its protocol, if created, has counted it by now

        task.add_done_callback(done)

    async def _welcome(self, accepted: socket.socket, address: str) -> None:
        handed_on = False
        try:
            async with asyncio.timeout(self._seconds):
                head = await self._peek(accepted)
            if not head:
                return
            if detect_protocol(head) != TLS:
                self._turn_away(accepted, head, address)
                return
            handed_on = True
            await self._loop.connect_accepted_socket(
                self._protocol,
                accepted,
                ssl=self._certificates.context,
                ssl_handshake_timeout=self._seconds,
            )
        except TimeoutError:
            self._failed(address, f"nothing received within {self._seconds:g} s")
        except ssl.SSLError as error:
            self._failed(address, getattr(error, "verify_message", "") or error.reason or str(error))
        except OSError as error:
            self._failed(address, error.strerror or str(error))
        finally:
            if not handed_on:
                accepted.close()

    async def _peek(self, accepted: socket.socket) -> bytes:
        """Return the first bytes without consuming them."""
        there: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(accepted, _log, there)
        try:
            await there
        finally:
            self._loop.remove_reader(accepted)
        return accepted.recv(4, socket.MSG_PEEK)

    def _turn_away(self, accepted: socket.socket, head: bytes, address: str) -> None:
        what = detect_protocol(head)
        text = advice(what, True, self._web, self._doors)
        if words := answer(what, text):
            accepted.recv(65536)  # unread input would make the system reset the connection and discard the answer
            accepted.send(words)
        self._gate.warn(
            "no TLS", "closing the connection of %s: the client speaks %s: %s", address, what or "no TLS", text
        )

    def _failed(self, address: str, reason: str) -> None:
        self._gate.warn("handshake", "TLS handshake with %s failed: %s", address, reason.replace("_", " ").lower())


def _log(there: "asyncio.Future[None]") -> None:
    if not there.done():
        there.set_result(None)
