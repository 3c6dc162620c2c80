"""Subprocess of ``pulsarbox start`` that can be killed and restarted in place."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

PATIENCE_SECONDS: Final = 30.0
PLUGINS: Final = Path(__file__).parents[1] / "plugins"
CONFIG: Final = f"""\
[plugins]
pluginsDirectory = {json.dumps(str(PLUGINS))}
keySharedHashing = "hash-tag"

[dispatcher]
sharedConsumerSelection = "weighted"

[journal]
# Volumes that are full within seconds: what is compressed is what is sealed.
journalVolumeSizeMbytes = 1
journalCheckpointMbytes = 1
journalMaxBatchMbytes = 1
compressionAtRestCpuPercent = 50

[network]
maxMessageSize = 200000
"""


class Box:
    """Box on a data directory and two free ports."""

    def __init__(self, data: Path) -> None:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self._port, self._web_port = one.getsockname()[1], other.getsockname()[1]
        self.url = f"pulsar://127.0.0.1:{self._port}"
        self.web_url = f"http://127.0.0.1:{self._web_port}"
        self._data = data
        self._config = data.with_name("pulsarbox.toml")
        self._config.write_text(CONFIG, "utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start, and return the seconds until it accepts connections."""
        begin = time.monotonic()
        ports = ["--port", str(self._port), "--web-port", str(self._web_port)]
        command = [sys.executable, "-m", "pulsarbox", "start", "--config", str(self._config)]
        command += ["--data-dir", str(self._data), *ports]
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
        """Create a partitioned topic."""
        self.ask("PUT", f"/admin/v2/{topic.replace('://', '/')}/partitions", count)

    def dead_letters(self, topic: str, subscription: str, redeliveries: int, target: str) -> None:
        """Set a dead letter policy of the box, as `pulsarbox sub dead-letter` does."""
        policy = {"maxRedeliverCount": redeliveries, "deadLetterTopic": target}
        self.ask("POST", f"/pulsarbox/v1/dead-letter-policy/{topic.replace('://', '/')}/{subscription}", policy)

    def ask(self, method: str, path: str, value: Any = None) -> Any:
        """Send a request to the Admin API. Early requests wait in its listen queue."""
        body = None if value is None else json.dumps(value).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.web_url}{path}", method=method, data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            answer = response.read()
        return json.loads(answer) if answer else None

    def end(self, how: signal.Signals) -> None:
        """Send a signal and wait for the exit."""
        if self._process is not None:
            if self._process.poll() is None:
                os.kill(self._process.pid, how)
            self._process.wait()
            self._process = None
