"""Spark's own process that forks others, with what these need loaded before the fork: ``python -m`` in its place.

Spark's has each of them import for itself, a second of processor time; and again after every minute in which nothing
came, since Spark ends what is idle for so long. What is loaded here may start no thread that a fork would miss: pyarrow
starts one of its allocator's, which knows of forks.
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
"""By what the processes do that are forked, as Spark names it: those that are needed in each micro-batch."""


def load(work: str) -> None:
    """Import what processes of a kind need. What cannot be imported they say themselves, when they need it."""
    with contextlib.redirect_stdout(sys.stderr):  # Spark reads what the process writes
        for each in (work, *LOADED[work]) if work in LOADED else ():
            with contextlib.suppress(Exception):
                import_module(each)
    gc.freeze()  # so that looking for cycles does not copy it into each of them


def main() -> None:
    """Fork processes for Spark, until it ends."""
    load(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
