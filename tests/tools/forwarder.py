"""TCP forwarder, as `docker run -p` provides; counts connections, and can stall."""

import contextlib
import socket
import threading
from types import TracebackType


class Forwarder:
    """Forwarder from a free port of 127.0.0.1 to ``port`` of ``host``, while the context is active."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._to = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.connections = 0
        """Number of connections so far."""
        self.flows = threading.Event()
        """If cleared, responses are held back, as on a congested link."""
        self.flows.set()
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> "Forwarder":
        threading.Thread(target=self._accept, name="forwarder", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        for each in (self._listening, *self._sockets):
            with contextlib.suppress(OSError):
                each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed by __exit__
            while True:
                near, _ = self._listening.accept()
                self.connections += 1
                far = socket.create_connection(self._to)
                self._sockets += [near, far]
                for source, target in ((near, far), (far, near)):
                    flows = self.flows if target is near else None
                    threading.Thread(target=_pass_on, args=(source, target, flows), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, flows: threading.Event | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if flows is not None:
                flows.wait()
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
