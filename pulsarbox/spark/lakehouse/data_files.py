"""Data files of an Iceberg table, written by the tasks of an epoch into a directory of that epoch.

A task writes files of a limited size and returns their descriptions. Nothing refers to them until the driver commits
the epoch, so a killed task leaves files that the commit of its epoch deletes.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


class WriterEpoch(NamedTuple):
    """Epoch of a writer."""

    writer: str
    """ID of a streaming query, or name of a batch write."""
    epoch: int


@dataclass(frozen=True)
class TaskTable:
    """Table as tasks need it. Picklable."""

    metadata: str
    """The table's metadata, as JSON."""
    io: dict[str, str]
    """Properties of file access; may contain credentials, so never printed."""
    file_bytes: int

    def __repr__(self) -> str:
        return "TaskTable()"


def for_tasks(table: "Table", file_bytes: int) -> TaskTable:
    """Return what tasks need of a table."""
    return TaskTable(table.metadata.model_dump_json(), dict(table.io.properties), file_bytes)


def directory_of(metadata: "TableMetadata", of: WriterEpoch) -> str:
    """Return the location of an epoch's files. A name that is not safe in a path is hashed."""
    name = of.writer
    if not (name.isascii() and name.replace("-", "").isalnum()):
        name = blake2b(name.encode(), digest_size=16).hexdigest()
    base = metadata.properties.get("write.data.path", f"{metadata.location.rstrip('/')}/data").rstrip("/")
    return f"{base}/{name}/{of.epoch}"


def write(table: TaskTable, of: WriterEpoch, batches: Iterable[pa.RecordBatch]) -> "list[DataFile]":
    """Write rows to files and return their descriptions, for the commit. Raises OSError, ValueError."""
    from pyiceberg.io import load_file_io
    from pyiceberg.table.metadata import TableMetadataUtil

    metadata = TableMetadataUtil.parse_raw(table.metadata)
    place = directory_of(metadata, of)
    metadata = metadata.model_copy(update={"properties": {**metadata.properties, "write.data.path": place}})
    io = load_file_io(table.io, metadata.location)
    found: list[DataFile] = []
    for rows in _packed(batches, table.file_bytes):
        found += _written(metadata, io, rows)
    return found


def _packed(batches: Iterable[pa.RecordBatch], limit: int) -> Iterable[pa.Table]:
    """Combine batches into tables of about ``limit`` bytes, without empty ones."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        size += batch.nbytes
        if size >= limit:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _written(metadata: "TableMetadata", io: "FileIO", rows: pa.Table) -> "Iterable[DataFile]":
    from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow

    for field in schema_to_pyarrow(metadata.schema(), include_field_ids=False):
        if field.name not in rows.column_names:  # the table may be partitioned by it
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return list(_dataframe_to_data_files(metadata, rows, io))


def delete(table: "Table", paths: Sequence[str]) -> None:
    """Delete files that nothing refers to. A failure leaves an unused file and is ignored."""
    for path in paths:
        with contextlib.suppress(Exception):
            table.io.delete(path)


def delete_others(table: "Table", of: WriterEpoch, kept: Sequence[str]) -> None:
    """Delete the files of an epoch that its commit does not contain: those of killed or repeated tasks."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    io: Any = table.io
    if not isinstance(io, PyArrowFileIO):
        return
    names = {each.rpartition("/")[2] for each in kept}
    with contextlib.suppress(Exception):
        from pyarrow.fs import FileSelector

        scheme, host, path = io.parse_location(directory_of(table.metadata, of), io.properties)
        system = io.fs_by_scheme(scheme, host)
        for each in system.get_file_info(FileSelector(path, allow_not_found=True, recursive=True)):
            if each.is_file and each.base_name not in names:
                system.delete_file(each.path)
