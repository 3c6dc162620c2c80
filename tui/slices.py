"""Long computations on the event loop, a few milliseconds at a time."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

SLICE: Final = 0.004
"""Seconds of computation after which other tasks run."""

T = TypeVar("T")


async def in_slices(steps: Iterable[T], take: Callable[[T], None], pause: Callable[[], None] = lambda: None) -> None:
    """Pass each value to ``take``. Other tasks run after each slice, and ``pause`` is called."""
    end = time.monotonic() + SLICE
    for value in steps:
        take(value)
        if time.monotonic() >= end:
            pause()
            await asyncio.sleep(0)
            end = time.monotonic() + SLICE
