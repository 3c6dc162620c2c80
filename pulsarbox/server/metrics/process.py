"""CPU time, memory and files of the process, as reported by the system."""

import os
import resource
import time
from pathlib import Path
from typing import Final

from pulsarbox.broker.stats.rate_window import RateWindow
from pulsarbox.clock import Now

_STATM: Final = Path("/proc/self/statm")
_FILES: Final = Path("/proc/self/fd")


class ProcessMetrics:
    """This process, with any number of boxes."""

    def __init__(self) -> None:
        self._meter = RateWindow(time.monotonic(), 1)
        self._before = time.process_time_ns()

    def _used(self) -> tuple[tuple[int], Now]:
        return (time.process_time_ns() - self._before,), Now(time.monotonic(), 0)

    def sample(self) -> None:
        """See RateWindow.sample."""
        self._meter.sample(*self._used())

    def percent(self) -> float:
        """Return the share of the machine's processors used over the last minute, in percent."""
        return round(self._meter.rates(*self._used())[0] / 1e7 / processors(), 3)


PROCESS: Final = ProcessMetrics()


def cpu_seconds() -> float:
    """Return the CPU time so far."""
    return time.process_time()


def memory() -> tuple[int, int]:
    """Return the bytes of virtual and of resident memory; zeros if unavailable."""
    try:
        pages = [int(word) for word in _STATM.read_text("ascii").split()[:2]]
    except OSError:
        return 0, 0
    size = os.sysconf("SC_PAGE_SIZE")
    return pages[0] * size, pages[1] * size


def processors() -> int:
    """Return the number of processors."""
    return os.cpu_count() or 1


def machine_memory() -> int:
    """Return the bytes of memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def files() -> tuple[int, int]:
    """Return the number of open files and sockets, and their limit."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        return sum(1 for _ in _FILES.iterdir()), limit
    except OSError:
        return 0, limit
