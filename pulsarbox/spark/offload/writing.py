"""Writing of one ledger to one file, under a temporary name until it has been read back and checked."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.decode.message_columns import Messages
from pulsarbox.spark.decode.record_batches import RecordBatches
from pulsarbox.spark.decode.row_columns import CORRUPT, ENCRYPTION, PAYLOAD, VALUE
from pulsarbox.spark.durable_files import make_folder, sync
from pulsarbox.spark.offload.columns import typed
from pulsarbox.spark.offload.content import ColumnChecksums
from pulsarbox.spark.offload.layout import TEMPORARY, file_of
from pulsarbox.spark.offload.ledgers import ReadableLedger
from pulsarbox.spark.offload.manifest import OffloadedLedger, OffloadError
from pulsarbox.spark.offload.object_path import ObjectPath
from pulsarbox.spark.offload.progress import LedgerProgress, OffloadProgress, Unreported
from pulsarbox.spark.source.offsets import text
from pulsarbox.spark.topic_segments import Lost, Reach, ReadPosition

ROW_GROUP_BYTES: Final = 32 << 20
"""Size in Arrow's memory format; smaller on disk."""
PIECE_BYTES: Final = 4 << 20
READ_BYTES: Final = 8 << 20
_WITHOUT_STATISTICS: Final = frozenset({VALUE, PAYLOAD, CORRUPT, ENCRYPTION, "__messageId", "__messageProperties"})
"""Columns without statistics: no query filters them by range, and their bounds would be as large as the values."""
_SORTED: Final = ("__ledgerId", "__entryId", "__batchIndex")
Step = Callable[[str], None]


class OffloadStopped(Exception):
    """Stopped in the middle of a ledger, which leaves nothing behind."""


@dataclass(frozen=True)
class OffloadJob:
    """One ledger to offload. Picklable."""

    stretch: ReadableLedger
    folder: Path | ObjectPath
    """The directory of the topic."""
    columns: str
    """The columns of the file, as Spark's JSON."""
    schema: str
    """The ID of these columns."""
    registry: Registry
    reach: Reach
    accept_loss: bool = False
    """True to skip and record damaged ranges."""
    scratch: Path | None = None
    """Local directory for files until they are uploaded; None if ``folder`` is a directory."""

    @property
    def local(self) -> Path:
        """The path at which the file is created, under a temporary name."""
        name = file_of(self.stretch.segment.topic, self.stretch.segment.ledger)
        return (self.folder if isinstance(self.folder, Path) else self._scratch()) / name

    def _scratch(self) -> Path:
        assert self.scratch is not None
        return self.scratch


