"""Runs a box in a thread."""

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from pulsarbox.config import Settings
from pulsarbox.embed.errors import BoxError
from pulsarbox.embed.hosted import HostedBox
from pulsarbox.server.process.runtime_file import RuntimeFile
from pulsarbox.server.serving import new_loop

Result = TypeVar("Result")

DO_SECONDS_MAX: Final = 60.0
"""Maximum duration of a restart, snapshot or restore."""
_GRACE_SECONDS: Final = 10.0
"""Time beyond brokerShutdownTimeoutMs for the end of the thread."""

_all: "weakref.WeakSet[ThreadRunner]" = weakref.WeakSet()
_left_behind: "list[ThreadRunner]" = []
"""In a forked child: the parent's runners."""


class ThreadRunner:
    """Runs a box in a thread; its methods may be called from any other thread."""

    def __init__(self, settings: Settings, *, memory: bool) -> None:
        self._settings = settings
        self._box = HostedBox(settings, memory=memory, embedded=True)
        self._thread: threading.Thread | None = None
        self._given_up = False
        """Whether ``start`` has timed out."""
        self._loop: asyncio.AbstractEventLoop
        self._stopped: asyncio.Event

    @property
    def alive(self) -> bool:
        """Whether the box is running."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def pid(self) -> int:
        """ID of this process."""
        return os.getpid()

    def start(self, seconds: float) -> RuntimeFile:
        """Start the box. Raises BoxError if it cannot start within ``seconds``."""
        import_module("pulsarbox.server.http")  # in this thread: a fork during an import would deadlock the child
        told: SimpleQueue[RuntimeFile | Exception] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(told,), name="pulsarbox", daemon=True)
        self._thread.start()
        _all.add(self)
        try:
            answer = told.get(timeout=seconds)
        except Empty:
            self._given_up = True
            raise BoxError(f"the box cannot start: not serving after {seconds:g} s") from None
        if isinstance(answer, Exception):
            self._thread.join()
            raise answer
        return answer

    def _run(self, told: "SimpleQueue[RuntimeFile | Exception]") -> None:
        try:
            loop = new_loop(self._settings)
        except OSError as error:
            told.put(BoxError(f"the box cannot start: {error}"))
            return
        try:
            loop.run_until_complete(self._serve(told))
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _serve(self, told: "SimpleQueue[RuntimeFile | Exception]") -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        try:
            running = await self._box.open()
        except Exception as error:
            told.put(error)
            return
        told.put(running)
        if not self._given_up:
            await self._stopped.wait()
        await self._box.close()

    def stop(self) -> None:
        """Stop gracefully; idempotent. Raises BoxError if the box does not stop."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        seconds = self._box.shutdown_seconds + _GRACE_SECONDS
        with contextlib.suppress(RuntimeError):  # the loop may just have closed
            self._loop.call_soon_threadsafe(self._stopped.set)
        if thread is threading.current_thread():  # a finalizer may run in any thread
            return
        thread.join(seconds)
        if thread.is_alive():
            raise BoxError(f"the box did not stop within {seconds:g} s")
        self._thread = None

    def kill(self) -> None:
        """Raise BoxError: a thread cannot be killed."""
        raise BoxError("a box in a thread cannot be killed: create it with process=True")

    def restart(self) -> RuntimeFile:
        """Close and reopen the box."""
        return self._do(self._box.restart)

    def snapshot(self, to: Path) -> None:
        """See HostedBox."""
        self._do(lambda: self._box.snapshot(to))

    def restore(self, source: Path) -> RuntimeFile:
        """See HostedBox."""
        return self._do(lambda: self._box.restore(source))

    def _do(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        if not self.alive:
            raise BoxError("the box is not running")
        future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return future.result(DO_SECONDS_MAX)
        except TimeoutError:
            future.cancel()
            raise BoxError(f"no response from the box within {DO_SECONDS_MAX:g} s") from None

    def detach_after_fork(self) -> None:
        """In a forked child, which lacks the thread: leave the ports and the data directory to the parent."""
        self._box.detach_after_fork()
        self._thread = None


def _after_fork_in_child() -> None:
    # Keep them referenced: finalizers would close descriptors by numbers that may have been reused.
    _left_behind.extend(_all)
    for runner in _left_behind:
        runner.detach_after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
