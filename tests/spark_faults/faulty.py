"""The sink with faults: kills a process once at named points of named epochs. Spark calls the real sink.

A folder holds the plan: ``faults/EPOCH`` names the point, and is renamed when the fault occurs. ``jvm.pid`` and
``box.pid`` hold the IDs of the processes to kill.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from pyspark import TaskContext
from pyspark.sql.types import StructType

from pulsarbox.spark.pipelines.delta_output import DeltaEpochs
from pulsarbox.spark.sink.data_sink import EPOCH, BatchWriter, StreamWriter, Written, sinking_of
from pulsarbox.spark.sink.write_job import Sinking
from pulsarbox.spark.source.data_source import PulsarboxSource

FOLDER: Final = "SPARK_FAULTS_FOLDER"
DURING_SECONDS: Final = 0.002
"""Seconds, about the duration of a commit in the broker."""
SLOW_SECONDS: Final = 300.0
IN_TASKS: Final = ("task-before", "task-during", "task-after")
"""Points of a task: before staging, after the first staged rows, after staging all rows."""
AT_COMMIT: Final = ("commit-before", "commit-during", "commit-after")
"""Points of the driver: before the commit request, during it, after its response."""


Message = TypeVar("Message")


def folder() -> Path:
    return Path(os.environ[FOLDER])


def struck(epoch: int, point: str) -> str:
    """Return the process to kill at this point, once; empty for none."""
    plan = folder() / "faults" / str(epoch)
    try:
        whom, _, planned = plan.read_text().partition(" ")
        if planned != point:
            return ""
        plan.rename(plan.with_name(f"{epoch}.struck"))
    except FileNotFoundError:  # none planned, or another task was first
        return ""
    return whom


def kill(whom: str) -> None:
    """Kill the process with SIGKILL, or raise."""
    if whom == "fail":
        raise RuntimeError("the campaign has this task fail")
    if whom == "worker":
        os.kill(os.getpid(), signal.SIGKILL)
    pid = int((folder() / f"{whom}.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    if whom == "jvm":
        os.kill(os.getpid(), signal.SIGKILL)


def _task(epoch: int, point: str, *, in_any: bool = False) -> None:
    """Strike the first partition, or with ``in_any`` whichever comes first: the first one may have no rows."""
    context = TaskContext.get()
    if context is None or (context.partitionId() != 0 and not in_any):
        return
    whom = struck(epoch, point)
    if whom == "slow":  # only the first attempt, for a speculative one to overtake
        time.sleep(SLOW_SECONDS)
    elif whom:
        kill(whom)


def _writing(epoch: int, write: Callable[[Iterator[Any]], Message], iterator: "Iterator[Any]") -> Message:
    """Write an epoch, or a part of a job, with faults at planned points."""

    def batches() -> Iterator[Any]:
        for batch in iterator:
            yield batch.slice(0, 1)
            _task(epoch, "task-during", in_any=True)
            yield batch.slice(1)

    _task(epoch, "task-before")
    written = write(batches())
    _task(epoch, "task-after")
    return written


def _committing(epoch: int, commit: Callable[[], None]) -> None:
    whom = struck(epoch, "commit-before")
    if whom == "wait":
        (folder() / "waiting").touch()
        while not (folder() / "go").exists():
            time.sleep(0.05)
    elif whom:
        kill(whom)
    whom = struck(epoch, "commit-during")
    if whom:
        _while(commit, lambda: kill(whom))
    else:
        commit()
    whom = struck(epoch, "commit-after")
    if whom:
        kill(whom)


class FaultyWriter(StreamWriter):
    """The streaming writer, with faults."""

    def write(self, iterator: "Iterator[Any]") -> Written:
        context = TaskContext.get()
        assert context is not None
        return _writing(int(context.getLocalProperty(EPOCH) or -1), super().write, iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803 - Spark's name
        _committing(batchId, lambda: StreamWriter.commit(self, messages, batchId))


class FaultyBatch(BatchWriter):
    """The batch writer, with faults; a part of a job counts as an epoch, from 0 on."""

    def __init__(self, sinking: Sinking) -> None:
        super().__init__(sinking)
        self._part = sinking.options.job_part - 1

    def write(self, iterator: "Iterator[Any]") -> Written:
        return _writing(self._part, super().write, iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        _committing(self._part, lambda: BatchWriter.commit(self, messages))


def _while(do: Callable[[], None], strike: Callable[[], None]) -> None:
    """Strike during ``do``, then wait for its end."""
    failed: list[BaseException] = []

    def doing() -> None:
        try:
            do()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=doing)
    thread.start()
    time.sleep(DURING_SECONDS)
    strike()
    thread.join()
    if failed:
        raise failed[0]


AS_FILES_APPEAR: Final = {"file-opened": "table/part=*/*.parquet", "log-written": "table/_delta_log/*.json"}
"""Points in the middle of Delta's write, and the files by which they are recognized."""


class FaultyEpochs(DeltaEpochs):
    """The writer of Delta's micro-batches, with faults in tasks, as files appear, and around the write."""

    def __call__(self, rows: Any, epoch: int) -> None:
        for point, pattern in AS_FILES_APPEAR.items():
            if whom := struck(epoch, point):
                known = set(folder().glob(pattern))
                threading.Thread(target=_kill_after, args=(whom, pattern, known), daemon=True).start()
        rows = rows.mapInArrow(partial(_in_tasks, epoch), rows.schema)
        _committing(epoch, lambda: DeltaEpochs.__call__(self, rows, epoch))


def _kill_after(whom: str, pattern: str, known: set[Path]) -> None:
    while set(folder().glob(pattern)) <= known:
        time.sleep(0.001)
    kill(whom)


def _in_tasks(epoch: int, batches: Iterator[Any]) -> Iterator[Any]:
    _task(epoch, "task-before")
    for batch in batches:
        yield batch.slice(0, 1)
        _task(epoch, "task-during", in_any=True)
        yield batch.slice(1)
    _task(epoch, "task-after")


class FaultySource(PulsarboxSource):
    """The format, with the faulty writers."""

    def writer(self, schema: StructType, overwrite: bool) -> FaultyBatch:
        return FaultyBatch(sinking_of(self.options, schema, overwrite, is_stream=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:  # noqa: N802 - Spark's name
        return FaultyWriter(sinking_of(self.options, schema, overwrite, is_stream=True))
