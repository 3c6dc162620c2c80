"""The attacked broker, with monitoring of its memory, descriptors and availability."""

import contextlib
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Self

import psutil

from pulsarbox.client.admin import Admin
from pulsarbox.client.client import Client
from pulsarbox.client.credentials import Credentials
from pulsarbox.client.producer import Options, Producer
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.process.runtime_file import RuntimeFile, read
from tests.tools.box import PULSARBOX, BoxProcess
from tests.tools.certificates import Authority
from tests.unit.broker.security.signing import SECRET, named, token

SECONDS: Final = 60.0
"""Deadline for anything that must happen, on a busy machine."""
HALF_OPEN_MAX: Final = 200
RSS_MAX: Final = 700 << 20
"""Bytes of resident memory: 70 MiB at the start; ten thousand clients, half with TLS, use 300."""
HOSTS: Final = tuple(f"127.0.0.{number}" for number in range(2, 12))
"""Addresses of the attackers; the well-behaved client has another."""

_SETTINGS: Final = f"""
authenticationEnabled=true
authenticationProviders=token
tokenSecretKey={named(SECRET)}
maxHalfOpenConnectionsPerIp={HALF_OPEN_MAX}
keepAliveIntervalSeconds=2
tlsHandshakeTimeoutSeconds=2
httpServerIdleTimeout=2000
managedLedgerCacheSizeMB=32
"""


class Broken(Exception):
    """The broker has failed."""


class Door(NamedTuple):
    """A port of the broker."""

    name: str
    port: int
    tls: bool
    web: bool


class Victim:
    """The broker and the well-behaved client. A context manager."""

    def __init__(self, folder: Path, scale: float) -> None:
        """Set the size of attacks by ``scale``; 1 is the full size."""
        self.scale = scale
        self.authority = Authority(folder / "tls")
        own = self.authority.signs("localhost")
        conf = folder / "attacked.conf"
        conf.write_text(_SETTINGS)
        tls = ("--tls-port", "0", "--web-tls-port", "0", "--tls-cert", str(own.certificate), "--tls-key", str(own.key))
        self.box = BoxProcess(folder / "data", (*PULSARBOX, "--config", str(conf), *tls))
        self.token = token()
        self.peak = 0

    def __enter__(self) -> Self:
        self.box.start()
        deadline = time.monotonic() + SECONDS
        running: RuntimeFile | None = None
        while running is None and time.monotonic() < deadline:
            running = read(self.box.data, self.box.pid)
        assert running is not None
        self.running = running
        self.doors = (
            Door("pulsar", running.port, tls=False, web=False),
            Door("pulsar+ssl", running.tls_port, tls=True, web=False),
            Door("http", running.web_port, tls=False, web=True),
            Door("https", running.web_tls_port, tls=True, web=True),
        )
        self._process = psutil.Process(self.box.pid)
        self.good = Good(running, self.token.decode())
        return self

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> None:
        self.good.stop()
        try:
            if kind is None and self.box.stop() != 0:
                raise Broken(f"it ended with an error:\n{self.box.said()}")
        finally:
            self.box.kill()

    def times(self, full: int) -> int:
        """Return the scaled count for a count at full size."""
        return max(1, int(full * self.scale))

    # Health

    @property
    def memory(self) -> int:
        """Resident memory in bytes."""
        found = int(self._process.memory_info().rss)
        self.peak = max(self.peak, found)
        return found

    @property
    def files(self) -> int:
        """Number of open descriptors."""
        return int(self._process.num_fds())

    @property
    def cpu(self) -> float:
        """CPU seconds used by the process."""
        found = self._process.cpu_times()
        return float(found.user + found.system)

    def check(self) -> None:
        """Check that the broker runs within its limits and serves the client. Raises Broken."""
        if self.box.process is None or self.box.process.poll() is not None:
            raise Broken(f"it has ended:\n{self.box.said()}")
        if self.memory > RSS_MAX:
            raise Broken(f"it takes {self.memory >> 20} MiB, more than {RSS_MAX >> 20}")
        self.good.gets_on()
        log = self.box.log.read_text(errors="replace")
        if "Traceback" in log:
            raise Broken(f"an error that nobody foresaw:\n{log[log.index('Traceback') - 500 :][:3000]}")

    def wait_for(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until ``holds`` is true. Raises Broken."""
        deadline = time.monotonic() + SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise Broken(f"not within {SECONDS:g} s: {what}")
            self.check()
            time.sleep(0.05)

    # Connections

    def connect(self, door: Door, host: str = HOSTS[0], *, shake: bool = True) -> socket.socket:
        """Connect to a port from an address; with ``shake``, perform the TLS handshake."""
        plain = socket.create_connection(("127.0.0.1", door.port), timeout=SECONDS, source_address=(host, 0))
        if not (door.tls and shake):
            return plain
        context = ssl.create_default_context(cafile=str(self.authority.file))
        try:
            return context.wrap_socket(plain, server_hostname="localhost")
        except BaseException:
            plain.close()
            raise


def answered(connection: socket.socket, most: int = 1 << 20) -> bytes:
    """Return all data until the peer closes or resets the connection."""
    found = b""
    with contextlib.suppress(OSError):
        while len(found) < most and (part := connection.recv(65536)):
            found += part
    return found


def send(connection: socket.socket, data: bytes) -> None:
    """Send data, ignoring a connection that the peer has closed."""
    with contextlib.suppress(OSError):
        connection.sendall(data)


class Good:
    """A well-behaved client that publishes continuously."""

    def __init__(self, running: RuntimeFile, token: str) -> None:
        self._running = running
        self._credentials = Credentials(token=token)
        self._over = threading.Event()
        self.sent = 0
        self.slowest = 0.0
        self.problem = ""
        self._thread = threading.Thread(target=self._work, name="good client", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(SECONDS)

    def gets_on(self) -> None:
        """Wait until three more messages are stored. Raises Broken."""
        before, deadline = self.sent, time.monotonic() + SECONDS
        while self.sent < before + 3:
            if self.problem:
                raise Broken(f"the good client: {self.problem}")
            if time.monotonic() > deadline:
                raise Broken(f"the good client gets no receipt within {SECONDS:g} s")
            time.sleep(0.01)

    def _work(self) -> None:
        client = Client([("127.0.0.1", self._running.port)], SECONDS, credentials=self._credentials)
        try:
            producer = Producer(client, "good", Options(batching=False), lambda *told: None)
            with Admin([("127.0.0.1", self._running.web_port)], SECONDS, credentials=self._credentials) as admin:
                for number in itertools.count():
                    if self._over.is_set():
                        return
                    began = time.monotonic()
                    producer.send_plain([f"good {number}".encode()])
                    producer.flush()
                    if number % 10 == 0:
                        admin.tenants()
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.sent += 1
                    time.sleep(0.005)
        except (PulsarBoxError, OSError) as error:
            self.problem = f"{type(error).__name__}: {error}"
        finally:
            client.close()
