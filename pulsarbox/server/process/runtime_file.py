"""Where a box serves: told to whoever started it, and kept in the data directory for who asks later.

No part of the data: whoever takes the directory removes it first, so it speaks of the process that holds the lock.
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
class Running:
    """A box that serves."""

    pid: int
    started: int
    """When its process began to serve, milliseconds since 1970."""
    version: str
    broker_url: str
    """As clients are told."""
    web_url: str
    host: str
    """Where this machine reaches it, whatever clients are told."""
    port: int
    """-1 where there is TLS only; so with the other one."""
    web_port: int
    data: str
    """The data directory, an absolute path; empty where nothing is kept."""
    clock: str = "real"
    """``real`` or ``virtual``."""
    faults: bool = False
    """Whether faults may be injected."""
    embedded: bool = False
    """Whether the process is another program, in which the box is."""
    operator: str = field(default="", repr=False)
    """With what commands on its data directory prove that they may; empty where nothing has to be proved."""
    broker_url_tls: str = ""
    """Empty where there is no TLS; so with the other one."""
    web_url_tls: str = ""
    tls_port: int = -1
    web_tls_port: int = -1
    certificate: str = ""
    """The file of the box's own certificate, an absolute path: who may read it knows whom to expect."""

    def local_url(self, web: bool) -> str:
        """Where this machine reaches the Admin API, or the Pulsar protocol: without TLS where that can be."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        plain, tls = (self.web_port, self.web_tls_port) if web else (self.port, self.tls_port)
        schemes = ("http", "https") if web else ("pulsar", "pulsar+ssl")
        return f"{schemes[0]}://{host}:{plain}" if plain >= 0 else f"{schemes[1]}://{host}:{tls}"

    @property
    def broker_urls(self) -> str:
        """Those that there are."""
        return ", ".join(url for url in (self.broker_url, self.broker_url_tls) if url)

    @property
    def web_urls(self) -> str:
        """Those that there are."""
        return ", ".join(url for url in (self.web_url, self.web_url_tls) if url)


class Report(Protocol):
    """Who started the daemon, and wants to know."""

    def serving(self, running: Running) -> None:
        """Both ports serve."""

    def failed(self, reason: str) -> None:
        """It does not start, or ends because it must."""


def write(directory: Path, running: Running) -> None:
    """Keep it in files that only their owner can read. Raises OSError."""
    if running.operator:
        _write(directory / OPERATOR, running.operator)
    _write(directory / RUNNING, json.dumps(asdict(replace(running, operator=""))) + "\n")


def _write(file: Path, text: str) -> None:
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)  # whose mode would stay
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as out:
        out.write(text)
    new.replace(file)


def read(directory: Path, pid: int) -> Running | None:
    """What the process says that holds the directory; None where it does not serve yet, or any more."""
    try:
        running = Running(**json.loads((directory / RUNNING).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return replace(running, operator=_operator(directory)) if running.pid == pid else None


def _operator(directory: Path) -> str:
    """Empty where there is none, or it is another user's."""
    try:
        return (directory / OPERATOR).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def remove(directory: Path) -> None:
    """It does not serve any more."""
    for name in (RUNNING, OPERATOR):
        with contextlib.suppress(OSError):
            (directory / name).unlink()
