"""The far end of this process's streams: a terminal or a pipe, and how a command ends once it is gone.

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
"""What a system answers to any request about a terminal that has been closed."""


def is_closed(descriptor: int) -> bool:
    """Return whether a descriptor leads to a terminal that no longer exists. Never blocks."""
    try:
        if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
            return False
        if _is_abandoned(descriptor, 0):
            return True
        termios.tcgetattr(descriptor)  # on macOS, poll() knows nothing of terminals
    except termios.error as error:
        return error.args[0] in _GONE
    except OSError:
        return False
    return False


def end_when_closed(*descriptors: int) -> None:
    """From now on, end this process with ``EXIT_HUNG_UP`` soon after one of these terminals is closed.

    A thread watches them and ends the process at once, because the main thread may be waiting to write to the terminal.
    """

    def watch() -> None:
        while not any(map(is_closed, descriptors)):
            time.sleep(_LOOK_SECONDS)
        os._exit(EXIT_HUNG_UP)

    import threading

    threading.Thread(target=watch, name="terminal", daemon=True).start()


def check_reader(descriptor: int) -> None:
    """Raise HungUp if the terminal of a descriptor is closed, BrokenPipeError if nobody reads its pipe."""
    if is_closed(descriptor):
        raise HungUp
    if _is_abandoned(descriptor, 0):
        raise BrokenPipeError


def rest(seconds: float) -> None:
    """Wait between two lines of output. Raises HungUp or BrokenPipeError as soon as nobody can read stdout."""
    end = time.monotonic() + seconds
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, ValueError):  # stdout is closed, or an object of a test
        pass
    else:
        if _is_abandoned(descriptor, seconds):
            check_reader(descriptor)
    time.sleep(max(end - time.monotonic(), 0))


def _is_abandoned(descriptor: int, seconds: float) -> bool:
    """Return whether the other end of a pipe, socket or terminal is closed, or becomes so within this time."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(mask & (select.POLLERR | select.POLLHUP) for _, mask in poll.poll(seconds * 1000))
