"""One box in the loop that runs: opened, closed, opened again on the same ports; snapshots of what it holds."""

import asyncio
import contextlib
import os
import pickle
import shutil
from pathlib import Path
from typing import Final

from pulsarbox.config import Settings
from pulsarbox.embed.errors import BoxError
from pulsarbox.embed.ports import on_its_ports
from pulsarbox.server.memory_engine_adapter import SharedMemoryEngine
from pulsarbox.server.one_shot_thread import beside
from pulsarbox.server.process.port_owner import described
from pulsarbox.server.process.rlimit import FILES_MIN, file_limit, too_few
from pulsarbox.server.process.runtime_file import Running
from pulsarbox.server.serving import Serving, lmdb_engine
from pulsarbox.server.tasks import spawn
from pulsarbox.storage.lmdb.directory import DirectoryHeld
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.private_files import opener
from pulsarbox.storage.memory_engine import MemoryDisk

_KEPT: Final = ("INSTANCE", "meta", "volumes", "packed")
"""Of a data directory: what holds data."""
_IMAGE: Final = "memory"
_PORT_OPTIONS: Final = ("port=", "web_port=", "brokerServicePortTls=", "webServicePortTls=")


class HostedBox:
    """A box; all methods are called in the loop that it is opened in."""

    def __init__(self, settings: Settings, *, memory: bool, embedded: bool) -> None:
        self._settings = settings
        self._embedded = embedded
        self._disk = MemoryDisk() if memory else None
        self._engine: SharedMemoryEngine | LmdbEngine
        self._serving: Serving | None = None
        self._http: asyncio.Task[None] | None = None

    async def open(self) -> Running:
        """Serve. In a process of its own the HTTP port answers a moment later. Raises BoxError where it cannot."""
        scarce = too_few(file_limit(), self._settings)
        if scarce and file_limit() < FILES_MIN:
            raise BoxError(f"the box cannot start: {scarce}")
        self._engine = SharedMemoryEngine(self._disk) if self._disk is not None else lmdb_engine(self._settings)
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
        """Return when the HTTP port answers."""
        if self._http is not None:
            await self._http

    @property
    def shutdown_seconds(self) -> float:
        """How long its end may take; it may have been changed while the box ran."""
        serving = self._serving
        return serving.shutdown_seconds if serving is not None else self._settings.brokerShutdownTimeoutMs / 1000

    async def close(self) -> None:
        """End it in order; again is no harm."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        with contextlib.suppress(Exception):  # the task has logged it
            await self.wait_for_http()
        try:
            await serving.close()
        finally:
            self._engine.close()

    async def restart(self) -> Running:
        """End it in order and open it again on the same ports."""
        await self.close()
        return await self.open()

    async def snapshot(self, to: Path) -> None:
        """Copy what it holds into the empty directory ``to``: everything that anybody was told is stored."""
        if self._serving is None:
            raise BoxError("the box does not serve, because it could not be opened again: restart or restore it")
        async with self._serving.shell.stillness():
            if self._disk is not None:
                disk = self._disk
                await beside("snapshot", lambda: _write_image(disk, to))
            else:
                data = Path(self._settings.dataDirectory)
                await beside("snapshot", lambda: _copy(data, to))

    async def restore(self, source: Path) -> Running:
        """Let the clients go, put back what a snapshot holds, serve again on the same ports."""
        await self.close()
        if self._disk is not None:
            self._disk = await beside("restore", lambda: _read_image(source))
        else:
            data = Path(self._settings.dataDirectory)
            await beside("restore", lambda: _put_back(source, data))
        return await self.open()

    def let_go(self) -> None:
        """In a forked child: close what would hold the ports, the clients and the data directory beyond the parent."""
        if self._serving is None:
            return
        for each in self._serving.sockets:
            os.close(each.fileno())  # close() of an object would wait for the loop, which is not here
        for connection in self._serving.shell.connections.values():
            connection.forget()
        if isinstance(self._engine, LmdbEngine):
            self._engine.let_go()


def _why(error: Exception, settings: Settings) -> str:
    if isinstance(error, DirectoryHeld):
        return (
            f"data directory {settings.dataDirectory} is in use by {described(error.pid)}:"
            " stop that, or choose another with data_dir="
        )
    return str(error) or repr(error)


def _write_image(disk: MemoryDisk, to: Path) -> None:
    with open(to / _IMAGE, "wb", opener=opener) as file:
        pickle.dump(disk, file, pickle.HIGHEST_PROTOCOL)


def _read_image(source: Path) -> MemoryDisk:
    disk = pickle.loads((source / _IMAGE).read_bytes())  # noqa: S301  # written by a box of this program
    assert isinstance(disk, MemoryDisk)
    return disk


def _copy(data: Path, to: Path) -> None:
    for name in _KEPT:
        found = data / name
        if found.is_dir():
            # LMDB's own lock file belongs to the processes that have it open.
            shutil.copytree(found, to / name, ignore=shutil.ignore_patterns("lock.mdb"))
        elif found.exists():
            shutil.copy2(found, to / name)


def _put_back(source: Path, data: Path) -> None:
    for name in _KEPT:
        if (data / name).is_dir():
            shutil.rmtree(data / name)
    _copy(source, data)
