"""What comes in on stdin, piece by piece, without the client standing still meanwhile."""

import contextlib
import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import Final

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.client.client import Client
from pulsarbox.client.loop import READ

_SIZE: Final = 1 << 18


class Stdin:
    """Bytes of stdin."""

    def __init__(self, client: Client, interruption: Interruption) -> None:
        """Raises Misused where there is none."""
        self._client = client
        self._interruption = interruption
        if sys.stdin is None:  # Python's way to say that the process was started without one
            raise Misused("stdin is closed: give a payload, or something to read messages from")
        try:
            self._number = sys.stdin.fileno()
        except (io.UnsupportedOperation, AttributeError):  # a test's
            self._number = -1

    def pieces(self, idle: Callable[[], None]) -> Iterator[bytes]:
        """All of it, as it comes; ``idle`` is called before it is waited for more. Ends early when asked to end."""
        if self._number < 0:
            yield sys.stdin.buffer.read()
            return
        poll = select.poll()
        poll.register(self._number, select.POLLIN)
        with contextlib.ExitStack() as after:
            try:
                self._client.loop.watch(self._number, READ, lambda mask: None)
                after.callback(self._client.loop.forget, self._number)
            except PermissionError:  # a file: it can always be read
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
        """Its lines, without their ends, many at a time; the last one need not have an end."""
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