class OffloadFile:
    """File being written, one row group at a time; not created without rows."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self.schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._size = 0
        self.content = ColumnChecksums()
        self.summary = Summary()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._held.append(batch)
        self._size += batch.nbytes
        if self._size >= ROW_GROUP_BYTES:
            self._flush()

    def add_rows(self, tables: Iterable[pa.Table]) -> None:
        """Add rows of large tables, in pieces."""
        for table in tables:
            piece = max(1, table.num_rows * PIECE_BYTES // max(table.nbytes, 1))
            for batch in table.to_batches(max_chunksize=piece):
                self.add(batch)

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._held, self.schema).combine_chunks()
        self._held, self._size = [], 0
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self.schema, **_how(self.schema))
        self.content.feed(table)
        self.summary.add_rows(table)
        self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> bool:
        """Write the remaining rows; return whether there is a file."""
        if self._held:
            self._flush()
        if self._writer is None:
            return False
        self._writer.close()
        with self._path.open("rb") as file:
            os.fsync(file.fileno())
        return True

    def abandon(self) -> None:
        """Close and delete the file."""
        with suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        self._path.unlink(missing_ok=True)


def _how(schema: pa.Schema) -> dict[str, Any]:
    """Return the options of the Parquet writer."""
    plain = [
        field.name for field in schema if field.name not in _WITHOUT_STATISTICS and not pa.types.is_nested(field.type)
    ]
    return {
        "compression": "zstd",
        "version": "2.6",
        "write_statistics": plain,
        "write_page_index": True,
        "use_dictionary": plain,
        "sorting_columns": pq.SortingColumn.from_ordering(
            schema, [(name, "ascending") for name in _SORTED], null_placement="at_start"
        ),
    }


class Summary:
    """First and last row, and time ranges, of a file."""

    def __init__(self) -> None:
        self.first = ""
        self.last = ""
        self.publish_time: tuple[int, int] | None = None
        self.event_time: tuple[int, int] | None = None
        self.payload_bytes = 0

    def add_rows(self, table: pa.Table) -> None:
        """Add the rows that follow."""
        self.first = self.first or _place(table, 0)
        self.last = _place(table, table.num_rows - 1)
        self.publish_time = _wider(self.publish_time, table.column("__publishTime"))
        self.event_time = _wider(self.event_time, table.column("__eventTime"))
        payload = table.column(PAYLOAD if PAYLOAD in table.column_names else VALUE)
        self.payload_bytes += pc.sum(pc.binary_length(payload)).as_py() or 0


def _place(table: pa.Table, row: int) -> str:
    found = [table.column(name)[row].as_py() for name in _SORTED]
    return text(ReadPosition(found[0], found[1], found[2] or 0))


def _wider(known: tuple[int, int] | None, column: pa.ChunkedArray) -> tuple[int, int] | None:
    bounds = pc.min_max(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None:
        return known
    low, high = low // 1000, high // 1000
    return (low, high) if known is None else (min(low, known[0]), max(high, known[1]))


def temporary(path: Path) -> Path:
    """Return the temporary name of an incomplete file, which Spark ignores."""
    return path.with_name(f".{path.name}{TEMPORARY}")


class Read(NamedTuple):
    """Ledger whose rows have been read, and written except for the last row group."""

    job: OffloadJob
    output: OffloadFile
    lost: list[Lost]
    unfinished: list[ReadPosition]


def read(
    job: OffloadJob,
    step: Step = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    progress: OffloadProgress | None = None,
) -> Read:
    """Read the rows of one ledger. ``finish`` completes its file, possibly while another ledger is read.

    Raises DataLost for missing or damaged entries unless accepted, Stopped, OSError and the broker's errors. Leaves
    nothing behind then.
    """
    segment = job.stretch.segment
    path = job.local
    make_folder(path.parent)
    tables = tables_for(job.columns, job.registry)
    output = OffloadFile(temporary(path), with_more(tables.arrow, job.columns))
    lost: list[Lost] = []
    unfinished: list[ReadPosition] = []
    tell = lost.append if job.accept_loss else None
    read_so_far = LedgerProgress(progress or Unreported(), segment)
    try:
        for some in messages(segment, wanted(tables), job.reach, lost=tell, unfinished=unfinished):
            if stopped():
                raise OffloadStopped
            batch = batch_of(some, tables, output.schema)
            output.add(batch)
            read_so_far.add(batch.num_rows)
        read_so_far.end()
        step("read")
    except Exception:
        output.abandon()
        raise
    finally:
        tables.close()
    return Read(job, output, lost, unfinished)


def finish(found: Read, step: Step = lambda _: None) -> OffloadedLedger:
    """Complete the file of a ledger: read back, renamed and durable.

    Raises OSError, and OffloadError if the file differs from what was written. Leaves nothing behind then.
    """
    job, output = found.job, found.output
    segment = job.stretch.segment
    checked = Checked(0, "", 0)
    try:
        if output.close():
            step("written")
            checked = check(temporary(job.local), output.content.checksums())
        step("checked")
        name = _published(job, checked, step) if output.content.rows else ""
    except Exception:
        output.abandon()
        raise
    return OffloadedLedger(
        topic=segment.topic,
        ledger=segment.ledger,
        entries=job.stretch.entries,
        rows=output.content.rows,
        messages=segment.messages,
        payload_bytes=output.summary.payload_bytes,
        file=name,
        file_bytes=checked.bytes,
        file_checksum=checked.checksum,
        content=output.content.checksums(),
        schema=job.schema,
        first=output.summary.first,
        last=output.summary.last,
        publish_time=output.summary.publish_time,
        event_time=output.summary.event_time,
        before=job.stretch.before,
        after=job.stretch.after,
        closed=job.stretch.closed,
        unfinished=tuple(text(place) for place in sorted(found.unfinished)),
        lost=tuple(str(each) for each in found.lost),
        at=round(time.time() * 1000),
    )


def _published(job: OffloadJob, checked: "Checked", step: Step) -> str:
    """Put a checked file in place, durable on return, and return its name."""
    segment = job.stretch.segment
    return put_in_place(job.folder, job.local, partial(file_of, segment.topic, segment.ledger), checked, step)


def put_in_place(
    folder: Path | ObjectPath, path: Path, name_of: Callable[[str], str], checked: "Checked", step: Step
) -> str:
    """Rename or upload the checked file with the temporary name of ``path``; return its name in a topic's folder.

    ``name_of``: returns the name, with a word that distinguishes attempts to upload it. The file is durable on return.
    Raises OSError, OffloadError.
    """
    if isinstance(folder, Path):
        temporary(path).rename(path)
        step("renamed")
        for each in (path.parent, folder):
            sync(each)
        return name_of("")
    name = name_of(os.urandom(6).hex())
    stored = folder / name
    stored.upload(temporary(path))
    step("uploaded")
    if checksum_of(stored) != checked.checksum:
        raise OffloadError(f"{stored} differs from the file that was uploaded; the next run repeats the upload")
    temporary(path).unlink()
    return name


def tables_for(columns: str, registry: Registry) -> RecordBatches:
    """Return the builder of rows, without the columns that only files have."""
    schema = to_arrow_schema(typed(StructType.fromJson(json.loads(columns))), timezone="UTC")
    return RecordBatches(schema, registry, "auto", "permissive")


def wanted(tables: RecordBatches) -> frozenset[str]:
    """Return the needed lists of ``Messages``."""
    return tables.wanted | {"payload", "encryption"}


def with_more(schema: pa.Schema, columns: str) -> pa.Schema:
    """Add the columns that only files have."""
    names = [field["name"] for field in json.loads(columns)["fields"]]
    own = [pa.field(name, pa.binary()) for name in names if name in (PAYLOAD, ENCRYPTION)]
    return pa.schema([*schema, *own])


def batch_of(some: Messages, tables: RecordBatches, schema: pa.Schema) -> pa.RecordBatch:
    """Return messages as rows of a file."""
    own = {PAYLOAD: some.payload, ENCRYPTION: some.encryption}
    arrays = [pa.array(own[field.name], field.type) for field in schema if field.name in own]
    return pa.RecordBatch.from_arrays([*tables.batch(some).columns, *arrays], schema=schema)


def tables_of(path: Path) -> Iterator[pa.Table]:
    """Yield the rows of a file by row group. Raises OSError, pa.ArrowException for an invalid file."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group)


