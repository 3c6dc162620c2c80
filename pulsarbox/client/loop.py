"""Waiting: for sockets, other file descriptors, and time. One turn does what is due and returns."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Final, Protocol

READ: Final = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
WRITE: Final = select.EPOLLOUT


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


class Loop:
    """An epoll and the calls that wait for it. Nothing runs but inside ``turn``."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._calls: dict[int, Callable[[int], None]] = {}
        self._flushes: list[Callable[[], None]] = []
        self._seconds: list[Callable[[float], None]] = []
        self._next_second = time.monotonic() + 1

    def watch(self, file: _HasFileno | int, mask: int, call: Callable[[int], None]) -> None:
        """Call with the events of a file, when there are any. A file of the disk raises PermissionError."""
        number = file if isinstance(file, int) else file.fileno()
        self._epoll.register(number, mask)
        self._calls[number] = call

    def change(self, file: _HasFileno | int, mask: int) -> None:
        """Wait for other events of a file."""
        self._epoll.modify(file if isinstance(file, int) else file.fileno(), mask)

    def forget(self, file: _HasFileno | int, every_second: Callable[[float], None] | None = None) -> None:
        """Watch it no more; nor call ``every_second``."""
        number = file if isinstance(file, int) else file.fileno()
        if self._calls.pop(number, None) is not None:
            self._epoll.unregister(number)
        if every_second in self._seconds:
            self._seconds.remove(every_second)

    def flush_later(self, call: Callable[[], None]) -> None:
        """Call at the start of the next turn, before it waits."""
        self._flushes.append(call)

    def each_second(self, call: Callable[[float], None]) -> None:
        """Call about once a second with the monotonic time."""
        self._seconds.append(call)

    def turn(self, seconds: float = 0.0) -> bool:
        """Wait up to so long for something to happen, and handle it; whether something did."""
        if self._flushes:
            flushes, self._flushes = self._flushes, []
            for flush in flushes:
                flush()
        now = time.monotonic()
        if now >= self._next_second:
            self._next_second = now + 1
            for call in list(self._seconds):
                call(now)
        elif self._seconds:
            seconds = min(seconds, self._next_second - now)
        events = self._epoll.poll(max(0.0, seconds))
        for number, mask in events:
            call_for = self._calls.get(number)  # an event before may have ended it
            if call_for is not None:
                call_for(mask)
        return bool(events)

    def close(self) -> None:
        """Give the epoll back."""
        self._epoll.close()
