"""Format ``pulsarbox-iceberg`` of ``df.write`` and ``df.writeStream``: rows to an Iceberg table, each epoch once."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyiceberg.manifest import DataFile

    from pulsarbox.spark.lakehouse.data_files import TaskTable, WriterEpoch
    from pulsarbox.spark.lakehouse.sink_options import TableOptions

JOB = "job-"
"""Prefix of the writers of batch writes."""


@dataclass
class WrittenFiles(WriterCommitMessage):
    """Message of a task to the driver."""

    of: "WriterEpoch"
    files: "tuple[DataFile, ...]"


class IcebergSource(DataSource):
    """Data source of ``format("pulsarbox-iceberg")``, for writing only."""

    @classmethod
    def name(cls) -> str:
        """Return the name that users pass to ``format``."""
        return "pulsarbox-iceberg"

    def writer(self, schema: StructType, overwrite: bool) -> "IcebergBatchWriter":
        """Return the writer of ``df.write``. Raises TableError."""
        return IcebergBatchWriter(*_prepared(self.options, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "IcebergStreamWriter":  # noqa: N802 - Spark's name
        """Return the writer of ``df.writeStream``. Raises TableError."""
        return IcebergStreamWriter(*_prepared(self.options, schema, overwrite, is_stream=True))


def _prepared(
    given: Any, schema: StructType, overwrite: bool, *, is_stream: bool = False
) -> "tuple[TableOptions, TaskTable]":
    """Create or check the table. Runs on the driver's machine, for each micro-batch."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from pulsarbox.spark.lakehouse.catalogs import opened, table_for
    from pulsarbox.spark.lakehouse.data_files import for_tasks
    from pulsarbox.spark.lakehouse.sink_options import parse_options
    from pulsarbox.spark.lakehouse.table_place import TableError

    options = parse_options(given)
    if overwrite:
        raise TableError(f"table {options.place} is not overwritten: use mode('append') or outputMode('append')")
    if is_stream and options.job_id:
        raise TableError("option jobId is for write: the epochs of a stream have their own names")
    with opened(options) as catalog:
        table = table_for(catalog, options, to_arrow_schema(schema, timezone="UTC"))
        return options, for_tasks(table, options.file_bytes)


class _Writer:
    def __init__(self, options: "TableOptions", table: "TaskTable") -> None:
        self._options = options
        self._table = table

    def _write(self, of: "WriterEpoch", batches: "Iterator[RecordBatch]") -> WrittenFiles:
        from pulsarbox.spark.lakehouse.data_files import write

        return WrittenFiles(of, tuple(write(self._table, of, batches)))

    def _commit(self, messages: Sequence[WriterCommitMessage | None]) -> bool:
        from pulsarbox.spark.lakehouse.catalogs import opened
        from pulsarbox.spark.lakehouse.epoch_commit import commit

        found = [each for each in messages if isinstance(each, WrittenFiles)]
        if not found:
            return True
        files = [file for each in found for file in each.files]
        with opened(self._options) as catalog:
            return commit(catalog, self._options.place.name, found[0].of, files)


class IcebergBatchWriter(_Writer, DataSourceArrowWriter):
    """Writer of ``df.write``: one snapshot per write, and one per ``jobId``."""

    def __init__(self, options: "TableOptions", table: "TaskTable") -> None:
        """Name the write; without a ``jobId`` its name is unique."""
        super().__init__(options, table)
        self._name = JOB + (options.job_id or uuid.uuid4().hex)

    def write(self, iterator: "Iterator[RecordBatch]") -> WrittenFiles:
        """Write a partition. Runs in a worker."""
        from pulsarbox.spark.lakehouse.data_files import WriterEpoch

        return self._write(WriterEpoch(self._name, 0), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks. Runs on the driver's machine."""
        if not self._commit(messages):
            from pulsarbox.spark.sink.write_job import print_on_driver

            print_on_driver(f"job {self._options.job_id} was already written: nothing is added")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave the files: Spark also calls this if the outcome of a commit is unknown."""


class IcebergStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writer of ``df.writeStream``: one snapshot per micro-batch with rows."""

    def write(self, iterator: "Iterator[RecordBatch]") -> WrittenFiles:
        """Write a partition of a micro-batch. Runs in a worker."""
        from pulsarbox.spark.lakehouse.data_files import WriterEpoch
        from pulsarbox.spark.lakehouse.table_place import TableError
        from pulsarbox.spark.sink.data_sink import EPOCH, QUERY

        context = TaskContext.get()
        assert context is not None, "called in a task"
        query, epoch = context.getLocalProperty(QUERY), context.getLocalProperty(EPOCH)
        if not (query and epoch):
            raise TableError(f"this version of Spark does not report which query a task belongs to ({QUERY}, {EPOCH})")
        return self._write(WriterEpoch(query, int(epoch)), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit the files of all tasks of a micro-batch. Runs on the driver's machine."""
        from pulsarbox.spark.durable_files import make_durable

        make_durable(self._options.checkpoint, batchId)
        self._commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Leave the files; the commit of the epoch's next attempt deletes them."""
