"""Parquet files in object storage as a frame, read by Spark's Python workers with pyarrow, without a Hadoop driver.

Workers use the driver's endpoint and credentials.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from pulsarbox.spark.offload.object_path import ObjectPath, current, place_of, use

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS: Final = 10_000
"""Rows of a batch passed to Spark."""
_PER_CORE: Final = 4


def frame_of(spark: "SparkSession", paths: Sequence[str], columns: StructType) -> "DataFrame":
    """Return the rows of files, whose columns are read by name; missing ones are null.

    ``paths``: ``s3://bucket/key``. Files are divided among four tasks per core.
    """
    count = max(min(len(paths), _PER_CORE * spark.sparkContext.defaultParallelism), 1)
    groups = [list(paths[number::count]) for number in range(count)]
    if not columns.fields:  # Spark has no Arrow batches without columns
        columns = StructType([StructField("__ledgerId", LongType())])
    schema, access = to_arrow_schema(columns, timezone="UTC"), current()

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use(access)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for path in groups[number]:
                    yield from _batches(path, schema)

    return spark.range(0, count, 1, count).mapInArrow(read, columns)


def _batches(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    place = place_of(path)
    assert isinstance(place, ObjectPath)
    with place.open() as stored, pq.ParquetFile(stored, pre_buffer=True) as file:
        there = [name for name in schema.names if name in file.schema_arrow.names]
        for batch in file.iter_batches(ROWS, columns=there):
            yield pa.RecordBatch.from_arrays([_column(batch, field) for field in schema], schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    found = batch.column(field.name)
    return found if found.type == field.type else found.cast(field.type)
