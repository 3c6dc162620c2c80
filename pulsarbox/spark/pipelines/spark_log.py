"""Spark's log: the output of the JVM and of users' code in workers, limited in size."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from pulsarbox.storage.lmdb.private_files import make_directory, opener

LOG: Final = "spark.log"
MOST_BYTES: Final = 10 << 20
"""Limit of the log and of the previous one, each."""
_EVERY_SECONDS: Final = 1.0
_PIECE_BYTES: Final = 1 << 20


def before(log: Path) -> Path:
    """Return the previous log, of an earlier run or of this one."""
    return log.with_name(f"{log.name}.1")


def begin(log: Path) -> IO[bytes]:
    """Open a new log for appending; the existing one becomes the previous log. Raises OSError."""
    make_directory(log.parent)
    with contextlib.suppress(FileNotFoundError):
        log.replace(before(log))
    return open(log, "ab", opener=opener)


def bound(log: Path, most: int = MOST_BYTES) -> bool:
    """Truncate a log longer than ``most`` and keep its end as the previous log; return whether it was.

    The writer keeps it open in append mode. Output between the last read and the truncation is lost. Raises OSError.
    """
    with log.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            return False
        file.seek(size - most)
        new = log.with_name(f"{log.name}.new")
        with open(new, "wb", opener=opener) as kept:
            while piece := file.read(_PIECE_BYTES):
                kept.write(piece)
        new.replace(before(log))
        file.truncate(0)
    return True


def bound_periodically(log: Path, is_written: Callable[[], bool], most: int = MOST_BYTES) -> None:
    """Bound the log periodically, on a thread, as long as it is written."""

    def keep() -> None:
        while is_written():
            with contextlib.suppress(OSError):  # deleted, or the disk is full
                bound(log, most)
            time.sleep(_EVERY_SECONDS)

    threading.Thread(target=keep, name="pulsarbox spark.log", daemon=True).start()


def forget(log: Path) -> None:
    """Delete the log and the previous one. Raises OSError."""
    for each in (log, before(log)):
        each.unlink(missing_ok=True)
