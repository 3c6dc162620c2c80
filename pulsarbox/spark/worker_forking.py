"""Replacement for Spark's forking daemon that imports what workers need before the fork.

Spark's own daemon leaves the imports to each worker: a second of CPU time, again after every idle minute, since Spark
ends workers that are idle for that long. A module loaded here must not start threads that a fork would lose. pyarrow
starts one for its allocator, which is fork-safe.
"""

import contextlib
import gc
import sys
from importlib import import_module
from typing import Final

_SINK: Final = ("pyarrow", "pulsarbox.spark.sink.data_sink", "pulsarbox.spark.sink.staging")
LOADED: Final = {
    "pyspark.worker": (*_SINK, "pulsarbox.spark.source.stream_reader", "pulsarbox.spark.pipelines.functions"),
    "pyspark.sql.worker.write_into_data_source": _SINK,
    "pyspark.sql.worker.python_streaming_sink_runner": _SINK,
}
"""Modules needed in each micro-batch, by the worker module that Spark names."""


def load(work: str) -> None:
    """Import the modules of a worker module. Workers report import failures when they need the module."""
    with contextlib.redirect_stdout(sys.stderr):  # Spark reads the stdout of this process
        for each in (work, *LOADED[work]) if work in LOADED else ():
            with contextlib.suppress(Exception):
                import_module(each)
    gc.freeze()  # keeps the collector from copying these pages in each worker


def main() -> None:
    """Fork workers for Spark until it ends."""
    load(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
