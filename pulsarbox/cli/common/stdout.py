"""Data on stdout, byte for byte; on a terminal, with control characters escaped.

While the reader is slow, the client keeps running: it answers keep-alives and reacts to Ctrl-C.
"""

import io
import os
import select
import stat
import sys
from array import array
from collections.abc import Callable
from typing import Final

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.cli.common.terminal import check_reader
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.client.client import Client

_PIECE: Final = select.PIPE_BUF
"""Bytes that a writable pipe takes without blocking."""


class NotWritten(Exception):
    """The command was interrupted before all data was written."""


class Stdout:
    """Writer of message data to stdout."""

    def __init__(self, client: Client, interruption: Interruption, *, is_clean: bool = False) -> None:
        """``is_clean``: the data has colours and no other control characters, so nothing in it is escaped."""
        if sys.stdout is None:  # the process was started with stdout closed
            raise Failed("stdout is closed: redirect it to a file or pipe")
        self.is_terminal = sys.stdout.isatty()
        self._is_clean = is_clean
        self._client = client
        self._interruption = interruption
        try:
            self._number = sys.stdout.fileno()
        except (io.UnsupportedOperation, AttributeError):  # replaced by a test
            self._number = -1
        self._poll = select.poll()
        self._written = 0
        self._is_pipe = False
        if self._number >= 0:
            sys.stdout.flush()
            self._poll.register(self._number, select.POLLOUT)
            # Other systems do not report the fill level at the writing end of a pipe.
            self._is_pipe = sys.platform == "linux" and stat.S_ISFIFO(os.fstat(self._number).st_mode)

    @property
    def written(self) -> int:
        """Total bytes written."""
        return self._written

    def read(self) -> int:
        """Return a lower bound of the bytes that have been read. Only a pipe holds bytes back; others take all at once.

        If other processes write to the same pipe, their bytes in it count as ours.
        """
        if not self._is_pipe:
            return self._written
        import fcntl
        import termios

        inside = array("i", [0])
        fcntl.ioctl(self._number, termios.FIONREAD, inside)
        return self._written - inside[0]

    def check_reader(self) -> None:
        """Raise BrokenPipeError or HungUp once nobody can read stdout."""
        if self._number >= 0:
            check_reader(self._number)

    def is_left(self) -> bool:
        """Return whether the reader has closed its end."""
        return self._number >= 0 and any(mask & select.POLLERR for _, mask in self._poll.poll(0))

    def write(self, data: bytes, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Write all data, calling ``meanwhile`` repeatedly while the reader is slow.

        Raises BrokenPipeError or HungUp if the reader is gone, NotWritten if interrupted, Failed otherwise.
        """
        if self.is_terminal and not self._is_clean:
            data = cleaned(data)
        if self._number < 0:
            sys.stdout.buffer.write(data)
            self._written += len(data)
            return
        view = memoryview(data)
        while view:
            ready = self._poll.poll(0)
            while not ready:
                if self._interruption.is_asked():
                    raise NotWritten
                meanwhile()
                self._client.turn(0.05)
                ready = self._poll.poll(0)
            if ready[0][1] & select.POLLERR:
                check_reader(self._number)
            view = view[self._write(view[:_PIECE]) :]

    def _write(self, piece: memoryview) -> int:
        try:
            size = os.write(self._number, piece)
        except BrokenPipeError:
            raise
        except OSError as error:
            self.check_reader()
            raise Failed(f"cannot write the output: {error.strerror}") from error
        self._written += size
        return size


def cleaned(data: bytes) -> bytes:
    """Return text for a terminal: unprintable characters escaped, except newlines and tabs."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isascii() and text.isprintable():
        return data
    return "".join([one if one in "\n\t" else clean(one) for one in text]).encode()
