"""The daemon: startup, serve, shutdown.

The binary port serves first; the Admin API, whose library takes longer to import, follows a moment later.
"""

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
import time
from importlib import import_module
from pathlib import Path

from pulsarbox import __version__
from pulsarbox.broker.broker import Broker, Endpoints
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.server.connection import Connection
from pulsarbox.server.logs import set_up
from pulsarbox.server.loop_shell import LoopShell
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.lmdb_engine import LmdbEngine

log = logging.getLogger(__name__)

EXIT_FAILED = 1


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code."""
    set_up(settings)
    sys.setswitchinterval(settings.journalSwitchIntervalMicros / 1_000_000)
    began = time.monotonic()
    try:
        engine = LmdbEngine(
            Path(settings.dataDirectory),
            volume_size=settings.journalVolumeSizeMbytes << 20,
            index_flush_entries=settings.journalIndexFlushEntries,
        )
    except (PersistenceError, OSError) as error:
        log.error("cannot open the data directory: %s", error)
        return EXIT_FAILED
    try:
        return _new_loop(settings).run_until_complete(Daemon(settings, engine, began).serve())
    except (PersistenceError, OSError) as error:
        log.error("cannot start: %s", error)
        return EXIT_FAILED
    finally:
        engine.close()


def _new_loop(settings: Settings) -> asyncio.AbstractEventLoop:
    """uvloop where it is wanted and installed."""
    if settings.eventLoop != "asyncio":
        try:
            import uvloop

            return uvloop.new_event_loop()
        except ImportError:
            if settings.eventLoop == "uvloop":
                raise OSError("eventLoop is 'uvloop', which is not installed: pip install uvloop") from None
    return asyncio.new_event_loop()


class Daemon:
    """One box, from its first port to its last sync."""

    def __init__(self, settings: Settings, engine: Engine, began: float) -> None:
        self._settings = settings
        self._engine = engine
        self._began = began
        self._servers: list[asyncio.Server] = []
        self._serving = False

    async def serve(self) -> int:
        """Startup, serve, shutdown."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        try:
            await self._startup(loop)
        except OSError:
            if self._serving:  # the other port is taken
                await self._settle(time.monotonic() + 1)
                self.shell.stop()
            raise
        await stopped.wait()
        log.info("stopping: no new connections, finishing what is under way")
        await self._shutdown()
        return 0

    async def _startup(self, loop: asyncio.AbstractEventLoop) -> None:
        settings = self._settings
        host = settings.advertisedAddress or _reachable(settings.bindAddress)
        endpoints = Endpoints(
            f"pulsar://{host}:{settings.brokerServicePort}", f"http://{host}:{settings.webServicePort}"
        )
        now = Now(time.monotonic(), time.time_ns() // 1_000_000)
        self.broker = Broker(settings, self._engine.recover(), endpoints, now)
        self.shell = LoopShell(self.broker, self._engine, loop)
        port = await self._listen(loop)
        self.broker.endpoints = endpoints._replace(broker_url=f"pulsar://{host}:{port}")
        self.shell.start()
        self._serving = True
        log.info("serving pulsar://%s:%d after %.0f ms", host, port, (time.monotonic() - self._began) * 1000)
        # Its library takes a while to import: beside the loop, so that binary clients are served meanwhile.
        http = await loop.run_in_executor(None, import_module, "pulsarbox.server.http")
        self._http = http.HttpServer(self.shell)
        web_port = await self._http.start(settings.bindAddress, settings.webServicePort)
        self.broker.endpoints = self.broker.endpoints._replace(web_url=f"http://{host}:{web_port}")
        # What lives now lives until the end: the collector need not look at it again, nor look up so often.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        log.info(
            "pulsarbox %s: pulsar://%s:%d, http://%s:%d, data in %s, ready after %.0f ms",
            __version__,
            host,
            port,
            host,
            web_port,
            settings.dataDirectory,
            (time.monotonic() - self._began) * 1000,
        )

    async def _listen(self, loop: asyncio.AbstractEventLoop) -> int:
        """Listen on every address of the host, all on one port; gives the port."""
        settings = self._settings
        host, port = settings.bindAddress, settings.brokerServicePort
        try:
            found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for address in dict.fromkeys(info[4][0] for info in found):
                try:
                    server = await loop.create_server(lambda: Connection(self.shell), str(address), port, backlog=1024)
                except OSError as error:
                    if error.errno == errno.EADDRNOTAVAIL and len(found) > 1:
                        continue  # the name has an address of a family that this machine does not have
                    raise
                self._servers.append(server)
                port = server.sockets[0].getsockname()[1]
            if not self._servers:
                raise OSError("none of its addresses is on this machine")
        except OSError as error:
            raise OSError(
                f"port {port} on {host} cannot be listened on ({error}):"
                " stop what holds it, or choose another with --port"
            ) from None
        return int(port)

    async def _shutdown(self) -> None:
        shell, broker = self.shell, self.broker
        deadline = time.monotonic() + self._settings.brokerShutdownTimeoutMs / 1000
        for server in self._servers:
            server.close()
        for connection in list(shell.connections.values()):
            connection.pause_reading()
        await self._settle(deadline)
        broker.drain(shell.now())
        shell.kick()
        await self._settle(deadline)
        for connection in list(shell.connections.values()):
            connection.close()
        while shell.connections and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for connection in list(shell.connections.values()):
            connection.abort()
        await self._http.stop()
        shell.stop()
        log.info("stopped")

    async def _settle(self, deadline: float) -> None:
        """Wait until everything is durable."""
        await asyncio.sleep(0)
        while not self.broker.core.commits.idle and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def _reachable(bind_address: str) -> str:
    """A host name under which a client on this machine reaches the address."""
    return "localhost" if bind_address in ("0.0.0.0", "::", "") else bind_address
