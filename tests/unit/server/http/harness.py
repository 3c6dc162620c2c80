"""A box without disk and binary port: an HttpServer over a real core, and a client."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from pulsarbox.broker.composition import compose
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.endpoints import Ports, endpoints_of
from pulsarbox.broker.host import Host
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.protocol.frames import max_frame_size
from pulsarbox.server.http import HttpServer
from pulsarbox.server.network.connection_limits import ConnectionLimits
from pulsarbox.server.network.listeners import listen
from pulsarbox.server.network.protocol_mismatch import ProtocolUrls
from pulsarbox.server.security.configured import authentication_of
from pulsarbox.server.shell_protocol import ShellConnection
from pulsarbox.storage.memory_engine import MemoryEngine
from tests.unit.broker.core_driver import START, CoreDriver

ADMIN = "/admin/v2"
BROKER_URL = "pulsar://box:6650"
WEB_URL = "http://box:8080"


class InstantShell:
    """A shell that commits at every kick unless the disk is held up. The clock is frozen unless a test advances it."""

    def __init__(self, settings: Settings, host: Host | None = None) -> None:
        self.engine = MemoryEngine()
        endpoints = endpoints_of(settings, "box", Ports(6650, 8080))
        start = Now(0.0, START)
        authentication = authentication_of(settings)
        self.broker = compose(settings, self.engine.recover(), endpoints, start, authentication, host=host or Host())
        self.gate = ConnectionLimits(settings)
        self.protocol_urls = ProtocolUrls.of(endpoints)
        self.connections: dict[Outbox, ShellConnection] = {}
        self.max_frame_size = max_frame_size(settings.maxMessageSize)
        self.held = False
        self.core = CoreDriver(self.broker, self.engine, start)
        self.core.others = self.connections
        self.kick()

    def now(self) -> Now:
        """The current time, including the offset of the virtual clock."""
        return self.core.now

    def hold(self, connection: ShellConnection) -> None:
        """Pause reading; tests resume it."""
        connection.pause_reading()

    def after_read(self) -> None:
        """End the turn."""
        self.kick()

    def kick(self) -> None:
        """Commit and read all pending work, and run due deadlines."""
        self.core.auto = not self.held
        if self.held:
            self.core.flush()
        else:
            self.core.advance(0)


class Got(NamedTuple):
    """A response."""

    status: int
    text: str
    headers: dict[str, str]

    @property
    def value(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.text)

    @property
    def reason(self) -> str:
        """The error message."""
        reason = self.value["reason"]
        assert isinstance(reason, str)
        return reason


class HttpBox:
    """The box under test and its HTTP client."""

    def __init__(self, shell: InstantShell, session: aiohttp.ClientSession, port: int) -> None:
        self.shell = shell
        self.broker = shell.broker
        self.port = port
        self._session = session

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Got:
        """Send a request. The path and a body of bytes are sent unchanged; any other body is sent as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        headers |= more.get("headers", {})
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        stream = None if data is None else io.BytesIO(data)
        async with self._session.request(method, url, data=stream, headers=headers) as response:
            return Got(response.status, await response.text(), dict(response.headers))

    def connect(self, path: str, **more: Any) -> Any:
        """Open a WebSocket: a context manager of the client's socket. The path is sent unchanged."""
        return self._session.ws_connect(URL(f"ws://127.0.0.1:{self.port}{path}", encoded=True), **more)

    async def get(self, path: str) -> Got:
        """Send a GET below /admin/v2."""
        return await self.ask("GET", ADMIN + path)

    async def put(self, path: str, body: Any = None) -> Got:
        """Send a PUT below /admin/v2."""
        return await self.ask("PUT", ADMIN + path, body)

    async def post(self, path: str, body: Any = None) -> Got:
        """Send a POST below /admin/v2."""
        return await self.ask("POST", ADMIN + path, body)

    async def delete(self, path: str) -> Got:
        """Send a DELETE below /admin/v2."""
        return await self.ask("DELETE", ADMIN + path)


async def until(holds: Callable[[], object]) -> None:
    """Run the loop until a condition holds."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running_box(settings: Settings | None = None, host: Host | None = None) -> AsyncIterator[HttpBox]:
    """Serve a new box on a free loopback port until the block ends."""
    shell = InstantShell(settings or Settings(), host)
    server = HttpServer(shell)
    sockets = await listen("127.0.0.1", 0, "--web-port")
    port = sockets[0].getsockname()[1]
    await server.start(sockets)
    try:
        async with aiohttp.ClientSession() as session:
            yield HttpBox(shell, session, port)
    finally:
        await server.stop()
