"""A serving box, in any loop and process: from opening its first port to its last sync.

Nothing here touches process-wide state: signals, logging, the garbage collector, limits. ``daemon`` does, for a
dedicated process; ``pulsarbox.embed`` must not.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pulsarbox import __version__
from pulsarbox.broker.broker import Broker
from pulsarbox.broker.composition import compose
from pulsarbox.broker.endpoints import Ports, endpoints_of
from pulsarbox.broker.host import Host
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.config.cross_checks import uses_tls
from pulsarbox.config.data_directories import data_directories, local_directories
from pulsarbox.config.listeners import Address, bound
from pulsarbox.config.setting import OFF
from pulsarbox.server.loop_shell import LoopShell
from pulsarbox.server.network.connection import ServerConnection
from pulsarbox.server.network.listeners import listen
from pulsarbox.server.one_shot_thread import BackgroundWork, run_in_thread
from pulsarbox.server.plugins import plugins_of
from pulsarbox.server.process.engine_sizes import sizes_of
from pulsarbox.server.process.runtime_file import RuntimeFile, remove, write
from pulsarbox.server.recording.event_recorder import EventRecorder
from pulsarbox.server.security.configured import authentication_of
from pulsarbox.server.security.credential_files import CredentialFiles
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.format import ENSEMBLE
from pulsarbox.storage.lmdb.directory import is_made
from pulsarbox.storage.lmdb.engine import LmdbEngine

if TYPE_CHECKING:
    from pulsarbox.server.http import HttpServer
    from pulsarbox.server.initialization.initial_state import InitialState
    from pulsarbox.server.network.certificates import Certificates
    from pulsarbox.server.network.tls_port import TlsPort
    from pulsarbox.server.process.runtime_files import RuntimeFiles
    from pulsarbox.server.recording.ensemble_watcher import EnsembleWatcher
    from pulsarbox.server.recording.history_recorder import HistoryRecorder
    from pulsarbox.server.recording.rate_sampler import RateSampler
    from pulsarbox.server.recording.recording_places import RecordingPlaces
    from pulsarbox.server.recording.stats_ticker import StatsTicker
    from pulsarbox.storage.ensemble.engine import EnsembleEngine
    from pulsarbox.storage.ensemble.watch import WatchedEnsemble

log = logging.getLogger(__name__)


def disk_engine(settings: Settings, accept_loss_of: Sequence[str] = ()) -> "LmdbEngine | EnsembleEngine":
    """Return the engine of the settings' data directory, or of all of them if there are several.

    A single directory that was one of several is opened as such; ``accept_loss_of`` are directories that it may lack.
    """
    paths = data_directories(settings)
    if len(paths) > 1 or is_made(Path(paths[0]), ENSEMBLE):
        from pulsarbox.server.ensemble_engine import ensemble_engine

        return ensemble_engine(settings, sizes_of(settings), accept_loss_of)
    return lmdb_engine(settings)


def lmdb_engine(settings: Settings) -> LmdbEngine:
    """Return the engine of the settings' data directory."""
    return LmdbEngine(Path(settings.dataDirectory), **sizes_of(settings))


def new_loop(settings: Settings) -> asyncio.AbstractEventLoop:
    """Return a uvloop loop if configured and installed. Raises OSError if it is required but not installed."""
    if settings.eventLoop != "asyncio":
        try:
            import uvloop

            return uvloop.new_event_loop()
        except ImportError:
            if settings.eventLoop == "uvloop":
                raise OSError("eventLoop is 'uvloop', which is not installed: pip install uvloop") from None
    return asyncio.new_event_loop()


PortOptions = tuple[str, str, str, str]
"""Command line options of the ports: both plain ones, then both with TLS."""


