"""Queries as DuckDB binds and runs them: read-only, and limited to the topics that they name."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from pulsarbox.cli.common.exits import Failed, Misused, NotThere
from pulsarbox.cli.sql.database import Resources, bound, checked, opened
from pulsarbox.cli.sql.execution import running
from pulsarbox.cli.sql.live_dataset import LiveDataset
from pulsarbox.cli.sql.query_dataset import ReadProgress
from pulsarbox.cli.sql.topic_columns import of_schema
from pulsarbox.cli.sql.topic_table import TopicTable
from pulsarbox.names import parse_topic
from pulsarbox.spark.connect.schema_registry import NEWEST
from pulsarbox.spark.offload import object_path
from pulsarbox.spark.offload.history import OffloadedHistory
from pulsarbox.spark.schema.arrow_types import arrow_schema
from pulsarbox.spark.topic_segments import TopicSegment

COLUMNS = of_schema(None)


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    return Resources("200MB", tmp_path / "spill", "Europe/Berlin")


def table(name: str, files: list[Path] | None = None) -> TopicTable:
    schemas = {"s": {"type": "struct", "fields": COLUMNS.fields}} if files else {}
    history = OffloadedHistory({"s": files} if files else {}, schemas, {}, {})
    return TopicTable(parse_topic(name), COLUMNS, history, [], {NEWEST: None}, {})


def file_of(path: Path, values: list[bytes]) -> Path:
    rows = [{"value": each, "__entryId": at} for at, each in enumerate(values)]
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema(COLUMNS.fields)), path)
    return path


def answer(query: str, tables: dict[str, TopicTable], resources: Resources) -> list[dict[str, Any]]:
    progress = ReadProgress()
    with opened(tables, None, resources, progress) as database, running(database, query, progress) as run:
        run.schema()
        return [row for batch in run.batches() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("COPY orders TO 'x.csv'", "COPY"),
        ("ATTACH 'x.db'", "ATTACH"),
        ("INSTALL httpfs", "LOAD"),
        ("SET memory_limit = '9GB'", "SET"),
        ("CREATE TABLE x AS SELECT 1", "CREATE"),
        ("DROP TABLE orders", "DROP"),
        ("INSERT INTO orders VALUES (1)", "INSERT"),
        ("PRAGMA database_list", "PRAGMA"),
        ("CALL pragma_version()", "CALL"),
        ("EXPORT DATABASE 'x'", "EXPORT"),
    ],
)
def test_statements_that_do_more_than_read_are_refused(query: str, kind: str) -> None:
    with pytest.raises(Misused, match=f"{kind} is refused"):
        checked(query)


def test_one_query_is_expected() -> None:
    assert checked("select 1;").startswith("select 1")
    for query in ("", "  -- nothing", "select 1; select 2"):
        with pytest.raises(Misused, match=r"no query|single query"):
            checked(query)


def test_the_tables_of_a_query_are_those_it_names(resources: Resources) -> None:
    query = """
        WITH x AS (SELECT __key FROM "t/n/a") SELECT *, (SELECT max(__entryId) FROM b)
        FROM x JOIN c USING (__key) WHERE EXISTS (FROM b)
    """
    assert sorted(bound(query, table, resources)) == ["b", "c", "t/n/a"]
    assert sorted(bound("DESCRIBE a", table, resources)) == ["a"]
    assert not bound("SELECT 1", table, resources)


def test_errors_name_the_place_in_the_query(resources: Resources) -> None:
    with pytest.raises(Misused) as raised:
        checked("select\n  1 frm a b")
    assert "(line 2, column " in raised.value.message and "  1 frm a b\n" in raised.value.message
    with pytest.raises(Misused, match="no column valu; did you mean value") as raised:
        bound("select valu from a", table, resources)
    assert "(line 1, column 8)" in raised.value.message


def test_an_unknown_topic_is_the_error_of_the_catalog(resources: Resources) -> None:
    def missing(name: str) -> TopicTable:
        raise NotThere(f"no topic {name}")

    with pytest.raises(NotThere, match="no topic a"):
        bound("select * from a", missing, resources)


def test_names_that_sql_cannot_tell_apart_are_refused(resources: Resources) -> None:
    with pytest.raises(Misused, match="quote the name"):
        bound("select * from t.n.a", table, resources)


def test_a_query_reads_files_and_nothing_else(resources: Resources, tmp_path: Path) -> None:
    tables = {"a": table("a", [file_of(tmp_path / "1.parquet", [b"x", b"y"]), file_of(tmp_path / "2.parquet", [b"z"])])}
    other = file_of(tmp_path / "other.parquet", [b"secret"])
    assert answer("SELECT value FROM a WHERE __entryId = 0 ORDER BY 1", tables, resources) == [
        {"value": b"x"}, {"value": b"z"},
    ]  # fmt: skip
    for query in (
        f"SELECT * FROM '{other}'",
        f"SELECT * FROM read_parquet('{other}')",
        f"SELECT * FROM read_parquet('{tmp_path}/*.parquet')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM query('COPY (SELECT 1) TO ''/tmp/x.csv''')",
        "EXPLAIN ANALYZE COPY a TO '/tmp/x.csv'",
        "SELECT * FROM tables",
        "SELECT getenv('HOME')",
    ):
        with pytest.raises(Failed):
            answer(query, tables, resources)


def test_files_in_a_bucket_are_read_by_arrow(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bucket").mkdir()
    file_of(tmp_path / "bucket" / "1.parquet", [b"x", b"y"])
    monkeypatch.setattr(object_path, "_system", lambda bucket: SubTreeFileSystem(str(tmp_path), LocalFileSystem()))
    stored: list[Any] = [object_path.ObjectPath("bucket", "1.parquet")]
    tables = {"a": table("a", stored)}
    assert answer("SELECT value FROM a WHERE __entryId = 1", tables, resources) == [{"value": b"y"}]
    assert answer("SELECT count(*) n FROM a", tables, resources) == [{"n": 2}]


def test_counting_rows_decodes_no_value(resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def scanner(_: LiveDataset, columns: list[str] | None = None, **more: Any) -> ds.Scanner:
        asked.append(columns)
        rows = pa.Table.from_pylist([], arrow_schema(COLUMNS.fields))
        return ds.dataset(rows).scanner(columns=columns)

    monkeypatch.setattr(LiveDataset, "scanner", scanner)
    both = table("a", [file_of(tmp_path / "1.parquet", [b"x", b"y"])])
    live = both._replace(segments=[TopicSegment("persistent://public/default/a", 1, 0, 1, 2, 2)])
    assert answer("SELECT count(*) n FROM a", {"a": live}, resources) == [{"n": 2}]
    assert answer("SELECT max(value) v FROM a", {"a": live}, resources) == [{"v": b"y"}]
    assert asked == [["__entryId"], ["value"]]
    assert answer("DESCRIBE a", {"a": live}, resources)[0]["column_name"] == "value"


def test_an_unlikely_path_is_refused(resources: Resources, tmp_path: Path) -> None:
    tables = {"a": table("a", [file_of(tmp_path / "1[2].parquet", [b"x"])])}
    with pytest.raises(Failed, match="move the directory"):
        answer("SELECT 1 FROM a", tables, resources)


def test_more_than_the_memory_goes_to_disk(tmp_path: Path) -> None:
    small = Resources("60MB", tmp_path / "spill", "UTC")
    query = "SELECT count(*) n FROM (SELECT range, md5(range::VARCHAR) m FROM range(1000000) ORDER BY m)"
    assert answer(query, {}, small) == [{"n": 1_000_000}]


def test_times_are_in_the_zone_of_the_query(resources: Resources) -> None:
    query = "SELECT TIMESTAMPTZ '2026-11-23 10:00:00+00' t, date_trunc('day', t)::VARCHAR d, TIMESTAMPTZ '2026-07-01' s"
    [found] = answer(query, {}, resources)
    assert found["t"].isoformat() == "2026-11-23T11:00:00+01:00" and found["d"] == "2026-11-23 00:00:00+01"
    assert found["s"].isoformat() == "2026-07-01T00:00:00+02:00"


def test_an_invalid_memory_limit_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="--memory lots: expected"):
        bound("SELECT 1", table, Resources("lots", tmp_path, "UTC"))
