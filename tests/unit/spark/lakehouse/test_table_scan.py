"""Rows of topics in an Iceberg table, with and without fields, after deletes and added columns."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.spark.lakehouse.table_place import TableError
from pulsarbox.spark.lakehouse.table_scan import TableScan, arrow_of, scan_of
from tests.unit.spark.lakehouse.tables import made, options_in, stored

A, B = "persistent://public/default/a", "persistent://public/default/b"
RAW = pa.schema([pa.field("__topic", pa.string()), pa.field("value", pa.binary())])
TYPED = pa.schema(
    [pa.field("__topic", pa.string()), pa.field("id", pa.int32()), pa.field("__payload", pa.binary())]
)  # fmt: skip


def filled(folder: Path) -> None:
    with made(options_in(folder), RAW) as (_, table):
        table.append(pa.table([[A, A, B], [b"1", b"2", b"3"]], schema=RAW))
        with table.update_schema() as update:
            update.union_by_name(TYPED)
        table.refresh()
        typed: dict[str, list[Any]] = {"__topic": [A, A, B], "id": [5, 6, 7], "__payload": [b"5", b"6", b"7"]}
        rows = pa.table(typed).cast(TYPED)
        table.append(rows)
        table.delete("id = 6")


def scanned(folder: Path, *topics: str, at: int | None = None) -> TableScan:
    with made(options_in(folder), RAW) as (_, table):
        snapshots = table.snapshots()
        return scan_of(table, snapshots[-1 if at is None else at].snapshot_id, topics)


def rows(scan: TableScan, *names: str) -> list[dict[str, Any]]:
    schema = pa.schema([arrow_of(scan).field(name) for name in names])
    found = [row for batch in scan.batches(schema) for row in batch.to_pylist()]
    return sorted(found, key=str)


def test_rows_with_and_without_fields_have_one_form(tmp_path: Path) -> None:
    filled(tmp_path)
    scan = pickle.loads(pickle.dumps(scanned(tmp_path, A)))  # noqa: S301 - our own
    assert rows(scan, "id", "value", "__payload", "_corrupt_record") == [
        {"id": 5, "value": None, "__payload": b"5", "_corrupt_record": None},
        {"id": None, "value": None, "__payload": b"1", "_corrupt_record": b"1"},
        {"id": None, "value": None, "__payload": b"2", "_corrupt_record": b"2"},
    ]
    assert [row["__payload"] for row in rows(scan, "__payload")] == [b"1", b"2", b"5"], "6 was deleted"
    assert sum(batch.num_rows for batch in scan.batches(pa.schema([]))) == 3
    both = scanned(tmp_path, A, B)
    parts = both.split(2)
    assert len(parts) == 2 and sum(len(part.tasks) for part in parts) == len(both.tasks)
    assert sorted(row["__payload"] for part in parts for row in rows(part, "__payload")) == [
        b"1",
        b"2",
        b"3",
        b"5",
        b"7",
    ]


def test_an_earlier_snapshot_has_its_rows_with_the_current_columns(tmp_path: Path) -> None:
    filled(tmp_path)
    first = scanned(tmp_path, A, B, at=0)
    assert [(row["id"], row["__payload"]) for row in rows(first, "id", "__payload")] == [
        (None, b"1"),
        (None, b"2"),
        (None, b"3"),
    ]


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    filled(tmp_path)
    scan = scanned(tmp_path, A)
    for path in stored(tmp_path):
        path.unlink()
    with pytest.raises(TableError, match=r"table shop\.orders cannot be read: FileNotFoundError"):
        rows(scan, "id")
    assert repr(scan) == "TableScan(shop.orders)"
