"""A box without disk and binary port: an HttpServer over a real core, and a client to ask it."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.endpoints import Ports, endpoints_of
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http import HttpServer
from pulsarbox.server.network.connection_limits import Gate
from pulsarbox.server.network.listeners import listen
from pulsarbox.server.network.protocol_mismatch import Doors
from pulsarbox.server.security.configured import authentication_of
from pulsarbox.storage.memory_engine import MemoryEngine

ADMIN = "/admin/v2"
BROKER_URL = "pulsar://box:6650"
WEB_URL = "http://box:8080"
START = 1_700_000_000_000


class InstantShell:
    """Commits at every kick, as long as the disk is not held up."""

    def __init__(self, settings: Settings) -> None:
        self.engine = MemoryEngine()
        endpoints = endpoints_of(settings, "box", Ports(6650, 8080))
        self.broker = Broker(settings, self.engine.recover(), endpoints, Now(0.0, START), authentication_of(settings))
        self.gate = Gate(settings)
        self.doors = Doors.of(endpoints)
        self.held = False
        self.elapsed = 0.0
        """Seconds on the monotonic clock."""
        self.kick()

    def now(self) -> Now:
        """A clock that stands, unless the virtual one is moved."""
        offset = self.broker.clock.offset
        return Now(self.elapsed, START + offset, offset)

    def kick(self) -> None:
        """Commit and read everything that waits, let pass what is due."""
        while not self.held and (self._commit() or self._read() or self._verify() or self._ring()):
            pass
        self.broker.take_waiting()

    def _commit(self) -> bool:
        batch = self.broker.take_batch(self.now())
        if batch is not None:
            self.engine.commit(batch)
            self.broker.committed(batch, self.now())
        return batch is not None

    def _read(self) -> bool:
        requests = self.broker.take_reads()
        for request in requests:
            try:
                entries, error = self.engine.read(request), None
            except PulsarBoxError as raised:
                entries, error = [], raised
            self.broker.read_done(request.token, entries, self.now(), error)
        return bool(requests)

    def _verify(self) -> bool:
        checks = self.broker.take_password_checks()
        for check in checks:
            self.broker.password_checked(check, check.work(), self.now())
        return bool(checks)

    def _ring(self) -> bool:
        deadline = self.broker.next_timer().monotonic
        if deadline is None or deadline > self.now().monotonic:
            return False
        self.broker.on_timer(self.now())
        return True


class Got(NamedTuple):
    """An answer."""

    status: int
    text: str
    headers: dict[str, str]

    @property
    def value(self) -> Any:
        """The body, which must be JSON."""
        return json.loads(self.text)

    @property
    def reason(self) -> str:
        """What an error says."""
        reason = self.value["reason"]
        assert isinstance(reason, str)
        return reason


class Box:
    """What a test talks to."""

    def __init__(self, shell: InstantShell, session: aiohttp.ClientSession, port: int) -> None:
        self.shell = shell
        self.broker = shell.broker
        self.port = port
        self._session = session

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Got:
        """Send a request. A body of bytes goes as it is, any other as JSON; the path goes as it is."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        headers |= more.get("headers", {})
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        stream = None if data is None else io.BytesIO(data)
        async with self._session.request(method, url, data=stream, headers=headers) as response:
            return Got(response.status, await response.text(), dict(response.headers))

    async def get(self, path: str) -> Got:
        """GET below /admin/v2."""
        return await self.ask("GET", ADMIN + path)

    async def put(self, path: str, body: Any = None) -> Got:
        """PUT below /admin/v2."""
        return await self.ask("PUT", ADMIN + path, body)

    async def post(self, path: str, body: Any = None) -> Got:
        """POST below /admin/v2."""
        return await self.ask("POST", ADMIN + path, body)

    async def delete(self, path: str) -> Got:
        """DELETE below /admin/v2."""
        return await self.ask("DELETE", ADMIN + path)


async def until(holds: Callable[[], object]) -> None:
    """Let the loop turn until something holds."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


def with_box(scenario: Callable[[Box], Awaitable[None]], settings: Settings | None = None) -> None:
    """Run a scenario against a fresh box."""

    async def run() -> None:
        shell = InstantShell(settings or Settings())
        server = HttpServer(shell)
        sockets = await listen("127.0.0.1", 0, "--web-port")
        port = sockets[0].getsockname()[1]
        await server.start(sockets)
        try:
            async with aiohttp.ClientSession() as session:
                await scenario(Box(shell, session, port))
        finally:
            await server.stop()

    asyncio.run(run())
