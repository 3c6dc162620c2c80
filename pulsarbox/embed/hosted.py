"""A box in the running event loop: open, close and reopen on the same ports; snapshot and restore."""

import asyncio
import contextlib
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsarbox.config import Settings
from pulsarbox.config.data_directories import local_directories
from pulsarbox.embed.errors import BoxError
from pulsarbox.embed.ports import on_its_ports
from pulsarbox.server.memory_engine_adapter import SharedMemoryEngine
from pulsarbox.server.one_shot_thread import run_in_thread
from pulsarbox.server.process.home_directory import at_home
from pulsarbox.server.process.port_owner import described
from pulsarbox.server.process.rlimit import FILES_MIN, file_limit, too_few
from pulsarbox.server.process.runtime_file import RuntimeFile
from pulsarbox.server.serving import Serving, disk_engine
from pulsarbox.server.tasks import spawn
from pulsarbox.storage.lmdb.directory import DirectoryHeld
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.private_files import opener
from pulsarbox.storage.memory_engine import MemoryDisk

if TYPE_CHECKING:
    from pulsarbox.storage.ensemble.engine import EnsembleEngine

_KEPT: Final = ("INSTANCE", "ENSEMBLE", "meta", "volumes", "packed")
"""Entries of a data directory that hold data."""
_IMAGE: Final = "memory"
_PORT_OPTIONS: Final = ("port=", "web_port=", "brokerServicePortTls=", "webServicePortTls=")


class HostedBox:
    """A box whose methods must be called in the event loop that it was opened in."""

    def __init__(self, settings: Settings, *, memory: bool, embedded: bool) -> None:
        self._settings = at_home(settings)
        self._embedded = embedded
        self._disk = MemoryDisk() if memory else None
        self._engine: SharedMemoryEngine | LmdbEngine | EnsembleEngine
        self._serving: Serving | None = None
        self._http: asyncio.Task[None] | None = None

    async def open(self) -> RuntimeFile:
        """Start serving. In a child process the HTTP port answers a little later. Raises BoxError if the box cannot
        start."""
        scarce = too_few(file_limit(), self._settings)
        if scarce and file_limit() < FILES_MIN:
            raise BoxError(f"the box cannot start: {scarce}")
        self._engine = SharedMemoryEngine(self._disk) if self._disk is not None else disk_engine(self._settings)
        serving = Serving(
            self._settings,
            self._engine,
            memory=self._disk is not None,
            embedded=self._embedded,
            port_options=_PORT_OPTIONS,
        )
        try:
            running = await serving.open()
        except Exception as error:
            self._engine.close()
            raise BoxError(f"the box cannot start: {_why(error, self._settings)}") from error
        self._settings = on_its_ports(self._settings, running)
        self._serving = serving
        self._http = spawn("http", serving.open_http())
        if self._embedded:
            await self._http
        return running

    async def wait_for_http(self) -> None:
        """Wait until the HTTP port answers."""
        if self._http is not None:
            await self._http

    @property
    def shutdown_seconds(self) -> float:
        """Maximum time for a shutdown in seconds; a dynamic setting, so it may change while the box runs."""
        serving = self._serving
        return serving.shutdown_seconds if serving is not None else self._settings.brokerShutdownTimeoutMs / 1000

    async def close(self) -> None:
        """Stop gracefully; idempotent."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        with contextlib.suppress(Exception):  # already logged by the task
            await self.wait_for_http()
        try:
            await serving.close()
        finally:
            self._engine.close()

    async def restart(self) -> RuntimeFile:
        """Stop gracefully and open again on the same ports."""
        await self.close()
        return await self.open()

    async def snapshot(self, to: Path) -> None:
        """Copy everything that has been acknowledged to clients into the empty directory ``to``."""
        if self._serving is None:
            raise BoxError("the box is not serving, because reopening it failed: restart or restore it")
        async with self._serving.shell.stillness():
            if self._disk is not None:
                disk = self._disk
                await run_in_thread("snapshot", lambda: _write_image(disk, to))
            else:
                places = _places(self._settings, to)
                await run_in_thread("snapshot", lambda: _each(_copy, places))

    async def restore(self, source: Path) -> RuntimeFile:
        """Disconnect clients, replace the data by a snapshot's, and serve again on the same ports."""
        await self.close()
        if self._disk is not None:
            self._disk = await run_in_thread("restore", lambda: _read_image(source))
        else:
            places = _places(self._settings, source)
            await run_in_thread("restore", lambda: _each(_put_back, [(place, data) for data, place in places]))
        return await self.open()

    def detach_after_fork(self) -> None:
        """In a forked child: close descriptors that would otherwise keep the parent's ports, connections and files
        open."""
        if self._serving is None:
            return
        for each in self._serving.sockets:
            os.close(each.fileno())  # close() of the object would wait for the loop, which does not run here
        for connection in self._serving.shell.connections.values():
            connection.forget()
        if not isinstance(self._engine, SharedMemoryEngine):
            self._engine.release_inherited_lock()


def _why(error: Exception, settings: Settings) -> str:
    if isinstance(error, DirectoryHeld):
        return (
            f"data directory {error.path} is in use by {described(error.pid)}:"
            " stop it, or choose another directory with data_dir="
        )
    return str(error) or repr(error)


def _write_image(disk: MemoryDisk, to: Path) -> None:
    with open(to / _IMAGE, "wb", opener=opener) as file:
        pickle.dump(disk, file, pickle.HIGHEST_PROTOCOL)


def _read_image(source: Path) -> MemoryDisk:
    disk = pickle.loads((source / _IMAGE).read_bytes())  # noqa: S301  # written by a box of this program
    assert isinstance(disk, MemoryDisk)
    return disk


def _places(settings: Settings, snapshot: Path) -> list[tuple[Path, Path]]:
    """Return each data directory with its place in a snapshot: the snapshot itself if there is only one.

    Replicas are not part of a snapshot.
    """
    paths = [Path(path) for path in local_directories(settings)]
    if len(paths) == 1:
        return [(paths[0], snapshot)]
    return [(path, snapshot / f"directory-{number}") for number, path in enumerate(paths, 1)]


def _each(act: Callable[[Path, Path], None], places: list[tuple[Path, Path]]) -> None:
    for place in places:
        act(*place)


def _copy(data: Path, to: Path) -> None:
    to.mkdir(mode=0o700, exist_ok=True)
    for name in _KEPT:
        found = data / name
        if found.is_dir():
            # The lock file belongs to the processes that have the environment open.
            shutil.copytree(found, to / name, ignore=shutil.ignore_patterns("lock.mdb"))
        elif found.exists():
            shutil.copy2(found, to / name)


def _put_back(source: Path, data: Path) -> None:
    for name in _KEPT:
        if (data / name).is_dir():
            shutil.rmtree(data / name)
        else:
            (data / name).unlink(missing_ok=True)
    _copy(source, data)
