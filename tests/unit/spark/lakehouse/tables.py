"""A local table for tests: rows with a number, and their counting with pyarrow instead of pyiceberg's scan."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from pulsarbox.spark.lakehouse.catalogs import opened, table_for
from pulsarbox.spark.lakehouse.data_files import WriterEpoch, for_tasks, write
from pulsarbox.spark.lakehouse.epoch_commit import commit
from pulsarbox.spark.lakehouse.sink_options import TableOptions, parse_options

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

COLUMNS = pa.schema([pa.field("n", pa.int64()), pa.field("day", pa.string())])
NAME = "shop.orders"


def options_in(folder: Path, **more: str) -> TableOptions:
    return parse_options({"table": str(folder / "lake" / NAME), **more})


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([f"d{n % 3}" for n in numbers])], schema=COLUMNS)


@contextlib.contextmanager
def made(options: TableOptions, columns: pa.Schema = COLUMNS) -> "Iterator[tuple[Catalog, Table]]":
    """Open the catalog, with the table created if missing."""
    with opened(options) as catalog:
        yield catalog, table_for(catalog, options, columns)


def add(options: TableOptions, writer: str, epoch: int, *numbers: int) -> bool:
    """Write and commit an epoch, as two tasks and the driver do."""
    of = WriterEpoch(writer, epoch)
    with made(options) as (catalog, table):
        given = for_tasks(table, options.file_bytes)
        files = [file for part in (numbers[::2], numbers[1::2]) for file in write(given, of, [batch(*part)])]
        return commit(catalog, NAME, of, files)


def counted(table: "Table") -> Counter[int]:
    """Return the numbers in the files of the current snapshot, read with pyarrow."""
    found: Counter[int] = Counter()
    for path in table.inspect.files()["file_path"].to_pylist():
        found.update(pq.read_table(urlsplit(path).path, columns=["n"], partitioning=None)["n"].to_pylist())
    return found


def stored(folder: Path) -> list[Path]:
    """Return all data files, committed or not."""
    return sorted((folder / "lake").rglob("*.parquet"))
