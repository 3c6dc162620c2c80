"""Datasets that DuckDB scans: which columns a scan reads, and what it reports."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pulsarbox.cli.sql.query_dataset import QueryDataset, ReadProgress, with_filtered

SCHEMA = pa.schema([("id", pa.int64()), ("__key", pa.binary()), ("a.b c", pa.string()), ("unused", pa.int64())])


class Rows(QueryDataset):
    """Dataset of two batches, and an error if ``fails``."""

    def __init__(self, progress: ReadProgress, *, fails: bool = False) -> None:
        super().__init__(SCHEMA, progress)
        self.fails = fails

    def batches(self, schema: pa.Schema, condition: ds.Expression | None) -> Iterator[pa.RecordBatch]:
        columns = {"id": [1, 2], "__key": [b"a", b"b"], "a.b c": ["x", "y"], "unused": [0, 0]}
        for _ in range(2):
            yield pa.RecordBatch.from_pydict({name: columns[name] for name in schema.names}, schema=schema)
        if self.fails:
            raise OSError("gone")


def test_a_scan_has_the_requested_columns_of_the_passing_rows() -> None:
    progress = ReadProgress()
    found = Rows(progress).scanner(["__key"], ds.field("id") > 1).to_table()
    assert found.to_pydict() == {"__key": [b"b", b"b"]}
    assert progress == ReadProgress(rows=4)


def test_the_first_error_of_a_scan_is_noted() -> None:
    progress = ReadProgress()
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            Rows(progress, fails=True).scanner().to_table()
    first = progress.error
    assert isinstance(first, OSError)
    with pytest.raises(KeyError):
        Rows(progress).scanner(["missing"])
    assert progress.error is first


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ds.field("id") > 3, ["id", "__key"]),
        (ds.field("a.b c") == "x", ["__key", "a.b c"]),
        ((ds.field("__key") == b"x") & ds.field("id").is_valid(), ["id", "__key"]),
    ],
)
def test_columns_of_the_filter_are_read_too(condition: ds.Expression, expected: list[str]) -> None:
    assert with_filtered(["__key"], condition, SCHEMA) == expected
