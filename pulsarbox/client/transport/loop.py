"""A minimal event loop for sockets, other file descriptors and timers; one turn handles what is due and returns."""

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
    """An epoll instance and its callbacks, which run only inside ``turn``."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._calls: dict[int, Callable[[int], None]] = {}
        self._flushes: list[Callable[[], None]] = []
        self._seconds: list[Callable[[float], None]] = []
        self._next_second = time.monotonic() + 1

    def watch(self, file: _HasFileno | int, mask: int, call: Callable[[int], None]) -> None:
        """Call ``call`` with a file's events when they occur. Raises PermissionError for a regular file."""
        number = file if isinstance(file, int) else file.fileno()
        self._epoll.register(number, mask)
        self._calls[number] = call

    def change(self, file: _HasFileno | int, mask: int) -> None:
        """Change the watched events of a file."""
        self._epoll.modify(file if isinstance(file, int) else file.fileno(), mask)

    def forget(self, file: _HasFileno | int, every_second: Callable[[float], None] | None = None) -> None:
        """Stop watching a file and calling ``every_second``."""
        number = file if isinstance(file, int) else file.fileno()
        if self._calls.pop(number, None) is not None:
            self._epoll.unregister(number)
        if every_second in self._seconds:
            self._seconds.remove(every_second)

    def flush_later(self, call: Callable[[], None]) -> None:
        """Call ``call`` at the start of the next turn, before it waits."""
        self._flushes.append(call)

    def each_second(self, call: Callable[[float], None]) -> None:
        """Call ``call`` about once a second with the monotonic time."""
        self._seconds.append(call)

    def turn(self, seconds: float = 0.0) -> bool:
        """Wait up to ``seconds`` for events and handle them; return whether there were any."""
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
            call_for = self._calls.get(number)  # an earlier callback may have removed it
            if call_for is not None:
                call_for(mask)
        return bool(events)

    def close(self) -> None:
        """Close the epoll instance."""
        self._epoll.close()
