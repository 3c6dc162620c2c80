"""One-off work in a short-lived thread beside the loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

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


async def beside(name: str, work: Callable[[], Result]) -> Result:
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
