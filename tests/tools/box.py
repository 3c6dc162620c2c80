"""Box in a subprocess: started on free ports, stopped, killed and restarted in place.

Independent of the implementation: any command that serves the Pulsar protocol on a port will do. ``{data}``, ``{port}``
and ``{web_port}`` in the command are replaced.
"""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests import forks

PULSARBOX: Final = (
    sys.executable, "-m", "pulsarbox", "start",
    "--data-dir", "{data}", "--port", "{port}", "--web-port", "{web_port}", "--log-level", "warning",
)  # fmt: skip
READY_SECONDS: Final = 120.0
STOP_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.005


class BoxError(Exception):
    """The box failed to start, or exited unexpectedly."""


def free_ports(count: int) -> list[int]:
    """Return currently unused ports of 127.0.0.1."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def reserved_port(holder: object, host: str) -> int:
    """Return a port reserved for the lifetime of ``holder``, for servers that listen with SO_REUSEADDR, as brokers do.

    Without a reservation, an outgoing connection could occupy the port before the box listens, or while the box
    restarts. A client that reconnects to the box could even connect to itself.
    """
    with socket.socket() as reserving:
        reserving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserving.bind((host, 0))
        port: int = reserving.getsockname()[1]
        weakref.finalize(holder, os.close, reserving.detach())
    return port


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class BoxProcess:
    """One data directory, two ports, and the process that serves them, if any."""

    def __init__(
        self,
        data: Path,
        command: Sequence[str] | str = PULSARBOX,
        log: Path | None = None,
        host: str = "127.0.0.1",
        ports: tuple[int, int] | None = None,
    ) -> None:
        self.data = data
        self.port, self.web_port = ports or (reserved_port(self, host), reserved_port(self, host))
        self.log = log or data.with_name(f"{data.name}.log")
        self.process: subprocess.Popen[bytes] | None = None
        self._command = shlex.split(command) if isinstance(command, str) else list(command)

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def web_url(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def command(self) -> list[str]:
        filled = {"{data}": str(self.data), "{port}": str(self.port), "{web_port}": str(self.web_port)}
        return [re.sub("{data}|{port}|{web_port}", lambda found: filled[found[0]], word) for word in self._command]

    def spawn(self) -> None:
        """Start the process, in a new session and process group, without waiting for it."""
        assert self.process is None
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PULSARBOX_")}
        with self.log.open("ab") as log:
            self.process = forks.box(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.data.parent,  # isolated from any pulsarbox.toml
                env=environ,
                start_new_session=True,
            )

    def wait_for(self, port: int, seconds: float = READY_SECONDS) -> None:
        """Wait until the port accepts connections."""
        deadline = time.monotonic() + seconds
        while not accepts(port):
            if self.process is not None and self.process.poll() is not None:
                raise BoxError(f"ended with {self.process.returncode}:\n{self.said()}")
            if time.monotonic() > deadline:
                raise BoxError(f"port {port} does not accept after {seconds:g} s:\n{self.said()}")
            time.sleep(POLL_SECONDS)

    def start(self, seconds: float = READY_SECONDS) -> float:
        """Start the process, wait for both ports, and return the seconds until the first one served."""
        begin = time.monotonic()
        self.spawn()
        self.wait_for(self.port, seconds)
        serving = time.monotonic() - begin
        self.wait_for(self.web_port, seconds)
        return serving

    def stop(self) -> int:
        """Ask the process to exit (SIGTERM) and return its exit code."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise BoxError(f"does not end within {STOP_SECONDS:g} s of SIGTERM:\n{self.said()}") from None
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process and its children (SIGKILL). Idempotent."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # the group that spawn() created, so only its processes
        self.process.wait()
        self.process = None

    def said(self) -> str:
        """Return the last output of the process."""
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""


def admin(web_url: str, method: str, path: str, body: str | None = None, seconds: float = 60.0) -> str:
    """Send a request to the Admin API; ``body`` is JSON. Raises urllib.error.HTTPError for statuses from 400."""
    request = urllib.request.Request(
        f"{web_url}/admin/v2/{path}",
        method=method,
        data=None if body is None else body.encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=seconds) as response:
        text: str = response.read().decode()
        return text
