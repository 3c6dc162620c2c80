"""Rows of an Iceberg table as a frame, read by Spark's Python workers with pyiceberg, without Iceberg's jar."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from pulsarbox.spark.lakehouse.table_scan import TableScan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PER_CORE: Final = 4


def frame_of_table(spark: "SparkSession", scan: TableScan, columns: StructType) -> "DataFrame":
    """Return the rows of a scan. Files are divided among four tasks per core."""
    groups = scan.split(_PER_CORE * spark.sparkContext.defaultParallelism)
    if not columns.fields:  # Spark has no Arrow batches without columns
        columns = StructType([StructField("__ledgerId", LongType())])
    schema = to_arrow_schema(columns, timezone="UTC")

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from groups[number].batches(schema)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(read, columns)
