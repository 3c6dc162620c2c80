"""Limit on Spark's garbage collection, which scans all loaded objects after each task of a reused worker."""

import functools
import gc
import os
from typing import Final

REUSED: Final = "SPARK_REUSE_WORKER"
"""Variable that Spark sets in processes that run several tasks."""


@functools.cache
def settle() -> None:
    """Freeze the objects that exist at the end of a process's first task, so that later collections skip them.

    For workers, and for the processes that plan reads. Elsewhere it does nothing."""
    if os.environ.get(REUSED):
        gc.freeze()