class Checked(NamedTuple):
    """Properties of a file that was read back."""

    bytes: int
    checksum: str
    rows: int


def check(path: Path, content: dict[str, str]) -> Checked:
    """Read a file back. Raises OffloadError if its content differs or is not in the order of the log."""
    found = ColumnChecksums()
    before = (-1, -1, -1)
    try:
        for table in tables_of(path):
            found.feed(table)
            before = check_order(table, before, path)
    except pa.ArrowException as error:
        raise OffloadError(f"{path} cannot be read: {error}") from None
    wrong = found.unlike(content)
    if wrong:
        raise OffloadError(f"{path} differs from the rows that were written: column {', '.join(wrong)}")
    return Checked(path.stat().st_size, checksum_of(path), found.rows)


def checksum_of(path: Path | ObjectPath) -> str:
    """Return the checksum of a file's bytes. Raises OSError."""
    whole = blake2b(digest_size=16)
    for piece in _pieces(path) if isinstance(path, Path) else path.pieces():
        whole.update(piece)
    return whole.hexdigest()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            yield piece


def check_order(table: pa.Table, before: tuple[int, int, int], path: Path) -> tuple[int, int, int]:
    """Return the place of the last row. ``before``: that of the row before these.

    Raises OffloadError unless the rows are of one ledger, in the order of the log.
    """
    ledgers, entries, indexes = (table.column(name).combine_chunks() for name in _SORTED)
    places = pc.add(pc.multiply(entries, 1 << 20), pc.add(pc.fill_null(indexes.cast(pa.int64()), -1), 1))
    in_order = pc.all(pc.less(places[:-1], places[1:])).as_py() is not False
    first = (ledgers[0].as_py(), entries[0].as_py(), indexes[0].as_py() or 0)
    last = (ledgers[-1].as_py(), entries[-1].as_py(), indexes[-1].as_py() or 0)
    if not in_order or len(pc.unique(ledgers)) != 1 or (before != (-1, -1, -1) and first <= before):
        raise OffloadError(f"{path}: rows are not in log order")
    return last
