"""Data to stdout, byte for byte; on a terminal without anything that the terminal would obey.

While whoever reads is slow, the client goes on: keep-alives are answered, and Ctrl-C is seen.
"""

import io
import os
import select
import sys
from typing import Final

from pulsarbox.cli.exits import Failed
from pulsarbox.cli.interruption import Interruption
from pulsarbox.cli.text import clean
from pulsarbox.client.client import Client

_PIECE: Final = select.PIPE_BUF
"""Bytes that a pipe takes without blocking once it says that it can be written to."""


class NotWritten(Exception):
    """The process was asked to end before all was written."""


class Stdout:
    """Where messages go."""

    def __init__(self, client: Client, interruption: Interruption) -> None:
        if sys.stdout is None:  # Python's way to say that the process was started without one
            raise Failed("stdout is closed: there is nowhere to write to")
        self.is_terminal = sys.stdout.isatty()
        self._client = client
        self._interruption = interruption
        try:
            self._number = sys.stdout.fileno()
        except (io.UnsupportedOperation, AttributeError):  # a test's
            self._number = -1
        self._poll = select.poll()
        if self._number >= 0:
            sys.stdout.flush()
            self._poll.register(self._number, select.POLLOUT)

    def write(self, data: bytes) -> None:
        """Return when all is written. Raises BrokenPipeError where nobody reads any more, NotWritten, Failed."""
        if self.is_terminal:
            data = cleaned(data)
        if self._number < 0:
            sys.stdout.buffer.write(data)
            return
        view = memoryview(data)
        while view:
            ready = self._poll.poll(0)
            while not ready:
                if self._interruption.is_asked():
                    raise NotWritten
                self._client.turn(0.05)
                ready = self._poll.poll(0)
            if ready[0][1] & select.POLLERR:
                raise BrokenPipeError
            view = view[self._written(view[:_PIECE]) :]

    def _written(self, piece: memoryview) -> int:
        try:
            return os.write(self._number, piece)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failed(f"the output cannot be written: {error.strerror}") from error


def cleaned(data: bytes) -> bytes:
    """Text for a terminal: line ends and tabs stay, all else that is not printed shows as an escape."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isascii() and text.isprintable():
        return data
    return "".join([one if one in "\n\t" else clean(one) for one in text]).encode()
