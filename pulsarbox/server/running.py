"""Where a box serves: told to whoever started it, and kept in the data directory for who asks later.

No part of the data: whoever takes the directory removes it first, so it speaks of the process that holds the lock.
"""

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from pulsarbox.storage.format import RUNNING


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
    broker_url_tls: str = ""
    """Empty where there is no TLS; so with the other one."""
    web_url_tls: str = ""
    tls_port: int = -1
    web_tls_port: int = -1
    certificate: str = ""
    """The file of the box's own certificate, an absolute path: who may read it knows whom to expect."""

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
    """Keep it. Raises OSError."""
    new = directory / f"{RUNNING}.new"
    new.write_text(json.dumps(asdict(running)) + "\n")
    new.replace(directory / RUNNING)


def read(directory: Path, pid: int) -> Running | None:
    """What the process says that holds the directory; None where it does not serve yet, or any more."""
    try:
        running = Running(**json.loads((directory / RUNNING).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return running if running.pid == pid else None


def remove(directory: Path) -> None:
    """It does not serve any more."""
    with contextlib.suppress(OSError):
        (directory / RUNNING).unlink()
