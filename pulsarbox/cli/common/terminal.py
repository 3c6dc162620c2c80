"""Detection of a closed terminal or pipe at the other end of a standard stream.

SIGHUP ends most processes whose terminal closes. It is ignored under ``nohup``, and does not reach a process in a
session of its own, so nothing here relies on a signal.
"""

import errno
import os
import select
import stat
import sys
import termios
import time
from typing import Final

from pulsarbox.cli.common.exits import EXIT_HUNG_UP, HungUp

_LOOK_SECONDS: Final = 0.5
_GONE: Final = (errno.EIO, errno.ENXIO)
"""Errors of any call on a closed terminal."""


def is_closed(descriptor: int) -> bool:
    """Return whether the terminal of a descriptor has been closed. Never blocks."""
    try:
        if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
            return False
        if _is_abandoned(descriptor, 0):
            return True
        termios.tcgetattr(descriptor)  # on macOS, poll() does not support terminals
    except termios.error as error:
        return error.args[0] in _GONE
    except OSError:
        return False
    return False


def end_when_closed(*descriptors: int) -> None:
    """Exit the process with ``EXIT_HUNG_UP`` soon after one of these terminals is closed.

    A thread polls them and exits immediately, because the main thread may be blocked on writing to the terminal.
    """

    def watch() -> None:
        while not any(map(is_closed, descriptors)):
            time.sleep(_LOOK_SECONDS)
        os._exit(EXIT_HUNG_UP)

    import threading

    threading.Thread(target=watch, name="terminal", daemon=True).start()


def check_reader(descriptor: int) -> None:
    """Raise HungUp if the terminal of a descriptor is closed, BrokenPipeError if its pipe has no reader."""
    if is_closed(descriptor):
        raise HungUp
    if _is_abandoned(descriptor, 0):
        raise BrokenPipeError


def rest(seconds: float) -> None:
    """Sleep between outputs. Raises HungUp or BrokenPipeError as soon as stdout has no reader."""
    end = time.monotonic() + seconds
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, ValueError):  # stdout is closed, or replaced by a test
        pass
    else:
        if _is_abandoned(descriptor, seconds):
            check_reader(descriptor)
    time.sleep(max(end - time.monotonic(), 0))


def _is_abandoned(descriptor: int, seconds: float) -> bool:
    """Return whether the other end of a pipe, socket or terminal is closed, or is closed within this time."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(mask & (select.POLLERR | select.POLLHUP) for _, mask in poll.poll(seconds * 1000))
