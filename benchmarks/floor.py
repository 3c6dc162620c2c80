"""Data source in Python that returns prepared record batches: the upper bound for any such source."""

import time
from collections.abc import Iterator
from os import urandom
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarbox.spark.decode.row_columns import BASIC, VALUE
from pulsarbox.spark.schema.spark_types import of_row

NAME: Final = "floor"


def made(schema: StructType, rows: int, size: int) -> pa.RecordBatch:
    """Return a batch as a read of topics does: values of ``size`` bytes, a key and a property each, many topics."""
    now = int(time.time() * 1e6)
    columns: dict[str, list[Any]] = {
        VALUE: [urandom(size) for _ in range(rows)],
        "__key": [b"key-%d" % (at % 1000) for at in range(rows)],
        "__topic": [f"persistent://public/default/{size}-1-{at % 100}" for at in range(rows)],
        "__messageId": [b"\x08\x2a\x10%c\x01" % (0x80 | at % 128) for at in range(rows)],
        "__publishTime": [now + 1000 * at for at in range(rows)],
        "__eventTime": [None] * rows,
        "__messageProperties": [[("n", "1")]] * rows,
    }
    arrow = to_arrow_schema(schema, timezone="UTC")
    arrays = [pa.array(columns[field.name], field.type) for field in arrow]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


class Share(InputPartition):
    """Number of rows of one task."""


class FloorReader(DataSourceReader):
    """Reader with the options ``rows`` of all tasks, ``tasks``, ``batch`` (rows per batch) and ``size`` of a value."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._numbers = {name: int(options[name]) for name in ("rows", "tasks", "batch", "size")}
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the requested number of partitions, of about equal size."""
        rows, tasks = self._numbers["rows"], self._numbers["tasks"]
        return [Share((at + 1) * rows // tasks - at * rows // tasks) for at in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the same batch repeatedly."""
        batch = made(self._schema, self._numbers["batch"], self._numbers["size"])
        left = int(partition.value)
        while left > 0:
            yield batch if left >= batch.num_rows else batch.slice(0, left)
            left -= batch.num_rows


class FloorSource(DataSource):
    """Data source with the columns of a plain read of topics."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the schema: a binary value and the basic columns of a topic."""
        return StructType([StructField(VALUE, BinaryType()), *map(of_row, BASIC)])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        return FloorReader(dict(self.options), schema)
