"""Rows of an Iceberg table as an Arrow dataset: DuckDB requests the columns and rows that a query needs."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from pulsarbox.cli.sql.live_dataset import ReadProgress, with_filtered
from pulsarbox.spark.lakehouse.table_scan import TableScan, arrow_of


class TableDataset(ds.Dataset):  # type: ignore[misc] # pyarrow has no types
    """Dataset that DuckDB scans. Each scan reads the same snapshot."""

    def __init__(self, scan: TableScan, progress: ReadProgress) -> None:
        self._scan = scan
        self._progress = progress
        self._arrow = arrow_of(scan)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._arrow

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 - Arrow's name
        **more: Any,
    ) -> ds.Scanner:
        """Return a scan of some columns of the rows that pass a filter. DuckDB's call; ``more`` is not needed."""
        names = self._arrow.names if columns is None else list(columns)
        needed = names if filter is None else with_filtered(names, filter, self._arrow)
        schema = pa.schema([self._arrow.field(name) for name in needed])
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(schema))
        return ds.Scanner.from_batches(reader, columns=names, filter=filter)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._scan.batches(schema):
                self._progress.rows += batch.num_rows
                yield batch
        except GeneratorExit:
            raise
        except BaseException as error:  # DuckDB would report it as text
            self._progress.error = self._progress.error or error
            raise
