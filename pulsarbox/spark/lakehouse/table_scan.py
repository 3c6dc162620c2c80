"""Rows of some topics in a snapshot of an Iceberg table, read by pyiceberg file by file: its deletes are respected, and
columns are those of the table, whatever names and types older files have.

A table may have rows of topics without a schema, with the payload in ``value``, beside rows with fields. They are
presented as one form: the payload of each row is in ``__payload``, and rows without fields have it in
``_corrupt_record`` too, as in offloaded files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pulsarbox.spark.decode.row_columns import CORRUPT, PAYLOAD, VALUE
from pulsarbox.spark.lakehouse.iceberg_types import columns_of
from pulsarbox.spark.lakehouse.table_place import TableError
from pulsarbox.spark.schema.arrow_types import arrow_schema
from pulsarbox.spark.schema.column_types import ColumnField, field_of
from pulsarbox.spark.topic_segments import ReadPosition

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

_TOPIC = "__topic"


@dataclass(frozen=True)
class TableScan:
    """Files of a snapshot, and the topics whose rows are read. Picklable."""

    name: str
    """Name of the table, for messages."""
    metadata: str
    """The table's metadata without its history, as JSON."""
    io: dict[str, str]
    """Properties of file access; may contain credentials, so never printed."""
    tasks: "tuple[FileScanTask, ...]"
    topics: tuple[str, ...]
    """Full names of topics or partitions."""
    fields: list[ColumnField]
    """The columns, in Spark's JSON form."""

    def __repr__(self) -> str:
        return f"TableScan({self.name})"

    def split(self, count: int) -> "list[TableScan]":
        """Return scans of at most ``count`` groups of the files."""
        groups = [self.tasks[number::count] for number in range(min(count, len(self.tasks)))]
        return [replace(self, tasks=group) for group in groups]

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows with some columns, in the types of ``schema``, which must be able to hold them. Holds one
        file in memory. Raises TableError."""
        try:
            yield from self._batches(schema)
        except Exception as error:  # of the storage or of a file, as pyiceberg raises them
            raise TableError(f"table {self.name} cannot be read: {type(error).__name__}: {error}") from error

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pyiceberg.io import load_file_io
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.table.metadata import TableMetadataUtil

        metadata = TableMetadataUtil.parse_raw(self.metadata)
        io = load_file_io(self.io, metadata.location)
        names = self._needed(schema.names, metadata.schema().column_names)
        scan = ArrowScan(metadata, io, metadata.schema().select(*names), _of(self.topics))
        for task in self.tasks:
            for batch in scan.to_record_batches([task]):
                yield _as(_presented(batch), schema)

    def _needed(self, wanted: Sequence[str], there: Sequence[str]) -> list[str]:
        """Return the columns to read: those of the payload together, and one if only rows are counted."""
        names = [name for name in wanted if name in there]
        own = (VALUE, PAYLOAD, CORRUPT)
        if any(name in own for name in wanted):
            names += [name for name in own if name in there and name not in names]
        return names or [_TOPIC]


def scan_of(table: "Table", snapshot: int, topics: Sequence[str]) -> TableScan:
    """Return the scan of the rows of topics in a snapshot. Reads manifests, and no data."""
    from pyiceberg.table import FileScanTask

    found = table.scan(row_filter=_of(topics), snapshot_id=snapshot).plan_files()
    tasks = tuple(FileScanTask(each.file, each.delete_files) for each in found)
    fields = columns_of(table.schema())
    name, io = ".".join(table.name()), dict(table.io.properties)
    return TableScan(name, _without_history(table), io, tasks, tuple(topics), _as_presented(fields))


def has_row(table: "Table", snapshot: int, topic: str, place: ReadPosition) -> bool:
    """Return whether a snapshot has rows of an entry. Reads the files that may have them."""
    from pyiceberg import expressions

    known: Any = expressions.EqualTo  # its type lacks what it accepts
    columns = {_TOPIC: topic, "__ledgerId": place.ledger, "__entryId": place.entry}
    one = expressions.And(*(known(name, value) for name, value in columns.items()))
    return len(table.scan(row_filter=one, selected_fields=tuple(columns), snapshot_id=snapshot).to_arrow()) > 0


def _of(topics: Sequence[str]) -> Any:
    """Return the filter of the rows of topics."""
    from pyiceberg import expressions

    known: Any = expressions.In  # its type lacks what it accepts
    return known(_TOPIC, tuple(topics))


def _without_history(table: "Table") -> str:
    empty: dict[str, Any] = {
        "current_snapshot_id": None,
        "snapshots": [],
        "snapshot_log": [],
        "metadata_log": [],
        "refs": {},
        "properties": {name: each for name, each in table.properties.items() if not name.startswith("pulsarbox.")},
    }
    return table.metadata.model_copy(update=empty).model_dump_json()


def _is_mixed(types: dict[str, Any]) -> bool:
    """Return whether rows with and without fields may be in one table."""
    return types.get(VALUE) in ("binary", pa.binary(), pa.large_binary()) and PAYLOAD in types


def _as_presented(fields: list[ColumnField]) -> list[ColumnField]:
    types = {field["name"]: field["type"] for field in fields}
    return [*fields, field_of(CORRUPT, "binary")] if _is_mixed(types) and CORRUPT not in types else fields


def _presented(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in one form: payloads in ``__payload``, and those of rows without fields in ``_corrupt_record``."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if not _is_mixed({name: column.type for name, column in columns.items()}):
        return batch
    value, payload = columns[VALUE], columns[PAYLOAD].cast(columns[VALUE].type)
    is_raw, nothing = pc.is_null(payload), pa.nulls(len(value), value.type)
    corrupt = columns[CORRUPT].cast(value.type) if CORRUPT in columns else nothing
    columns[PAYLOAD] = pc.coalesce(payload, value)
    columns[CORRUPT] = pc.if_else(is_raw, pc.coalesce(corrupt, value), corrupt)
    columns[VALUE] = pc.if_else(is_raw, nothing, value)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = []
    for field in schema:
        found = columns.get(field.name)
        if found is None:
            found = pa.nulls(batch.num_rows, field.type)
        arrays.append(found if found.type == field.type else found.cast(field.type))
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.nulls(batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_of(scan: TableScan) -> pa.Schema:
    """Return the columns of a scan as Arrow's."""
    return arrow_schema(scan.fields)
