"""Writers behind ``df.write`` and ``df.writeStream``, as called by Spark on the driver and in tasks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pulsarbox.spark.brief_errors import brief
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.durable_files import make_durable
from pulsarbox.spark.options import WRITE, OptionError, parse
from pulsarbox.spark.sink.epoch_client import Sink, SinkError
from pulsarbox.spark.sink.row_encoder import shape_of
from pulsarbox.spark.sink.write_job import Attempt, Sinking, WriteAttempt, print_on_driver
from pulsarbox.spark.worker_gc import settle

if TYPE_CHECKING:
    from pyarrow import RecordBatch

QUERY: Final = "sql.streaming.queryId"
EPOCH: Final = "streaming.sql.batchId"
RUN: Final = "spark.jobGroup.id"
"""Local properties of a streaming query's tasks: its ID, the number of the micro-batch, and the ID of this run. Spark
does not document them for data sources; a test covers them."""


@dataclass
class Written(WriterCommitMessage):
    """Message of a task to the driver."""

    part: WriteAttempt


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[WriteAttempt]:
    return [each.part for each in messages if isinstance(each, Written)]


class BatchWriter(DataSourceArrowWriter):
    """Writer of ``df.write``."""

    def __init__(self, sinking: Sinking) -> None:
        self._sinking = sinking

    @brief
    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        """Send or stage a partition. Runs in a worker."""
        attempt = Attempt(self._sinking.sink_of_batch(), self._sinking.batch_epoch, _context().partitionId())
        return Written(self._sinking.write(attempt, iterator))

    @brief
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish what all tasks have staged. Runs on the driver's machine."""
        if not self._sinking.commit(_parts(messages)):
            options = self._sinking.options
            part = f"part {options.job_part} of " if options.job_part else ""
            print_on_driver(f"{part}job {options.job_id} was already written: nothing is published")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort the staged transactions."""
        self._sinking.abort(_parts(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writer of ``df.writeStream``: one instance for the tasks of each micro-batch, another for its commit."""

    def __init__(self, sinking: Sinking, checkpoint: str = "") -> None:
        """Store the write; ``checkpoint`` is the query's checkpoint location, empty if unknown."""
        self._sinking = sinking
        self._checkpoint = checkpoint

    @brief
    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        """Send or stage a partition of a micro-batch. Runs in a worker."""
        context = _context()
        sink, epoch = self._named(context)
        return Written(self._sinking.write(Attempt(sink, epoch, context.partitionId()), iterator))

    def _named(self, context: TaskContext) -> tuple[Sink, int]:
        query, epoch, run = (context.getLocalProperty(name) for name in (QUERY, EPOCH, RUN))
        if not (query and epoch and run):
            raise SinkError(
                f"this version of Spark does not report which query a task belongs to ({QUERY}, {EPOCH}, {RUN})"
            )
        return self._sinking.sink_of_query(query, run), int(epoch)

    @brief
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish what all tasks of a micro-batch have staged. Runs on the driver's machine."""
        if self._sinking.options.delivery == "exactly-once":
            make_durable(self._checkpoint, batchId)
        self._sinking.commit(_parts(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Abort the staged transactions."""
        self._sinking.abort(_parts(messages))


def sinking_of(given: Mapping[str, str], schema: StructType, overwrite: bool, *, is_stream: bool) -> Sinking:
    """Return the write described by options and columns, after checking it. Raises OptionError, SinkError."""
    options = parse(given, WRITE)
    if overwrite:
        raise OptionError("topics cannot be overwritten: use mode('append') or outputMode('append')")
    if is_stream and options.job_id:
        raise OptionError("option jobId is for write: the epochs of a stream have their own names")
    if not is_stream and options.sink_id:
        raise OptionError("option sinkId is for writeStream: use jobId for a batch write")
    fields = [(each.name, each.dataType.simpleString()) for each in schema.fields]
    shape = shape_of(fields, options.topic, options.value_format)
    sinking = Sinking(options, reach(options), shape, schema.json(), is_stream)
    sinking.check()
    warning = sinking.loss_warning
    if warning:
        print_on_driver(f"warning: {warning}")
    settle()
    return sinking


def checkpoint_of(given: Mapping[str, str]) -> str:
    """Return the checkpoint location from a sink's options; empty if absent."""
    return {name.lower(): value for name, value in given.items()}.get("checkpointlocation", "")


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "called in a task"
    return context
