"""Runs a box in a child process."""

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from pulsarbox.config import Settings
from pulsarbox.embed.errors import BoxError
from pulsarbox.server.process.runtime_file import RuntimeFile
from pulsarbox.storage.lmdb.private_files import opener

DO_SECONDS_MAX: Final = 60.0
_GRACE_SECONDS: Final = 10.0
_SAID_MAX: Final = 4000


class ProcessRunner:
    """Runs a box in a child process, whose output goes to the file ``log``."""

    def __init__(self, settings: Settings, *, memory: bool, log: Path) -> None:
        self._settings = settings
        self._memory = memory
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def alive(self) -> bool:
        """Whether the box is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """ID of the child process. Raises BoxError if there is none."""
        if self._process is None:
            raise BoxError("the box is not running")
        return self._process.pid

    def start(self, seconds: float) -> RuntimeFile:
        """Start the box. Raises BoxError if it cannot start within ``seconds``."""
        ours, theirs = socket.socketpair()
        root = str(Path(__file__).parents[2])
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PULSARBOX_")}
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (environ.get("PYTHONPATH"), root)))
        with open(self._log, "ab", opener=opener) as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pulsarbox.embed.child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C goes to the parent program, which then stops the box gracefully
            )
        theirs.close()
        self._control = ours
        try:
            return RuntimeFile(
                **self._ask({"settings": dataclasses.asdict(self._settings), "memory": self._memory}, seconds)
            )
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop gracefully; idempotent. Raises BoxError if the box does not stop, or fails."""
        if self._process is None:
            return
        seconds = self._patience()
        if self._control is not None:
            with contextlib.suppress(OSError):
                # Unlike close(), this also takes effect if a forked process holds the socket as well.
                self._control.shutdown(socket.SHUT_RDWR)
            self._control.close()
            self._control = None
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BoxError(f"the box did not stop within {seconds:g} s{self._tail()}") from None
        self._process = None
        if code:
            raise BoxError(f"the box exited with code {code}{self._tail()}")

    def _patience(self) -> float:
        """Return the time to wait for a shutdown in seconds: the box's current timeout plus a grace period."""
        seconds = self._settings.brokerShutdownTimeoutMs / 1000
        with contextlib.suppress(BoxError):
            seconds = self._ask({"do": "tell-shutdown-seconds"}, _GRACE_SECONDS)
        return seconds + _GRACE_SECONDS

    def kill(self) -> None:
        """Kill the process as ``kill -9`` does."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def restart(self) -> RuntimeFile:
        """Close and reopen the box within its process, so that data in memory is kept."""
        return RuntimeFile(**self._ask({"do": "restart"}, DO_SECONDS_MAX))

    def snapshot(self, to: Path) -> None:
        """See HostedBox."""
        self._ask({"do": "snapshot", "to": str(to)}, DO_SECONDS_MAX)

    def restore(self, source: Path) -> RuntimeFile:
        """See HostedBox."""
        return RuntimeFile(**self._ask({"do": "restore", "source": str(source)}, DO_SECONDS_MAX))

    def detach_after_fork(self) -> None:
        """In a forked child: forget the box, which belongs to the parent."""
        if self._control is not None:
            self._control.close()
        self._control = self._process = None

    def _ask(self, order: dict[str, Any], seconds: float) -> Any:
        if self._control is None or self._process is None:
            raise BoxError("the box is not running")
        self._control.settimeout(seconds)
        line = b""
        try:
            self._control.sendall(json.dumps(order).encode() + b"\n")
            while not line.endswith(b"\n"):
                part = self._control.recv(1 << 16)
                if not part:
                    raise BoxError(f"the box exited with code {self._process.wait()}{self._tail()}")
                line += part
        except TimeoutError:
            raise BoxError(f"no response from the box within {seconds:g} s{self._tail()}") from None
        except OSError:
            raise BoxError(f"the box exited with code {self._process.wait()}{self._tail()}") from None
        answer = json.loads(line)
        if "failed" in answer:
            raise BoxError(answer["failed"])
        return answer["done"]

    def _tail(self) -> str:
        text = log_tail(self._log).strip()
        return f"; the end of its log:\n{text}" if text else ""


def log_tail(log: Path) -> str:
    """Return the end of a log file."""
    return log.read_text(errors="replace")[-_SAID_MAX:] if log.exists() else ""
