"""Spark's own log: what its JVM writes, and users' code in its workers. It is bounded, however long a runner runs."""

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
"""Of the log, and of the one before, each."""
_EVERY_SECONDS: Final = 1.0
_PIECE_BYTES: Final = 1 << 20


def before(log: Path) -> Path:
    """Where that is kept which a log has had before it began anew: of the run before, or of this one."""
    return log.with_name(f"{log.name}.1")


def begin(log: Path) -> IO[bytes]:
    """Open a new log for appending; what was there is the one before. Raises OSError."""
    make_directory(log.parent)
    with contextlib.suppress(FileNotFoundError):
        log.replace(before(log))
    return open(log, "ab", opener=opener)


def bound(log: Path, most: int = MOST_BYTES) -> bool:
    """Where a log is longer than ``most``: its end becomes the one before, and it begins anew; whether it was. Who
    writes it has it open, and appends. What comes between the last look and the cut is lost. Raises OSError."""
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


def keep_bounded(log: Path, is_written: Callable[[], bool], most: int = MOST_BYTES) -> None:
    """Bound it now and then, on a thread of its own, as long as somebody writes it."""

    def keep() -> None:
        while is_written():
            with contextlib.suppress(OSError):  # somebody has deleted it, or the disk is full
                bound(log, most)
            time.sleep(_EVERY_SECONDS)

    threading.Thread(target=keep, name="pulsarbox spark.log", daemon=True).start()


def forget(log: Path) -> None:
    """Delete it, and the one before. Raises OSError."""
    for each in (log, before(log)):
        each.unlink(missing_ok=True)
