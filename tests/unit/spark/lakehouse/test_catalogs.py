"""Catalogs of tables: creation, partitioning, columns that do not fit, and catalogs that cannot be opened."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.spark.lakehouse.catalogs import opened, table_for
from pulsarbox.spark.lakehouse.data_files import WriterEpoch, for_tasks, write
from pulsarbox.spark.lakehouse.epoch_commit import commit
from pulsarbox.spark.lakehouse.sink_options import parse_options
from pulsarbox.spark.lakehouse.table_place import TableError
from tests.unit.spark.lakehouse.tables import COLUMNS, NAME, add, batch, counted, made, options_in, stored

WIDER = pa.schema([pa.field("n", pa.int64()), pa.field("m", pa.int32())])


def test_a_table_is_created_with_nullable_columns_and_partitions(tmp_path: Path) -> None:
    columns = pa.schema([field.with_nullable(False) for field in COLUMNS])
    options = options_in(tmp_path, partitionBy="bucket(4, n), truncate(1, day)")
    with made(options, columns) as (catalog, table):
        assert [field.required for field in table.schema().fields] == [False, False]
        assert str(table.spec()).count("bucket[4]") == 1 and str(table.spec()).count("truncate[1]") == 1
        files = write(for_tasks(table, 1 << 20), WriterEpoch("q", 0), [batch(*range(9))])
        assert commit(catalog, NAME, WriterEpoch("q", 0), files)
        assert len(files) > 3 and counted(catalog.load_table(NAME)) == Counter(range(9))


def test_files_have_a_limited_size(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    with made(options) as (_, table):
        given = for_tasks(table, 64)
        write(given, WriterEpoch("q", 0), [batch(), batch(*range(100)), batch(1), batch(2)])
        assert len(stored(tmp_path)) == 2 and "metadata" not in repr(given)


def test_columns_that_do_not_fit_are_refused_unless_they_may_be_added(tmp_path: Path) -> None:
    add(options_in(tmp_path), "q", 0, 1)
    with (
        pytest.raises(TableError, match=r"lacks the columns m of the frame: .* mergeSchema=true"),
        made(options_in(tmp_path), WIDER),
    ):
        pass
    text: Any = pa.schema([pa.field("n", pa.string())])
    with (
        pytest.raises(TableError, match=r"1: n: optional long \(of the table\), 1: n: optional string"),
        made(options_in(tmp_path), text),
    ):
        pass
    with made(options_in(tmp_path, mergeSchema="true"), WIDER) as (catalog, table):
        of = WriterEpoch("q", 1)
        rows = pa.record_batch([pa.array([7], pa.int64()), pa.array([8], pa.int32())], schema=WIDER)
        assert commit(catalog, NAME, of, write(for_tasks(table, 1 << 20), of, [rows]))
        found = catalog.load_table(NAME).scan().to_arrow().sort_by("n").to_pylist()
    assert found == [{"n": 1, "day": "d1", "m": None}, {"n": 7, "day": None, "m": 8}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"table": "shop.orders"}, "shop.orders has no catalog: name a directory, as in lake/shop.orders"),
        ({"table": "shop.orders", "catalog": "unheard-of"}, "the catalog of table shop.orders cannot be opened"),
        ({"table": "/dev/null/lake/shop.orders"}, "/dev/null/lake cannot be created"),
        ({"partitionBy": "week(day)"}, r"partitionBy 'week(day)': expected a column, or year, month"),
        ({"partitionBy": "bucket(n)"}, r"partitionBy 'bucket(n)': expected a column"),
        ({"partitionBy": "day, truncate(1, day)"}, "partitionBy names column day twice"),
        ({"partitionBy": "nothing"}, "cannot be created with the frame's columns: Could not find field"),
    ],
)
def test_what_cannot_be_created_is_said(tmp_path: Path, given: dict[str, str], said: str) -> None:
    options = parse_options({"table": str(tmp_path / NAME), **given})
    with pytest.raises(TableError) as caught, opened(options) as catalog:
        table_for(catalog, options, COLUMNS)
    assert said in str(caught.value)
