"""A peer with scripted responses, for behaviour that a box never shows, such as redirects to another broker."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from pulsarbox.protocol.commands import encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandConnected

Answer = Callable[[BaseCommand, bytes], list[bytes] | None]
"""Maps a command and the bytes after it to the response frames; None closes the connection."""


def connected(max_message_size: int = 5 << 20) -> bytes:
    hello = CommandConnected(server_version="scripted", protocol_version=21, max_message_size=max_message_size)
    return encode_frame(BaseCommand(type=BaseCommand.CONNECTED, connected=hello))


class Peer:
    """Listener on a free port with one thread per connection."""

    def __init__(self, answer: Answer) -> None:
        self.seen: list[BaseCommand] = []
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.address[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        decoder = FrameDecoder(10 << 20)
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                for command_bytes, rest in decoder.feed(data):
                    command = parse_command(command_bytes)
                    self.seen.append(command)
                    frames = self._answer(command, rest)
                    if frames is None:
                        connection.shutdown(socket.SHUT_RDWR)
                        return
                    connection.sendall(b"".join(frames))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)


@contextlib.contextmanager
def peer(answer: Answer) -> Iterator[Peer]:
    opened = Peer(answer)
    try:
        yield opened
    finally:
        opened.close()
