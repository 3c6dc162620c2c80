"""Spark looks for cycles in a process of its after each task, among all that is loaded: so that is left out."""

import functools
import gc
import os
from typing import Final

REUSED: Final = "SPARK_REUSE_WORKER"
"""Set by Spark in processes that take one task after the other."""


@functools.cache
def settle() -> None:
    """To be called at the end of the first task of a process: what is there then stays, and is not looked at again."""
    if os.environ.get(REUSED):
        gc.freeze()
