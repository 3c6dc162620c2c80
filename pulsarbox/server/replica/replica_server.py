"""The process of a replica: a listening socket, and a thread for each connection."""

import contextlib
import logging
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Final

from pulsarbox.config import Settings
from pulsarbox.server.network.certificates import Certificates
from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.server.replica.directory_owner import DirectoryOwner
from pulsarbox.server.replica.replica_connection import ReplicaConnection

log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 32
STRANGERS_MAX: Final = 16
"""Connections that are not authenticated yet."""
_BACKLOG: Final = 64


class ReplicaServer:
    """Accepts connections until ``stop``."""

    def __init__(
        self, listening: socket.socket, secret: bytes, owner: DirectoryOwner, certificates: Certificates | None
    ) -> None:
        """``certificates`` are for TLS."""
        self._listening = listening
        self._secret = secret
        self._owner = owner
        self._certificates = certificates
        self._connections: dict[ReplicaConnection, threading.Thread] = {}
        self._changing = threading.Lock()
        self._sparing = Sparing()
        self._waker, self._woken = socket.socketpair()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that it listens on."""
        name = self._listening.getsockname()
        return name[0], name[1]

    def stop(self) -> None:
        """Make ``run`` return. Thread-safe, and callable in a signal handler."""
        with contextlib.suppress(OSError):
            self._waker.send(b"\0")

    def run(self, reload_seconds: int = 0) -> None:
        """Serve until ``stop``; check every ``reload_seconds`` for new certificates, 0 for never."""
        poll = select.poll()
        poll.register(self._listening.fileno(), select.POLLIN)
        poll.register(self._woken.fileno(), select.POLLIN)
        pause = 1000 * reload_seconds if reload_seconds and self._certificates is not None else None
        while True:
            ready = [number for number, _ in poll.poll(pause)]
            if self._woken.fileno() in ready:
                break
            if self._listening.fileno() in ready:
                self._accept()
            elif self._certificates is not None:
                self._certificates.reload_changed(time.time_ns() // 1_000_000)
        self._close()

    def _accept(self) -> None:
        try:
            accepted, address = self._listening.accept()
        except OSError as error:
            log.warning("a connection could not be accepted: %s", error.strerror)
            time.sleep(0.1)  # as for too many open files: they stay for a while
            return
        peer = f"{address[0]}:{address[1]}"
        with self._changing:
            strangers = sum(not each.is_authenticated for each in self._connections)
            if len(self._connections) >= CONNECTIONS_MAX or strangers >= STRANGERS_MAX:
                accepted.close()
                if (suppressed := self._sparing.due()) is not None:
                    log.warning("the connection of %s was refused: too many connections%s", peer, and_more(suppressed))
                return
            self._begin(accepted, peer)

    def _begin(self, accepted: socket.socket, peer: str) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = ReplicaConnection(accepted, peer, self._secret, self._owner)
        context = self._certificates.context if self._certificates is not None else None
        thread = threading.Thread(
            target=connection.run, args=(context, self._ended), name=f"replica of {peer}"[:60], daemon=True
        )
        self._connections[connection] = thread
        thread.start()

    def _ended(self, connection: ReplicaConnection) -> None:
        with self._changing:
            self._connections.pop(connection, None)
        connection.release()

    def _close(self) -> None:
        self._listening.close()
        self._owner.close()
        with self._changing:
            connections = dict(self._connections)
        for connection in connections:
            connection.end()
        for thread in connections.values():
            thread.join(5.0)
        self._waker.close()
        self._woken.close()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


def certificates_of(settings: Settings) -> Certificates | None:
    """Return the certificates for TLS, None if none is configured. Raises CertificateError."""
    if not settings.tlsCertificateFilePath:
        return None
    return Certificates(settings, time.time_ns() // 1_000_000)


@contextlib.contextmanager
def stopped_by_signals(server: ReplicaServer) -> Iterator[None]:
    """Stop a server on SIGTERM and SIGINT."""

    def handle(number: int, _: FrameType | None) -> None:
        log.info("%s: the replica stops", signal.Signals(number).name)
        server.stop()

    numbers = signal.SIGTERM, signal.SIGINT
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
