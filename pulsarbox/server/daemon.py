"""The daemon: startup, serve, shutdown.

The binary port serves first; the Admin API, whose library takes longer to import, follows a moment later.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from importlib import import_module
from pathlib import Path

from pulsarbox import __version__
from pulsarbox.broker.broker import Broker
from pulsarbox.broker.endpoints import Endpoints, endpoints_of
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.config.listeners import Address, bound
from pulsarbox.errors import PersistenceError
from pulsarbox.server.connection import Connection
from pulsarbox.server.disk_speed import slow, sync_times
from pulsarbox.server.limits import FILES_MIN, raise_file_limit, too_few
from pulsarbox.server.listening import PortTaken, listen
from pulsarbox.server.log_file import LogFile
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


def run(settings: Settings, report: Report, *, memory: bool = False, log_file: Path | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code.

    With ``memory`` nothing is kept, or written anywhere. ``log_file``: what stdout and stderr are, if a file.
    """
    file = set_up(settings, log_file)
    where = "in memory" if memory else settings.dataDirectory
    log.info("starting pulsarbox %s: process %d, data %s", __version__, os.getpid(), where)
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
        return _new_loop(settings).run_until_complete(Daemon(settings, engine, began, report, memory, file).serve())
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

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        began: float,
        report: Report,
        memory: bool,
        file: LogFile | None = None,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._began = began
        self._report = report
        self._log_file = file
        self._data = None if memory else Path(settings.dataDirectory).absolute()
        self._servers: list[asyncio.Server] = []

    async def serve(self) -> int:
        """Startup, serve, shutdown."""
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[str] = loop.create_future()
        self._heed_signals(loop, stopped)
        await self._startup(loop)
        await self._measure_disk(loop)
        reason = await stopped
        log.info("stopping (%s): no new connections, finishing what is under way", reason)
        began = time.monotonic()
        await self._shutdown()
        now = time.monotonic()
        log.info("stopped (%s) after %.0f ms, having run for %.0f s", reason, (now - began) * 1000, now - self._began)
        return 0

    def _heed_signals(self, loop: asyncio.AbstractEventLoop, stopped: "asyncio.Future[str]") -> None:
        def stop(reason: str) -> None:
            if not stopped.done():
                stopped.set_result(reason)

        loop.add_signal_handler(signal.SIGTERM, stop, "SIGTERM")
        loop.add_signal_handler(signal.SIGINT, stop, "SIGINT")
        if self._log_file is not None:
            loop.add_signal_handler(signal.SIGHUP, self._reopen_log)
        elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup it is ignored
            loop.add_signal_handler(signal.SIGHUP, stop, "SIGHUP: the terminal is gone")

    def _reopen_log(self) -> None:
        assert self._log_file is not None
        try:
            self._log_file.reopen()
        except OSError as error:
            log.warning("SIGHUP: the log cannot be opened again, it goes on in the old file: %s", error)
        else:
            log.info("SIGHUP: the log is opened again")

    async def _startup(self, loop: asyncio.AbstractEventLoop) -> None:
        settings = self._settings
        recovery = self._engine.recover()  # first of all: another process may have the data directory
        sockets = await listen(settings.bindAddress, settings.brokerServicePort, "--port")
        web_sockets = await listen(settings.bindAddress, settings.webServicePort, "--web-port")
        port, web_port = (each[0].getsockname()[1] for each in (sockets, web_sockets))
        endpoints = endpoints_of(settings, _reachable(settings.bindAddress), port, web_port)
        now = Now(time.monotonic(), time.time_ns() // 1_000_000)
        self.broker = Broker(settings, recovery, endpoints, now)
        self.shell = LoopShell(self.broker, self._engine, loop)
        await self._serve_pulsar(loop, sockets)
        for address in bound(settings.bindAddresses):
            await self._serve_listener(loop, address)
        self.shell.start()
        log.info("serving %s after %.0f ms", endpoints.broker_url, (time.monotonic() - self._began) * 1000)
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
            "pulsarbox %s: %s, %s, data in %s, ready after %.0f ms",
            __version__,
            endpoints.broker_url,
            endpoints.web_url,
            "memory only" if self._data is None else settings.dataDirectory,
            (time.monotonic() - self._began) * 1000,
        )
        self._tell(endpoints, port, web_port)

    async def _serve_pulsar(
        self, loop: asyncio.AbstractEventLoop, sockets: list[socket.socket], listener: str = ""
    ) -> None:
        for each in sockets:
            self._servers.append(await loop.create_server(lambda: Connection(self.shell, listener), sock=each))

    async def _serve_listener(self, loop: asyncio.AbstractEventLoop, address: Address) -> None:
        sockets = await listen(address.host, address.port, "bindAddresses")
        await self._serve_pulsar(loop, sockets, address.listener)
        port = sockets[0].getsockname()[1]
        log.info("listener %s is served on %s:%d", address.listener, address.host, port)

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

    async def _settle(self, deadline: float) -> None:
        """Wait until everything is durable."""
        await asyncio.sleep(0)
        while not self.broker.core.commits.idle and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def _reachable(bind_address: str) -> str:
    """A host name under which a client on this machine reaches the address."""
    return "localhost" if bind_address in ("0.0.0.0", "::", "") else bind_address
