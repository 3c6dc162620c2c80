"""The runtime file: the addresses of a running box, stored in the data directory for local commands.

It is not part of the data: opening the directory removes it, so it always belongs to the process that holds the lock.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pulsarbox.storage.format import OPERATOR, RUNNING
from pulsarbox.storage.lmdb.private_files import PRIVATE


@dataclass(frozen=True, slots=True)
class RuntimeFile:
    """A running box."""

    pid: int
    started: int
    """Time at which it started serving, milliseconds since 1970."""
    version: str
    broker_url: str
    """Advertised to clients."""
    web_url: str
    host: str
    """Host that reaches it from this machine, whatever is advertised to clients."""
    port: int
    """-1 if only TLS is served; likewise ``web_port``."""
    web_port: int
    data: str
    """The data directory, an absolute path; empty for a box in memory."""
    clock: str = "real"
    """``real`` or ``virtual``."""
    faults: bool = False
    """Whether faults may be injected."""
    embedded: bool = False
    """Whether the box is embedded in another program's process."""
    operator: str = field(default="", repr=False)
    """The secret that authenticates local commands; empty without authentication."""
    broker_url_tls: str = ""
    """Empty without TLS; likewise ``web_url_tls``."""
    web_url_tls: str = ""
    tls_port: int = -1
    web_tls_port: int = -1
    certificate: str = ""
    """The file of the box's certificate, an absolute path: local clients that can read it can verify the server."""

    def local_url(self, web: bool) -> str:
        """Return the local URL of the Admin API, or of the Pulsar protocol; without TLS if possible."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        plain, tls = (self.web_port, self.web_tls_port) if web else (self.port, self.tls_port)
        schemes = ("http", "https") if web else ("pulsar", "pulsar+ssl")
        return f"{schemes[0]}://{host}:{plain}" if plain >= 0 else f"{schemes[1]}://{host}:{tls}"

    @property
    def broker_urls(self) -> str:
        """The available URLs of the Pulsar protocol."""
        return ", ".join(url for url in (self.broker_url, self.broker_url_tls) if url)

    @property
    def web_urls(self) -> str:
        """The available URLs of the Admin API."""
        return ", ".join(url for url in (self.web_url, self.web_url_tls) if url)


class StartReport(Protocol):
    """The receiver of the daemon's startup result."""

    def serving(self, running: RuntimeFile) -> None:
        """Report that both ports serve."""

    def failed(self, reason: str) -> None:
        """Report that startup failed."""


def write(directory: Path, running: RuntimeFile) -> None:
    """Write the runtime file and the secret, readable by their owner only. Raises OSError."""
    if running.operator:
        _write(directory / OPERATOR, running.operator)
    _write(directory / RUNNING, json.dumps(asdict(replace(running, operator=""))) + "\n")


def _write(file: Path, text: str) -> None:
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)  # its mode would remain
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as out:
        out.write(text)
    new.replace(file)


def read(directory: Path, pid: int) -> RuntimeFile | None:
    """Return the runtime data of the process that holds the directory; None if it does not serve."""
    try:
        running = RuntimeFile(**json.loads((directory / RUNNING).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return replace(running, operator=_operator(directory)) if running.pid == pid else None


def _operator(directory: Path) -> str:
    """Read the secret; empty if it is missing or not readable by this user."""
    try:
        return (directory / OPERATOR).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def remove(directory: Path) -> None:
    """Remove the runtime file and the secret."""
    for name in (RUNNING, OPERATOR):
        with contextlib.suppress(OSError):
            (directory / name).unlink()
