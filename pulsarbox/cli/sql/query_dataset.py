"""Rows as an Arrow dataset: DuckDB requests the columns and rows that a query needs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds


@dataclass
class ReadProgress:
    """Messages read so far, and the first error, by all datasets of a query."""

    rows: int = 0
    error: BaseException | None = None
    topics: list[str] = field(default_factory=list)


class QueryDataset(ds.Dataset):  # type: ignore[misc] # pyarrow has no types
    """Dataset that DuckDB scans. Each scan reads the same rows."""

    def __init__(self, schema: pa.Schema, progress: ReadProgress) -> None:
        self._arrow = schema
        self._progress = progress

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
        try:
            return self._scanner(columns, filter)
        except Exception as error:  # DuckDB would report it as text
            self._note(error)
            raise

    def _scanner(self, columns: Sequence[str] | None, condition: ds.Expression | None) -> ds.Scanner:
        names = self._arrow.names if columns is None else list(columns)
        needed = names if condition is None else with_filtered(names, condition, self._arrow)
        schema = pa.schema([self._arrow.field(name) for name in needed])
        reader = pa.RecordBatchReader.from_batches(schema, self._counted(self.batches(schema, condition)))
        return ds.Scanner.from_batches(reader, columns=names, filter=condition)

    def batches(self, schema: pa.Schema, condition: ds.Expression | None) -> Iterator[pa.RecordBatch]:
        """Return the batches with the columns of ``schema``. Rows that do not pass may be left out."""
        raise NotImplementedError

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                self._progress.rows += batch.num_rows
                yield batch
        except GeneratorExit:
            raise
        except BaseException as error:
            self._note(error)
            raise

    def _note(self, error: BaseException) -> None:
        self._progress.error = self._progress.error or error


def with_filtered(names: list[str], condition: ds.Expression, schema: pa.Schema) -> list[str]:
    """Add the columns that a filter uses, in the order of the schema. Arrow does not report them: their names are in
    its text."""
    text = str(condition)
    chosen = [name for name in schema.names if name in names or name in text]
    empty = pa.schema([schema.field(name) for name in chosen]).empty_table()
    try:
        empty.filter(condition)
    except pa.ArrowInvalid:  # a name is spelt otherwise there
        return list(schema.names)
    return chosen
