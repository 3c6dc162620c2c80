"""Termination of another process, safe against reuse of its process ID."""

import errno
import os
import select
import signal
import time
from pathlib import Path
from typing import Final, Protocol

_POLL_SECONDS: Final = 0.05
_NOT_HERE: Final = (errno.ENOSYS, errno.EPERM, errno.EINVAL)
"""Errors of pidfd_open before Linux 5.3, or in a sandbox that does not support it."""


class Process(Protocol):
    """A process that existed when it was looked up."""

    def terminate(self) -> None:
        """Send SIGTERM. Raises PermissionError, and ProcessLookupError if the process has ended."""

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the process. Return whether it ended in time."""


def find_process(pid: int) -> Process | None:
    """Return the process with this ID, None if it does not exist or is not visible."""
    if pid <= 0:
        return None
    try:
        return _ByDescriptor(os.pidfd_open(pid))
    except AttributeError:  # Python built without pidfd_open
        pass
    except OSError as error:
        if error.errno not in _NOT_HERE:
            return None
    started = _started(pid)
    return None if started is None else _ByStart(pid, started)


class _ByDescriptor:
    """Process identified by a pidfd."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def terminate(self) -> None:
        signal.pidfd_send_signal(self._descriptor, signal.SIGTERM)

    def wait(self, seconds: float) -> bool:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))


class _ByStart:
    """Process identified by ID and start time."""

    def __init__(self, pid: int, started: str) -> None:
        self._pid = pid
        self._started = started

    def terminate(self) -> None:
        if not self._is_there():
            raise ProcessLookupError
        os.kill(self._pid, signal.SIGTERM)

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._is_there():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL_SECONDS, left))
        return True

    def _is_there(self) -> bool:
        return _started(self._pid) == self._started


def _started(pid: int) -> str | None:
    """Return the start time of a process in clock ticks, None if it has ended or is not visible."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command name may contain spaces and parentheses
    return None if fields[0] in "ZX" else fields[19]
