"""Small files merged into one: wherever it is killed, each row is in one file of the manifest."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsarbox.spark.offload.layout import files_in
from pulsarbox.spark.offload.manifest import OffloadedLedger, OffloadError, OffloadManifest, Writing
from pulsarbox.spark.offload.merge_plan import LEAST
from pulsarbox.spark.offload.merging import SmallFiles, check_ledgers
from pulsarbox.spark.offload.writing import OffloadFile, check, put_in_place, temporary
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition
from tests.unit.spark.offload.test_writing import SCHEMA, rows

TOPIC = "persistent://public/default/t"
LIMIT = 1 << 20
ROWS = 5


class Killed(BaseException):
    """Simulated kill: no cleanup runs."""


def offloaded(folder: Path, numbers: range) -> None:
    """Offload ledgers of five rows each, with the numbers as IDs."""
    with Writing(folder) as writing:
        if TOPIC not in writing.manifest.histories:
            writing.begin(TOPIC, Mark(ReadPosition(1, 0), 0), "box")
            writing.schema("s", {"type": "struct", "fields": []})
        for number in numbers:
            writing.ledger(_ledger(folder, number))


def _ledger(folder: Path, number: int) -> OffloadedLedger:
    path = folder / f"partition=none/ledger={number}.parquet"
    path.parent.mkdir(exist_ok=True)
    output = OffloadFile(temporary(path), SCHEMA)
    batch = rows(100 * number, ROWS)
    ids = SCHEMA.get_field_index("__ledgerId")
    output.add(batch.set_column(ids, SCHEMA.field(ids), pa.array([number] * ROWS, pa.int64())))
    output.close()
    content = output.content.checksums()
    checked = check(temporary(path), content)
    return OffloadedLedger(
        topic=TOPIC, ledger=number, entries=ROWS, rows=ROWS, messages=ROWS, payload_bytes=9,
        file=put_in_place(folder, path, lambda _: str(path.relative_to(folder)), checked, lambda _: None),
        file_bytes=checked.bytes, file_checksum=checked.checksum, content=content, schema="s", first="", last="",
        publish_time=None, event_time=None, before=0, after=ROWS * number, closed=5, unfinished=(), lost=(), at=6,
    )  # fmt: skip


def merged(folder: Path, steps: int = 0) -> list[str]:
    """Merge, killed after so many steps (0: never); return the reports. Replaced files may go at once."""
    left = itertools.count(1)

    def step(_: str) -> None:
        if next(left) == steps:
            raise Killed

    with Writing(folder) as writing:
        writing.clean(1 << 60)
        return list(SmallFiles(writing, TOPIC, folder / "scratch", step).merge(LIMIT))


def found(folder: Path) -> list[tuple[int, int]]:
    """Return ledger and entry of all rows, by the manifest."""
    files = OffloadManifest(folder).histories[TOPIC].files
    tables = [pq.read_table(folder / each.file, columns=["__ledgerId", "__entryId"]) for each in files]
    return [(row["__ledgerId"], row["__entryId"]) for table in tables for row in table.to_pylist()]


def expected(ledgers: int) -> list[tuple[int, int]]:
    return [(ledger, 100 * ledger + row) for ledger in range(1, ledgers + 1) for row in range(ROWS)]


def test_killed_at_any_step_each_row_is_in_one_file(tmp_path: Path) -> None:
    ledgers = 0
    for steps in itertools.count(1):
        offloaded(tmp_path, range(ledgers + 1, ledgers + LEAST + 1))
        ledgers += LEAST
        try:
            merged(tmp_path, steps)
        except Killed:
            assert found(tmp_path) == expected(ledgers)
        else:
            break
    assert steps == 5, "written, checked, renamed, in the manifest"
    assert found(tmp_path) == expected(ledgers)
    before = OffloadManifest(tmp_path)
    assert merged(tmp_path) == []
    names = [each.file for each in before.histories[TOPIC].files]
    assert sorted(files_in(tmp_path)) == sorted(names), "replaced files and those of killed merges are gone"
    assert len(names) < LEAST and len(before.histories[TOPIC].ledgers) == ledgers


def test_replaced_files_remain_for_readers_of_the_manifest_before(tmp_path: Path) -> None:
    offloaded(tmp_path, range(1, LEAST + 1))
    before = OffloadManifest(tmp_path)
    (report,) = merged(tmp_path)
    assert report.startswith(f"merged {LEAST} files into one with {LEAST * ROWS} rows")
    at = set(OffloadManifest(tmp_path).replaced.values())
    assert len(at) == 1
    with Writing(tmp_path) as writing:
        writing.clean(min(at) - 1)
        assert all((tmp_path / each.file).exists() for each in before.histories[TOPIC].files)
        writing.clean(min(at))
    assert files_in(tmp_path) == ["partition=none/ledger=1-8.parquet"]
    assert found(tmp_path) == expected(LEAST)


def test_nothing_is_deleted_while_a_file_of_the_manifest_is_missing(tmp_path: Path) -> None:
    offloaded(tmp_path, range(1, LEAST + 1))
    merged(tmp_path)
    (tmp_path / "partition=none/ledger=1-8.parquet").unlink()
    with Writing(tmp_path) as writing:
        writing.clean(1 << 60)
    assert len(files_in(tmp_path)) == LEAST


def test_a_damaged_or_missing_file_is_not_merged(tmp_path: Path) -> None:
    offloaded(tmp_path, range(1, LEAST + 1))
    (tmp_path / "partition=none/ledger=3.parquet").unlink()
    with pytest.raises(OffloadError, match=r"ledger=3.parquet is missing. Restore"):
        merged(tmp_path)
    offloaded(tmp_path / "more", range(3, 4))
    other = tmp_path / "more/partition=none/ledger=3.parquet"
    table = pq.read_table(other)
    pq.write_table(table.slice(1), tmp_path / "partition=none/ledger=3.parquet")
    with pytest.raises(OffloadError, match=r"ledger 3 differs from the rows that were offloaded: column "):
        merged(tmp_path)
    assert not list(tmp_path.rglob("*.tmp")) and len(files_in(tmp_path)) == LEAST


def test_a_merged_file_has_its_ledgers_and_no_others_in_order(tmp_path: Path) -> None:
    offloaded(tmp_path, range(1, LEAST + 1))
    merged(tmp_path)
    (file,) = OffloadManifest(tmp_path).histories[TOPIC].files
    path = tmp_path / file.file
    assert check_ledgers(path, file.ledgers).rows == LEAST * ROWS
    with pytest.raises(OffloadError, match="has other ledgers"):
        check_ledgers(path, file.ledgers[1:])
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table.slice(ROWS), table.slice(0, ROWS - 2), table.slice(ROWS - 2, 2)]), path)
    with pytest.raises(OffloadError, match="has other ledgers"):
        check_ledgers(path, file.ledgers)
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    with pytest.raises(OffloadError, match="not in log order"):
        check_ledgers(path, file.ledgers)
