"""A box for this program: ``with PulsarBox() as box: pulsar.Client(box.service_url)``."""

import asyncio
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pulsarbox.client.admin_call import WebRefused, ask
from pulsarbox.client.credentials import Credentials
from pulsarbox.config import Settings, Value, load
from pulsarbox.embed.box_clock import BoxClock
from pulsarbox.embed.box_faults import BoxFaults
from pulsarbox.embed.errors import BoxError
from pulsarbox.embed.messages import Message, messages_of
from pulsarbox.embed.ports import on_its_ports
from pulsarbox.embed.process_runner import ProcessRunner, said
from pulsarbox.embed.snapshot import Snapshot, scratch_directory
from pulsarbox.embed.testing import WITHIN_SECONDS, Seen, wait_until_as_expected
from pulsarbox.embed.thread_runner import ThreadRunner
from pulsarbox.errors import PulsarBoxError, TopicNotFound
from pulsarbox.server.process.runtime_file import Running

START_SECONDS_MAX: Final = 30.0
_LOG: Final = "log"

_DEFAULTS: Final[Mapping[str, Value]] = {"brokerServicePort": 0, "webServicePort": 0, "bindAddress": "127.0.0.1"}


class PulsarBox:
    """A box that this program starts and ends: ``with``, ``async with``, or ``start`` and ``stop``.

    It is in a thread of this process, or with ``process=True`` in a child process (which can be killed, and takes no
    time from this one's interpreter). It keeps everything in memory, or with ``data_dir`` in that directory. Ports are
    free ones unless they are named, and stay the same over ``restart``, ``restore`` and a second ``start``. Environment
    variables and configuration files do not count here.
    """

    def __init__(
        self,
        settings: Mapping[str, Value] | None = None,
        *,
        process: bool = False,
        data_dir: str | os.PathLike[str] | None = None,
        clock: str | None = None,
        faults: bool | None = None,
        port: int | None = None,
        web_port: int | None = None,
        **more: Value,
    ) -> None:
        """Any setting can be given by its name, in the mapping or as a keyword: ``PulsarBox(maxMessageSize=1024)``.

        Raises ConfigError for a setting that does not exist or does not take the value.
        """
        own: dict[str, Value | None] = {
            "dataDirectory": None if data_dir is None else os.fspath(data_dir),
            "brokerClock": clock,
            "faultInjectionEnabled": faults,
            "brokerServicePort": port,
            "webServicePort": web_port,
        }
        given = {**(settings or {}), **more, **{name: value for name, value in own.items() if value is not None}}
        self._settings: Settings = load(None, {**_DEFAULTS, **given}, origin="PulsarBox").settings
        self._memory = "dataDirectory" not in given
        self._scratch = scratch_directory(self) if process else None
        self._runner: ThreadRunner | ProcessRunner | None = None
        self._process = process
        self._pid = 0
        self._running: Running | None = None
        self.clock: Final = BoxClock(self._ask)
        """What time it is for the box; see BoxClock."""
        self.faults: Final = BoxFaults(self._ask)
        """What goes wrong on purpose; see BoxFaults."""

    # Start and end

    def start(self) -> Self:
        """Serve. On return the Pulsar port answers; the HTTP port may take a moment longer, and lets callers wait.

        Raises BoxError where it cannot start, or runs already.
        """
        if self._runner is not None and self._pid == os.getpid():
            if self._runner.alive:
                raise BoxError("the box runs already")
            self._runner.kill() if isinstance(self._runner, ProcessRunner) else self._runner.stop()
        runner: ThreadRunner | ProcessRunner
        if self._scratch is not None:
            runner = ProcessRunner(self._settings, memory=self._memory, log=self._scratch / _LOG)
        else:
            runner = ThreadRunner(self._settings, memory=self._memory)
        self._serves(runner.start(START_SECONDS_MAX))
        self._runner, self._pid = runner, os.getpid()
        self._finalizer = weakref.finalize(self, _end, runner, self._pid)
        return self

    def stop(self) -> None:
        """End it in order; again is no harm. Raises BoxError where it does not end, or had ended badly."""
        runner, self._runner = self._runner, None
        if runner is None or self._pid != os.getpid():
            return  # it is the parent's, who has forked this process
        self._finalizer.detach()
        runner.stop()

    def restart(self) -> None:
        """End it in order and serve again, on the same ports and the same data. Clients come back by themselves."""
        self._serves(self._started().restart())

    def kill(self) -> None:
        """End it as ``kill -9`` does; ``start`` brings it back. What was in memory is gone.

        Raises BoxError for a box in a thread.
        """
        self._started().kill()
        self._finalizer.detach()
        self._runner = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def __repr__(self) -> str:
        kind = "process" if self._process else "thread"
        place = "memory" if self._memory else self._settings.dataDirectory
        state = self.service_url if self.is_running else "not running"
        return f"<PulsarBox in a {kind}, data in {place}: {state}>"

    # Where it is

    @property
    def is_running(self) -> bool:
        """Whether it runs, as far as this process knows."""
        return self._runner is not None and self._pid == os.getpid() and self._runner.alive

    @property
    def service_url(self) -> str:
        """``pulsar://host:port``, for clients; ``pulsar+ssl://`` where there is TLS only.

        Raises BoxError where it was never started.
        """
        return self._known().broker_url or self.service_url_tls

    @property
    def service_url_tls(self) -> str:
        """``pulsar+ssl://host:port``; empty where there is no TLS."""
        return self._known().broker_url_tls

    @property
    def admin_url(self) -> str:
        """``http://host:port``, for the Admin API; ``https://`` where there is TLS only."""
        return self._known().web_url or self.admin_url_tls

    @property
    def admin_url_tls(self) -> str:
        """``https://host:port``; empty where there is no TLS."""
        return self._known().web_url_tls

    @property
    def port(self) -> int:
        """Of the Pulsar protocol."""
        return self._known().port

    @property
    def web_port(self) -> int:
        """Of HTTP."""
        return self._known().web_port

    @property
    def pid(self) -> int:
        """The process that it runs in: this one, or its own. Raises BoxError where it does not run."""
        return self._started().pid

    @property
    def data_dir(self) -> Path | None:
        """Where it keeps its data; None for memory."""
        return None if self._memory else Path(self._settings.dataDirectory)

    @property
    def settings(self) -> Settings:
        """All settings, the ports in use among them."""
        return self._settings

    def log(self) -> str:
        """The end of what the process of the box has logged, when that has ended too.

        In a thread it logs through this program's logging, and this is empty.
        """
        return "" if self._scratch is None else said(self._scratch / _LOG)

    # What it holds

    def snapshot(self) -> Snapshot:
        """What it holds right now: everything that anybody was told is stored. It goes on serving meanwhile."""
        runner = self._started()
        taken = Snapshot("memory" if self._memory else "disk")
        try:
            runner.snapshot(taken.path)
        except BaseException:
            taken.close()
            raise
        return taken

    def restore(self, snapshot: Snapshot) -> None:
        """Put back what a snapshot holds, and forget all else. Clients are let go, and come back by themselves.

        Raises BoxError where the snapshot is of a box with other storage, or removed.
        """
        storage = "memory" if self._memory else "disk"
        if snapshot.storage != storage:
            raise BoxError(f"a snapshot of a box on {snapshot.storage} cannot be restored to one on {storage}")
        if not snapshot.path.is_dir():
            raise BoxError(f"the snapshot in {snapshot.path} is closed")
        self._serves(self._started().restore(snapshot.path))

    def messages(self, topic: str) -> list[Message]:
        """All messages that a topic holds now, oldest first, whoever has acknowledged them. Nothing changes by it.

        Raises BoxError where there is no such topic, or it cannot be read.
        """
        try:
            return self._messages(topic)
        except (PulsarBoxError, OSError) as error:
            raise BoxError(f"{topic} cannot be read: {error}") from error

    def assert_messages(
        self, topic: str, expected: Sequence[object], *, within: float = WITHIN_SECONDS, any_order: bool = False
    ) -> None:
        """A topic holds these messages and no others, now or within so many seconds.

        Expected are bytes, a text, any other value as JSON, ``having(...)``, or a function of the payload. Raises
        AssertionError, which shows the difference.
        """
        __tracebackhide__ = True

        def look() -> tuple[list[Seen], str]:
            try:
                return [Seen(each.payload, each.key, each.properties) for each in self._messages(topic)], ""
            except TopicNotFound:
                return [], " (there is no such topic)"

        wait_until_as_expected(look, expected, what=topic, within=within, any_order=any_order)

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """One request over HTTP, ``box.admin("GET", "/admin/v2/clusters")``; its answer as a value.

        Raises BoxError where it is refused.
        """
        return self._ask(method, path, body)

    # Inside

    def _ask(self, method: str, path: str, body: object) -> Any:
        self._started()
        try:
            known = self._known()
            own = Credentials(pinned=known.certificate, operator=known.operator)
            return ask(known.local_url(True), method, path, body, credentials=own)
        except WebRefused as error:
            raise BoxError(f"{method} {path}: {error} (HTTP {error.status})") from error
        except OSError as error:
            raise BoxError(f"{method} {path}: no answer: {error}") from error

    def _messages(self, topic: str) -> list[Message]:
        self._started()
        return messages_of(self._known(), topic)

    def _started(self) -> ThreadRunner | ProcessRunner:
        if self._runner is None:
            raise BoxError("the box does not run: start it, or use it in a `with` block")
        if self._pid != os.getpid():
            raise BoxError(
                f"the box was started in process {self._pid}, and this is {os.getpid()}: a fork has its address"
                " (service_url, admin_url), and can start a box of its own, but this one is not its to command"
            )
        return self._runner

    def _known(self) -> Running:
        if self._running is None:
            raise BoxError("the box was not started: start it, or use it in a `with` block")
        return self._running

    def _serves(self, running: Running) -> None:
        self._running = running
        self._settings = on_its_ports(self._settings, running)


def _end(runner: ThreadRunner | ProcessRunner, pid: int) -> None:
    """Nobody has stopped it: the program ends, or has lost it."""
    if os.getpid() == pid:
        runner.stop()
