"""A connected socket, with or without TLS, used by one thread that receives and others that send."""

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Final

RECEIVE_BYTES: Final = 1 << 18
_WAITS: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Channel:
    """Bytes to and from a peer.

    OpenSSL must not be called for one connection by two threads at a time, so a lock is held for each call, none of
    which waits.
    """

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._calling = threading.Lock()
        self._sending = threading.Lock()

    def receive(self, seconds: float) -> bytes:
        """Return the next bytes, empty at the end. Raises TimeoutError if there are none for so long, OSError."""
        deadline = time.monotonic() + seconds
        while True:
            with self._calling:
                try:
                    return self._socket.recv(RECEIVE_BYTES)
                except ssl.SSLWantWriteError:
                    wanted = select.POLLOUT
                except _WAITS:
                    wanted = select.POLLIN
            self._wait(wanted, deadline)

    def send(self, parts: Sequence[bytes], seconds: float) -> None:
        """Send bytes, after those of other threads. Raises TimeoutError if that takes longer, OSError."""
        deadline = time.monotonic() + seconds
        with self._sending:
            for part in parts:
                rest = memoryview(part)
                while rest := rest[self.try_send(rest) :]:
                    self._wait(select.POLLOUT, deadline)

    def try_send(self, data: bytes | memoryview) -> int:
        """Send what can be sent without waiting; return the number of bytes. Raises OSError."""
        rest = memoryview(data)
        with self._calling, contextlib.suppress(*_WAITS):
            while rest:
                rest = rest[self._socket.send(rest) :]
        return len(data) - len(rest)

    def wait_writable(self, seconds: float) -> bool:
        """Wait until bytes can be sent; False after so long."""
        try:
            self._wait(select.POLLOUT, time.monotonic() + seconds)
        except TimeoutError:
            return False
        return True

    def _wait(self, wanted: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._socket.fileno(), wanted)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(1000 * left):
            raise TimeoutError

    def shut_down(self) -> None:
        """End the connection: threads that wait for it return."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the socket; no thread may use it any longer."""
        with contextlib.suppress(OSError):
            self._socket.close()
