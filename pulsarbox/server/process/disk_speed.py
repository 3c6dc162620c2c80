"""Measurement of the sync latency of a disk, which every receipt waits for."""

import os
import time
from pathlib import Path

from pulsarbox.storage.lmdb.private_files import PRIVATE

SLOW_MS = 10.0
"""Median sync latency from which a warning is due: the receipt of a single message takes as long."""

_BLOCK = 4096


def sync_times(directory: Path, count: int) -> list[float]:
    """Return the sorted latencies in milliseconds of ``count`` syncs (fdatasync) of 4 KiB in ``directory``.

    The file is removed. Raises OSError.
    """
    # A named file: some file systems sync nothing of an unnamed one.
    path = directory / f"sync-test-{os.getpid()}.new"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    times = []
    try:
        for number in range(count):
            os.pwrite(descriptor, os.urandom(_BLOCK), number * _BLOCK)
            began = time.perf_counter_ns()
            os.fdatasync(descriptor)
            times.append((time.perf_counter_ns() - began) / 1e6)
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)
    return sorted(times)


def percentile(times: list[float], share: float) -> float:
    """Return the percentile ``share`` (0 to 1) of sorted times."""
    return times[min(len(times) - 1, int(share * len(times)))]


def slow(times: list[float], directory: str) -> str:
    """Return a warning with the figures if the disk is slow, otherwise an empty string."""
    median = percentile(times, 0.5)
    if median <= SLOW_MS:
        return ""
    return (
        f"the disk under {directory} is slow: a sync takes {median:.1f} ms (median of {len(times)}, the slowest"
        f" {times[-1]:.1f} ms), and each receipt waits for one; put the data directory on a faster disk (--data-dir)"
    )
