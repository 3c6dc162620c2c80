"""Rows of an Iceberg table as an Arrow dataset."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.dataset as ds

from pulsarbox.cli.sql.query_dataset import QueryDataset, ReadProgress
from pulsarbox.spark.lakehouse.table_scan import TableScan, arrow_of


class TableDataset(QueryDataset):
    """Dataset of one snapshot."""

    def __init__(self, scan: TableScan, progress: ReadProgress) -> None:
        super().__init__(arrow_of(scan), progress)
        self._scan = scan

    def batches(self, schema: pa.Schema, condition: ds.Expression | None) -> Iterator[pa.RecordBatch]:
        """See QueryDataset. DuckDB applies the filter."""
        return self._scan.batches(schema)
