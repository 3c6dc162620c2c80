"""``pulsarbox start`` in a process of its own, which can be killed and started again in place."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Final

PATIENCE_SECONDS: Final = 30.0


class Box:
    """A box on a data directory and two free ports."""

    def __init__(self, data: Path) -> None:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self._port, self._web_port = one.getsockname()[1], other.getsockname()[1]
        self.url = f"pulsar://127.0.0.1:{self._port}"
        self._data = data
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start, and return the seconds until it accepts connections."""
        begin = time.monotonic()
        ports = ["--port", str(self._port), "--web-port", str(self._web_port)]
        command = [sys.executable, "-m", "pulsarbox", "start", "--data-dir", str(self._data), *ports]
        with self._data.with_name("box.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while time.monotonic() - begin < PATIENCE_SECONDS and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                time.sleep(0.005)
            else:
                return time.monotonic() - begin
        raise SystemExit(f"the box did not start:\n{self._data.with_name('box.log').read_text()}")

    def make_partitions(self, topic: str, count: int) -> None:
        """Create a partitioned topic, through the Admin API; its port waits for whoever comes early."""
        url = f"http://127.0.0.1:{self._web_port}/admin/v2/{topic.replace('://', '/')}/partitions"
        body = str(count).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, method="PUT", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS):
            pass

    def end(self, how: signal.Signals) -> None:
        """Send a signal, and wait for the end."""
        if self._process is not None:
            os.kill(self._process.pid, how)
            self._process.wait()
            self._process = None
