"""Another process: asked to end, and waited for, without ever meaning one that was given its number later."""

import errno
import os
import select
import signal
import time
from pathlib import Path
from typing import Final, Protocol

_POLL_SECONDS: Final = 0.05
_NOT_HERE: Final = (errno.ENOSYS, errno.EPERM, errno.EINVAL)
"""What a kernel before Linux 5.3, or a sandbox that does not know of it, says to pidfd_open."""


class Process(Protocol):
    """A process that was there when it was looked for."""

    def terminate(self) -> None:
        """SIGTERM. Raises PermissionError, and ProcessLookupError where it has ended."""

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within that time."""


def find_process(pid: int) -> Process | None:
    """The process of that number, None where there is none, or it is not seen from here."""
    if pid <= 0:
        return None
    try:
        return _ByDescriptor(os.pidfd_open(pid))
    except AttributeError:  # a Python that was built where there is none
        pass
    except OSError as error:
        if error.errno not in _NOT_HERE:
            return None
    started = _started(pid)
    return None if started is None else _ByStart(pid, started)


class _ByDescriptor:
    """By a descriptor that stays with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def terminate(self) -> None:
        signal.pidfd_send_signal(self._descriptor, signal.SIGTERM)

    def wait(self, seconds: float) -> bool:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))


class _ByStart:
    """By the time of its start, which another process of the same number cannot have."""

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
    """When a process began, in the kernel's words; None where it has ended, or nothing is told of it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name in front may hold blanks and brackets
    return None if fields[0] in "ZX" else fields[19]
