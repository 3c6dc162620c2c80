"""The file of a ledger: row groups, metadata, and verification."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsarbox.spark.offload import writing
from pulsarbox.spark.offload.manifest import OffloadError
from pulsarbox.spark.offload.writing import OffloadFile, check

START = 1_700_000_000_000
TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("value", pa.binary()), ("__publishTime", TIME), ("__eventTime", TIME), ("__ledgerId", pa.int64()),
        ("__entryId", pa.int64()), ("__batchIndex", pa.int32()),
    ]
)  # fmt: skip


def rows(first: int, count: int) -> pa.RecordBatch:
    """Messages of 100 bytes, one per millisecond."""
    numbers = range(first, first + count)
    columns = [
        pa.array([b"%100d" % number for number in numbers]),
        pa.array([1000 * (START + number) for number in numbers], pa.int64()).cast(TIME),
        pa.nulls(count, TIME),
        pa.array([7] * count, pa.int64()),
        pa.array(numbers, pa.int64()),
        pa.nulls(count, pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def written(path: Path, *batches: pa.RecordBatch) -> OffloadFile:
    output = OffloadFile(path, SCHEMA)
    for batch in batches:
        output.add(batch)
    assert output.close()
    return output


def test_row_groups_are_as_large_as_they_are_to_be_and_known_by_their_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 2500)
    output = written(tmp_path / "f.parquet", *(rows(10 * at, 10) for at in range(9)))
    found = pq.read_metadata(tmp_path / "f.parquet")
    groups = [found.row_group(at) for at in range(found.num_row_groups)]
    assert [group.num_rows for group in groups] == [20, 20, 20, 20, 10]
    entries = SCHEMA.get_field_index("__entryId")
    assert [group.column(entries).statistics.max for group in groups] == [19, 39, 59, 79, 89]
    assert check(tmp_path / "f.parquet", output.content.checksums()).rows == 90
    known = output.summary
    assert (known.first, known.last, known.payload_bytes) == ("7:0", "7:89", 9000)
    assert (known.publish_time, known.event_time) == ((START, START + 89), None)


def test_what_is_not_in_order_or_not_what_was_written_is_refused(tmp_path: Path) -> None:
    output = written(tmp_path / "f.parquet", rows(10, 10), rows(0, 10))
    with pytest.raises(OffloadError, match="not in log order"):
        check(tmp_path / "f.parquet", output.content.checksums())
    whole = written(tmp_path / "g.parquet", rows(0, 10))
    other = whole.content.checksums() | {"value": "0"}
    with pytest.raises(OffloadError, match=r"differs from the rows that were written: column value"):
        check(tmp_path / "g.parquet", other)
