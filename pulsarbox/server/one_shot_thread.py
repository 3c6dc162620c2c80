"""One-off work in a short-lived thread beside the loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from pulsarbox.broker.callbacks import Callbacks

Result = TypeVar("Result")


def in_thread(
    loop: asyncio.AbstractEventLoop,
    name: str,
    work: Callable[[], Result],
    done: Callable[[Result | None, Exception | None], None],
) -> None:
    """Run ``work`` in a thread; ``done`` is called in the loop with its result or its exception."""

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(done, result, failure)

    threading.Thread(target=run, name=name, daemon=True).start()


class BackgroundWork:
    """Runs slow work of the broker in threads, see ``broker.host.Beside``."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.ended: Callbacks[[]] = Callbacks()
        """Called in the loop after each piece of work."""

    def begin(self, name: str, work: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        """Run ``work`` in a thread; ``done`` is called in the loop with its result or its exception."""

        def told(result: object, error: Exception | None) -> None:
            done(result, error)
            self.ended()

        in_thread(self._loop, name, work, told)


async def run_in_thread(name: str, work: Callable[[], Result]) -> Result:
    """Run ``work`` in a thread and return its result, or raise its exception.

    The loop's executor is not used: it would keep its threads, and shuts down before atexit handlers run.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def told(result: Result | None, error: Exception | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # None only if Result is None

    in_thread(loop, name, work, told)
    return await future
