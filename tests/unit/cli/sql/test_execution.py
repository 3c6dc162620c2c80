"""Execution of queries in their thread."""

import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.sql.execution import running
from pulsarbox.cli.sql.query_dataset import ReadProgress
from pulsarbox.errors import TopicNotFound

ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"


@pytest.fixture
def database() -> Iterator[Any]:
    with duckdb.connect() as made:
        yield made


def test_rows_stream(database: Any) -> None:
    with running(database, "SELECT range a FROM range(1000000000000)", ReadProgress()) as run:
        assert run.schema().names == ["a"]
        assert next(run.batches()).num_rows > 0
    assert not [each for each in threading.enumerate() if each.name == "query"]


def test_the_end_of_the_block_interrupts_a_query(database: Any) -> None:
    with running(database, ENDLESS, ReadProgress()):
        pass
    assert database.execute("SELECT 1").fetchall() == [(1,)]


def test_an_error_at_run_time_is_a_failure(database: Any) -> None:
    query = "SELECT CAST(range AS UTINYINT) FROM range(1000)"
    with running(database, query, ReadProgress()) as run, pytest.raises(Failed, match="out of range"):
        run.schema()


def test_the_error_of_a_read_precedes_that_of_duckdb(database: Any) -> None:
    progress = ReadProgress(error=TopicNotFound("gone"))
    with (
        running(database, "SELECT CAST('x' AS INT) FROM nothing", progress) as run,
        pytest.raises(TopicNotFound, match="gone"),
    ):
        run.schema()
