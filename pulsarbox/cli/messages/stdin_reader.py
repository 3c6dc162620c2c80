"""Non-blocking reads of stdin, which keep the client running."""

import contextlib
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Final

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.client.client import Client
from pulsarbox.client.transport.loop import READ

_SIZE: Final = 1 << 18


class Stdin:
    """Reader of stdin."""

    def __init__(self, client: Client, interruption: Interruption) -> None:
        """Raises Misused if stdin is closed."""
        self._client = client
        self._interruption = interruption
        if sys.stdin is None:  # the process was started with stdin closed
            raise Misused("stdin is closed: specify PAYLOAD, or redirect stdin from a file or pipe")
        try:
            self._number = sys.stdin.fileno()
        except (io.UnsupportedOperation, AttributeError):  # replaced by a test
            self._number = -1

    def share(self) -> float | None:
        """Return which part of a file has been read (0 to 1); None if stdin is not a file."""
        if self._number < 0 or not stat.S_ISREG((found := os.fstat(self._number)).st_mode) or not found.st_size:
            return None
        return min(os.lseek(self._number, 0, os.SEEK_CUR) / found.st_size, 1.0)

    def pieces(self, idle: Callable[[], None]) -> Iterator[bytes]:
        """Yield the data as it arrives. Calls ``idle`` before waiting for more. Stops early on interruption."""
        if self._number < 0:
            yield sys.stdin.buffer.read()
            return
        poll = select.poll()
        poll.register(self._number, select.POLLIN)
        with contextlib.ExitStack() as after:
            try:
                self._client.loop.watch(self._number, READ, lambda mask: None)
                after.callback(self._client.loop.forget, self._number)
            except PermissionError:  # a regular file, always readable
                pass
            while not self._interruption.is_asked():
                if not poll.poll(0):
                    idle()
                while not poll.poll(0):
                    if self._interruption.is_asked():
                        return
                    self._client.turn(1.0)
                    idle()
                data = os.read(self._number, _SIZE)
                if not data:
                    return
                yield data

    def lines(self, idle: Callable[[], None]) -> Iterator[list[bytes]]:
        """Yield groups of lines without their newlines. The last line may lack a newline."""
        parts: list[bytes] = []
        for data in self.pieces(idle):
            head, newline, rest = data.partition(b"\n")
            if not newline:
                parts.append(data)
                continue
            lines = rest.split(b"\n")
            last = lines.pop()
            yield [b"".join((*parts, head)), *lines]
            parts = [last] if last else []
        if parts and not self._interruption.is_asked():
            yield [b"".join(parts)]