class Serving:
    """One box: ``open``, ``open_http``, ``close``. The owner closes the engine afterwards."""

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        *,
        memory: bool = False,
        embedded: bool = False,
        on_shutdown: Callable[[str], None] | None = None,
        port_options: PortOptions = ("--port", "--web-port", "--tls-port", "--web-tls-port"),
    ) -> None:
        """With ``memory`` there is no data directory; ``port_options`` are named in errors about ports.

        ``on_shutdown`` shuts the process down in order, with a reason for its log; None if the box does not own it.
        """
        self.broker: Broker
        self.shell: LoopShell
        self.running: RuntimeFile
        self.sockets: list[socket.socket] = []
        """The listening sockets."""
        self._settings = settings
        self._engine = engine
        self._data = None if memory else Path(settings.dataDirectory).absolute()
        self._embedded = embedded
        self._on_shutdown = on_shutdown
        self._options = port_options
        self._servers: list[asyncio.Server] = []
        self._tls_ports: list[TlsPort] = []
        self._certificates: Certificates | None = None
        self._web_sockets: list[socket.socket] = []
        self._web_tls_sockets: list[socket.socket] = []
        self._http: HttpServer | None = None
        self._keeper: EventRecorder
        self._watched = self._watch()
        self._watcher: EnsembleWatcher | None = None
        self._places: RecordingPlaces | None = None
        self._runtime_files: RuntimeFiles | None = None
        self._recorder: HistoryRecorder | None = None
        self._samplers: list[RateSampler | StatsTicker] = []

    async def open(self) -> RuntimeFile:
        """Serve the binary port and return its addresses; connections to the HTTP port wait in its backlog.

        Raises ConfigError, PersistenceError or OSError on failure; nothing is left open then.
        """
        settings = self._settings
        initial = _initial_state(settings)
        operator = os.urandom(32).hex() if settings.authenticationEnabled else ""
        credential_files = CredentialFiles()
        authentication = authentication_of(settings, operator, credential_files)
        # Report a data directory in use before a port in use. A missing directory is created only after the ports are
        # bound, so that a failed start leaves none behind.
        made = self._data is None or any(is_made(Path(path)) for path in local_directories(settings))
        plugins = plugins_of(settings, self._data)
        self._engine.codecs.load = plugins.codec
        loop = asyncio.get_running_loop()
        background = BackgroundWork(loop)
        recovery = self._engine.recover() if made else None
        if uses_tls(settings):
            self._certificates = _certificates(settings)
        try:
            wanted = [settings.brokerServicePort, settings.webServicePort]
            wanted += [settings.brokerServicePortTls, settings.webServicePortTls]
            found = [await self._port(port, option) for port, option in zip(wanted, self._options, strict=True)]
            sockets, self._web_sockets, tls_sockets, self._web_tls_sockets = found
            ports = Ports(*(each[0].getsockname()[1] if each else OFF for each in found))
            own_ports = [(address, await self._listen(address)) for address in bound(settings.bindAddresses)]
            endpoints = endpoints_of(settings, _reachable(settings.bindAddress), ports)
            recovery = recovery or self._engine.recover()
            now = Now(time.monotonic(), time.time_ns() // 1_000_000)  # real time
            self.broker = compose(settings, recovery, endpoints, now, authentication, plugins, self._host(background))
        except BaseException:
            for each in self.sockets:
                each.close()
            raise
        self.shell = self._shell(loop, background)
        self.shell.start()
        self._keep()
        if initial is not None:
            await self._initialize(initial)
        await self._serve_all(sockets, tls_sockets, own_ports)
        if self._certificates is not None:
            self._certificates.watch(self.broker.timers, self.shell.now())
        credential_files.watch(self.broker, self.shell.now())
        self.running = RuntimeFile(
            pid=os.getpid(),
            started=time.time_ns() // 1_000_000,
            version=__version__,
            broker_url=endpoints.broker_url,
            web_url=endpoints.web_url,
            host=_reachable(settings.bindAddress),
            port=ports.broker,
            web_port=ports.web,
            data=str(self._data or ""),
            clock=settings.brokerClock,
            faults=settings.faultInjectionEnabled,
            embedded=self._embedded,
            operator=operator,
            broker_url_tls=endpoints.broker_url_tls,
            web_url_tls=endpoints.web_url_tls,
            tls_port=ports.broker_tls,
            web_tls_port=ports.web_tls,
            certificate=str(self._certificates.path) if self._certificates else "",
        )
        self._record_addresses(background)
        text = (
            f"pulsarbox {__version__} serves {self.running.broker_urls} after {time.monotonic() - now.monotonic:.3f} s"
        )
        self.broker.events.report("started", "", text, self.shell.now(), pid=os.getpid(), version=__version__)
        return self.running

    async def _initialize(self, initial: "InitialState") -> None:
        """Apply the declared state while no client is served. Raises ConfigError, with everything closed."""
        try:
            await initial.apply(await self._http_server())
        except BaseException:
            await self.close()
            raise

    def _host(self, background: BackgroundWork) -> Host:
        """Return what this process offers the broker."""
        engine = self._engine
        return Host(
            folder=None if self._data is None else str(self._data),
            store_statistics=getattr(engine, "statistics", None),
            ledger_volumes=engine.ledger_volumes if isinstance(engine, LmdbEngine) else None,
            bookies=self._ensemble(),
            ensemble=self._watched,
            on_shutdown=self._on_shutdown,
            run_in_thread=background.begin,
        )

    def _shell(self, loop: asyncio.AbstractEventLoop, background: BackgroundWork) -> LoopShell:
        ensemble = self._ensemble()
        if ensemble is None:
            return LoopShell(self.broker, self._engine, loop, background)
        shell = LoopShell(self.broker, self._engine, loop, background, ensemble.keeper)
        ensemble.copied = shell.copies_durable
        ensemble.checkpointed.ask = shell.ask_checkpoint
        return shell

    def _ensemble(self) -> "EnsembleEngine | None":
        """Return the engine if it has several data directories."""
        return cast("EnsembleEngine", self._engine) if hasattr(self._engine, "copied") else None

    def _watch(self) -> "WatchedEnsemble | None":
        """Watch the data directories from before they are opened, to report what that finds."""
        ensemble = self._ensemble()
        if ensemble is None:
            return None
        from pulsarbox.storage.ensemble.watch import WatchedEnsemble

        return WatchedEnsemble(ensemble)

    def _stop_recording(self) -> None:
        if self._recorder is not None:
            self._recorder.stop()
        if self._watcher is not None:
            self._watcher.stop()
        self._keeper.stop()

    def _keep(self) -> None:
        """Start recording events."""
        if self._data is None:  # with a disk, the event recorder determines its size periodically
            from pulsarbox.server.memory_engine_adapter import memory_size

            self.broker.unsubscribed.set_capacity(memory_size(), self.shell.now())
        self._keeper = EventRecorder(self.shell, self._data, self._settings.eventsMaxMbytes << 20)
        self._keeper.start()
        if self._watched is not None:
            self._watch_directories(self._watched)

    def _watch_directories(self, watched: "WatchedEnsemble") -> None:
        """Report changes of several data directories, and record in those that are in use."""
        from pulsarbox.server.recording.ensemble_watcher import EnsembleWatcher
        from pulsarbox.server.recording.recording_places import RecordingPlaces

        assert self._data is not None
        self._places = RecordingPlaces(self._data, self._read_from)
        self._places.join(self._keeper.follow)
        self._watcher = EnsembleWatcher(self.shell, watched)
        self._watcher.followers.append(self._places.follow)
        self._watcher.start()

    def _read_from(self, place: Path) -> None:
        """Let events and the history be read in a data directory in use."""
        self.broker.read_records_in(str(place))

    async def _port(self, port: int, option: str) -> list[socket.socket]:
        """Listen on one of the four ports; empty if it is disabled."""
        if port == OFF:
            return []
        sockets = await listen(self._settings.bindAddress, port, option)
        self.sockets += sockets
        return sockets

    async def _listen(self, address: Address) -> list[socket.socket]:
        sockets = await listen(address.host, address.port, "bindAddresses")
        self.sockets += sockets
        log.info(
            "listener %s accepts connections on %s:%d", address.listener, address.host, sockets[0].getsockname()[1]
        )
        return sockets

    async def _serve_all(
        self,
        sockets: list[socket.socket],
        tls_sockets: list[socket.socket],
        own_ports: list[tuple[Address, list[socket.socket]]],
    ) -> None:
        """Serve the binary protocol on all of its ports."""
        await self._serve(sockets, "")
        self._serve_tls(tls_sockets, "")
        for address, listening in own_ports:
            if address.scheme == "pulsar+ssl":
                self._serve_tls(listening, address.listener)
            else:
                await self._serve(listening, address.listener)

    async def _serve(self, sockets: list[socket.socket], listener: str) -> None:
        loop = asyncio.get_running_loop()
        for each in sockets:
            self._servers.append(await loop.create_server(lambda: ServerConnection(self.shell, listener), sock=each))

    def _serve_tls(self, sockets: list[socket.socket], listener: str) -> None:
        if not sockets:
            return
        from pulsarbox.server.network.tls_port import TlsPort

        assert self._certificates is not None
        shell, seconds = self.shell, self._settings.tlsHandshakeTimeoutSeconds
        port = TlsPort(
            sockets,
            lambda: ServerConnection(shell, listener),
            self._certificates,
            shell.gate,
            shell.protocol_urls,
            web=False,
            seconds=seconds,
        )
        port.start()
        self._tls_ports.append(port)

    async def open_http(self) -> None:
        """Serve HTTP as well. The library is imported beside the loop, so that binary clients are served meanwhile."""
        http = await self._http_server()
        certificates = self._certificates if self._web_tls_sockets else None
        await http.start(self._web_sockets, self._web_tls_sockets, certificates)
        self._start_samplers()
        if self._data is not None and self._settings.historyMaxMbytes:
            recorder = import_module("pulsarbox.server.recording.history_recorder")
            self._recorder = recorder.HistoryRecorder(self.shell, self._data, self._settings)
            if self._places is not None:
                self._places.join(self._recorder.follow)
            self._recorder.start()

    def _start_samplers(self) -> None:
        from pulsarbox.server.recording.rate_sampler import RateSampler
        from pulsarbox.server.recording.stats_ticker import StatsTicker

        self._samplers = [RateSampler(self.shell), StatsTicker(self.shell)]
        for sampler in self._samplers:
            sampler.start()

    async def _http_server(self) -> "HttpServer":
        """Return the Admin API, which is started once its port is to be served."""
        if self._http is None:
            http = await run_in_thread("imports", lambda: import_module("pulsarbox.server.http"))
            self._http = http.HttpServer(self.shell)
        return self._http

    def _record_addresses(self, background: BackgroundWork) -> None:
        """Record the addresses in the data directory, or in all of them."""
        if self._data is None:
            return
        try:
            write(self._data, self.running)
        except OSError as error:
            log.warning("cannot record the ports for `pulsarbox status`: %s", error)
        if self._watcher is not None:
            from pulsarbox.server.process.runtime_files import RuntimeFiles

            self._runtime_files = RuntimeFiles(self.running, self._data, background.begin)
            self._watcher.followers.append(self._runtime_files.follow)
            self._watcher.look()

    @property
    def shutdown_seconds(self) -> float:
        """Timeout in seconds of ``close``, by the current settings."""
        return self.broker.settings.brokerShutdownTimeoutMs / 1000

    async def close(self) -> None:
        """Refuse new connections, finish pending work, disconnect the clients, and write the checkpoint."""
        shell, broker = self.shell, self.broker
        deadline = time.monotonic() + self.shutdown_seconds
        for server in self._servers:
            server.close()
        for port in self._tls_ports:
            port.stop()
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
        for sampler in self._samplers:
            sampler.stop()
        if self._http is not None:
            await self._http.stop()
        for each in self.sockets:
            each.close()
        self._stop_recording()
        shell.stop()
        if self._runtime_files is not None:
            self._runtime_files.remove()
        elif self._data is not None:
            remove(self._data)

    async def _settle(self, deadline: float) -> None:
        """Wait until everything is durable."""
        await asyncio.sleep(0)
        while not self.broker.commits.idle and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def _initial_state(settings: Settings) -> "InitialState | None":
    """Return the state that initFile declares; None without it. Raises ConfigError."""
    if not settings.initFile.strip():
        return None
    from pulsarbox.server.initialization.initial_state import InitialState

    return InitialState(settings)


def _certificates(settings: Settings) -> "Certificates":
    from pulsarbox.server.network.certificates import Certificates

    return Certificates(settings, time.time_ns() // 1_000_000)


def _reachable(bind_address: str) -> str:
    """Return a host name by which a client on this machine reaches the address."""
    return "localhost" if bind_address in ("0.0.0.0", "::", "") else bind_address
