"""The daemon: startup, serve, shutdown.

The binary port serves first; the Admin API, whose library takes longer to import, follows a moment later.
"""

import asyncio
import gc
import logging
import os
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
from pulsarbox.server.disk_speed import slow, sync_times
from pulsarbox.server.limits import FILES_MIN, raise_file_limit, too_few
from pulsarbox.server.listening import PortTaken, listen
from pulsarbox.server.logs import set_up
from pulsarbox.server.loop_shell import LoopShell
from pulsarbox.server.processes import described
from pulsarbox.server.running import Report, Running, remove, write
from pulsarbox.storage.directory import DirectoryHeld
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.lmdb_engine import LmdbEngine

log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_TAKEN = 4
"""The data directory or a port is another process's."""

_SYNCS = 16


def run(settings: Settings, report: Report, *, memory: bool = False) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code. With ``memory`` nothing is kept, or written anywhere."""
    set_up(settings)
    sys.setswitchinterval(settings.journalSwitchIntervalMicros / 1_000_000)
    began = time.monotonic()
    limit = raise_file_limit()
    scarce = too_few(limit, settings)
    if limit < FILES_MIN:
        return _failed(report, scarce)
    if scarce:
        log.warning("%s", scarce)
    engine: Engine | None = None
    try:
        engine = _engine(settings, memory)
        return _new_loop(settings).run_until_complete(Daemon(settings, engine, began, report, memory).serve())
    except DirectoryHeld as error:
        here = settings.dataDirectory
        advice = f"stop it with `pulsarbox stop --data-dir {here}`, or choose another directory with --data-dir"
        return _failed(report, f"data directory {here} is in use by {described(error.pid)}: {advice}", EXIT_TAKEN)
    except PortTaken as error:
        return _failed(report, str(error), EXIT_TAKEN)
    except (PersistenceError, OSError) as error:
        return _failed(report, str(error))
    finally:
        if engine is not None:
            engine.close()


def _failed(report: Report, reason: str, code: int = EXIT_FAILED) -> int:
    log.error("cannot start: %s", reason)
    report.failed(reason)
    return code


def _engine(settings: Settings, memory: bool) -> Engine:
    if memory:
        from pulsarbox.server.memory import SharedMemoryEngine

        return SharedMemoryEngine()
    return LmdbEngine(
        Path(settings.dataDirectory),
        volume_size=settings.journalVolumeSizeMbytes << 20,
        index_flush_entries=settings.journalIndexFlushEntries,
        page_cache_bytes=settings.journalPageCacheMbytes << 20,
        reserve_bytes=settings.journalReserveMbytes << 20,
        pack_live_percent=settings.journalPackLivePercent,
        pack_bytes_per_second=settings.journalPackMbytesPerSecond << 20,
    )


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

    def __init__(self, settings: Settings, engine: Engine, began: float, report: Report, memory: bool) -> None:
        self._settings = settings
        self._engine = engine
        self._began = began
        self._report = report
        self._data = None if memory else Path(settings.dataDirectory).absolute()
        self._servers: list[asyncio.Server] = []

    async def serve(self) -> int:
        """Startup, serve, shutdown."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        await self._startup(loop)
        await self._measure_disk(loop)
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
        now = Now(time.monotonic(), time.time_ns() // 1_000_000)  # the real time
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
            "memory only" if self._data is None else settings.dataDirectory,
            (time.monotonic() - self._began) * 1000,
        )
        self._tell(endpoints, port, web_port)

    def _tell(self, endpoints: Endpoints, port: int, web_port: int) -> None:
        """Whoever started it, and whoever asks later."""
        running = Running(
            pid=os.getpid(),
            started=time.time_ns() // 1_000_000,
            version=__version__,
            broker_url=endpoints.broker_url,
            web_url=endpoints.web_url,
            host=_reachable(self._settings.bindAddress),
            port=port,
            web_port=web_port,
            data=str(self._data or ""),
            clock=self._settings.brokerClock,
        )
        if self._data is not None:
            try:
                write(self._data, running)
            except OSError as error:
                log.warning("`pulsarbox status` will not know the ports: %s", error)
        self._report.serving(running)

    async def _measure_disk(self, loop: asyncio.AbstractEventLoop) -> None:
        """After the start, beside the loop: a start does not wait for it."""
        if self._data is None:
            return
        try:
            times = await loop.run_in_executor(None, sync_times, self._data, _SYNCS)
        except OSError as error:
            log.debug("the disk's speed is not known: %s", error)
            return
        warning = slow(times, self._settings.dataDirectory)
        if warning:
            log.warning("%s", warning)

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
        if self._data is not None:
            remove(self._data)
        log.info("stopped")

    async def _settle(self, deadline: float) -> None:
        """Wait until everything is durable."""
        await asyncio.sleep(0)
        while not self.broker.core.commits.idle and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def _reachable(bind_address: str) -> str:
    """A host name under which a client on this machine reaches the address."""
    return "localhost" if bind_address in ("0.0.0.0", "::", "") else bind_address
