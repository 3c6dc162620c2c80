"""The embedded box: ``with PulsarBox() as box: pulsar.Client(box.service_url)``."""

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
from pulsarbox.embed.process_runner import ProcessRunner, log_tail
from pulsarbox.embed.snapshot import Snapshot, scratch_directory
from pulsarbox.embed.testing import WITHIN_SECONDS, SeenMessage, wait_until_as_expected
from pulsarbox.embed.thread_runner import ThreadRunner
from pulsarbox.errors import PulsarBoxError, TopicNotFound
from pulsarbox.server.process.runtime_file import RuntimeFile

START_SECONDS_MAX: Final = 30.0
_LOG: Final = "log"

_DEFAULTS: Final[Mapping[str, Value]] = {"brokerServicePort": 0, "webServicePort": 0, "bindAddress": "127.0.0.1"}


class PulsarBox:
    """A box that the calling program starts and stops: ``with``, ``async with``, or ``start`` and ``stop``.

    It runs in a thread of this process, or with ``process=True`` in a child process, which can be killed and does not
    compete for this process's interpreter lock. Data is kept in memory, or with ``data_dir`` in that directory. Ports
    are free ones unless specified, and stay the same across ``restart``, ``restore`` and a second ``start``.
    Environment variables and configuration files are ignored.
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
        """Any setting can be given by name, in the mapping or as a keyword: ``PulsarBox(maxMessageSize=1024)``.

        Raises ConfigError for an unknown setting or an invalid value.
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
        self._memory = not {"dataDirectory", "dataDirectories"} & given.keys()
        self._scratch = scratch_directory(self) if process else None
        self._runner: ThreadRunner | ProcessRunner | None = None
        self._process = process
        self._pid = 0
        self._running: RuntimeFile | None = None
        self.clock: Final = BoxClock(self._ask)
        """The clock of the box; see BoxClock."""
        self.faults: Final = BoxFaults(self._ask)
        """Fault injection; see BoxFaults."""

    # Start and stop

    def start(self) -> Self:
        """Start serving. On return the Pulsar port answers. The HTTP port may follow shortly; requests wait until then.

        Raises BoxError if the box cannot start or is already running.
        """
        if self._runner is not None and self._pid == os.getpid():
            if self._runner.alive:
                raise BoxError("the box is already running")
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
        """Stop gracefully; idempotent. Raises BoxError if the box does not stop, or had failed before."""
        runner, self._runner = self._runner, None
        if runner is None or self._pid != os.getpid():
            return  # a forked process must not stop its parent's box
        self._finalizer.detach()
        runner.stop()

    def restart(self) -> None:
        """Stop gracefully and start again with the same ports and data. Clients reconnect on their own."""
        self._serves(self._started().restart())

    def kill(self) -> None:
        """Kill the process as ``kill -9`` does; ``start`` brings it back. Data in memory is lost.

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

    # Addresses

    @property
    def is_running(self) -> bool:
        """Whether the box is running, as far as this process knows."""
        return self._runner is not None and self._pid == os.getpid() and self._runner.alive

    @property
    def service_url(self) -> str:
        """``pulsar://host:port`` for clients, or ``pulsar+ssl://host:port`` if only TLS is enabled.

        Raises BoxError if the box was never started.
        """
        return self._known().broker_url or self.service_url_tls

    @property
    def service_url_tls(self) -> str:
        """``pulsar+ssl://host:port``; empty without TLS."""
        return self._known().broker_url_tls

    @property
    def admin_url(self) -> str:
        """``http://host:port`` of the Admin API, or ``https://host:port`` if only TLS is enabled."""
        return self._known().web_url or self.admin_url_tls

    @property
    def admin_url_tls(self) -> str:
        """``https://host:port``; empty without TLS."""
        return self._known().web_url_tls

    @property
    def port(self) -> int:
        """Port of the Pulsar protocol."""
        return self._known().port

    @property
    def web_port(self) -> int:
        """Port of HTTP."""
        return self._known().web_port

    @property
    def pid(self) -> int:
        """ID of the process that the box runs in: this one or a child. Raises BoxError if the box is not running."""
        return self._started().pid

    @property
    def data_dir(self) -> Path | None:
        """The data directory; None if data is in memory."""
        return None if self._memory else Path(self._settings.dataDirectory)

    @property
    def settings(self) -> Settings:
        """All settings, with the actual ports."""
        return self._settings

    def log(self) -> str:
        """Return the end of the child process's log, even after it has exited.

        Empty for a box in a thread, which logs through this program's logging.
        """
        return "" if self._scratch is None else log_tail(self._scratch / _LOG)

    # Data

    def snapshot(self) -> Snapshot:
        """Take a snapshot of everything that has been acknowledged to clients, while the box keeps serving."""
        runner = self._started()
        taken = Snapshot("memory" if self._memory else "disk")
        try:
            runner.snapshot(taken.path)
        except BaseException:
            taken.close()
            raise
        return taken

    def restore(self, snapshot: Snapshot) -> None:
        """Replace all data by a snapshot's. Clients are disconnected and reconnect on their own.

        Raises BoxError if the snapshot is from a box with other storage, or has been closed.
        """
        storage = "memory" if self._memory else "disk"
        if snapshot.storage != storage:
            raise BoxError(f"cannot restore a snapshot of a box on {snapshot.storage} to a box on {storage}")
        if not snapshot.path.is_dir():
            raise BoxError(f"the snapshot in {snapshot.path} is closed")
        self._serves(self._started().restore(snapshot.path))

    def messages(self, topic: str) -> list[Message]:
        """Return all messages in a topic, oldest first, acknowledged or not. Does not change the topic.

        Raises BoxError if the topic does not exist or cannot be read.
        """
        try:
            return self._messages(topic)
        except (PulsarBoxError, OSError) as error:
            raise BoxError(f"cannot read {topic}: {error}") from error

    def assert_messages(
        self, topic: str, expected: Sequence[object], *, within: float = WITHIN_SECONDS, any_order: bool = False
    ) -> None:
        """Assert that a topic contains exactly these messages, now or within ``within`` seconds.

        Each expected message is bytes, a string, any other value as JSON, ``having(...)``, or a function of the
        payload. Raises AssertionError with the difference.
        """
        __tracebackhide__ = True

        def look() -> tuple[list[SeenMessage], str]:
            try:
                return [SeenMessage(each.payload, each.key, each.properties) for each in self._messages(topic)], ""
            except TopicNotFound:
                return [], " (the topic does not exist)"

        wait_until_as_expected(look, expected, what=topic, within=within, any_order=any_order)

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """Send an HTTP request, such as ``box.admin("GET", "/admin/v2/clusters")``, and return the response as a value.

        Raises BoxError if it is rejected.
        """
        return self._ask(method, path, body)

    # Internals

    def _ask(self, method: str, path: str, body: object) -> Any:
        self._started()
        try:
            known = self._known()
            own = Credentials(pinned=known.certificate, operator=known.operator)
            return ask(known.local_url(True), method, path, body, credentials=own)
        except WebRefused as error:
            raise BoxError(f"{method} {path}: {error} (HTTP {error.status})", error.status) from error
        except OSError as error:
            raise BoxError(f"{method} {path}: no answer: {error}") from error

    def _messages(self, topic: str) -> list[Message]:
        self._started()
        return messages_of(self._known(), topic)

    def _started(self) -> ThreadRunner | ProcessRunner:
        if self._runner is None:
            raise BoxError("the box is not running: start it, or use it in a `with` block")
        if self._pid != os.getpid():
            raise BoxError(
                f"the box was started in process {self._pid}, but this is {os.getpid()}: a forked process can connect"
                " to it (service_url, admin_url) or start its own box, but cannot control this one"
            )
        return self._runner

    def _known(self) -> RuntimeFile:
        if self._running is None:
            raise BoxError("the box has not been started: start it, or use it in a `with` block")
        return self._running

    def _serves(self, running: RuntimeFile) -> None:
        self._running = running
        self._settings = on_its_ports(self._settings, running)


def _end(runner: ThreadRunner | ProcessRunner, pid: int) -> None:
    """Stop a box that was not stopped, when it is garbage-collected or the program exits."""
    if os.getpid() == pid:
        runner.stop()
