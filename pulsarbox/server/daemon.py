"""The daemon: startup, serve, shutdown.

The binary port serves first; the Admin API, whose library takes longer to import, follows a moment later.
"""

import asyncio
import gc
import logging
import signal
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
from pulsarbox.server.listening import listen
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
            page_cache_bytes=settings.journalPageCacheMbytes << 20,
            reserve_bytes=settings.journalReserveMbytes << 20,
            pack_live_percent=settings.journalPackLivePercent,
            pack_bytes_per_second=settings.journalPackMbytesPerSecond << 20,
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

    async def serve(self) -> int:
        """Startup, serve, shutdown."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        await self._startup(loop)
        await stopped.wait()
        log.info("stopping: no new connections, finishing what is under way")
        await self._shutdown()
        return 0

    async def _startup(self, loop: asyncio.AbstractEventLoop) -> None:
        settings = self._settings
        host = settings.advertisedAddress or _reachable(settings.bindAddress)
        recovery = self._engine.recover()  # first of all: another process may have the data directory
        sockets = await listen(settings.bindAddress, settings.brokerServicePort, "--port")
        web_sockets = await listen(settings.bindAddress, settings.webServicePort, "--web-port")
        port, web_port = (each[0].getsockname()[1] for each in (sockets, web_sockets))
        endpoints = Endpoints(f"pulsar://{host}:{port}", f"http://{host}:{web_port}")
        now = Now(time.monotonic(), time.time_ns() // 1_000_000)
        self.broker = Broker(settings, recovery, endpoints, now)
        self.shell = LoopShell(self.broker, self._engine, loop)
        for each in sockets:
            self._servers.append(await loop.create_server(lambda: Connection(self.shell), sock=each))
        self.shell.start()
        log.info("serving pulsar://%s:%d after %.0f ms", host, port, (time.monotonic() - self._began) * 1000)
        # Its library takes a while to import: beside the loop, so that binary clients are served meanwhile. Who comes
        # by HTTP before that waits in the backlog.
        http = await loop.run_in_executor(None, import_module, "pulsarbox.server.http")
        self._http = http.HttpServer(self.shell)
        await self._http.start(web_sockets)
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
