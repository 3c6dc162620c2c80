"""Options of a query."""

import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.sql import query_session
from pulsarbox.cli.sql.query_session import _HiddenLibraries, _Limited, _zone, check_installed

BATCHES = [pa.record_batch({"a": list(range(at, at + 10))}) for at in (0, 10, 20)]


def test_a_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed()
    find = importlib.util.find_spec

    def without_duckdb(name: str) -> Any:
        return None if name == "duckdb" else find(name)

    monkeypatch.setattr(importlib.util, "find_spec", without_duckdb)
    with pytest.raises(Failed, match=r"duckdb not installed. Install with: pip install 'pulsarbox\[sql\]'"):
        check_installed()


def test_optional_libraries_are_hidden() -> None:
    finder = _HiddenLibraries()
    finder.find_spec("pyarrow")
    with pytest.raises(ModuleNotFoundError, match="pandas"):
        finder.find_spec("pandas")


@pytest.mark.parametrize(
    ("most", "rows", "is_cut"), [(None, 30, False), (0, 30, False), (30, 30, False), (29, 29, True), (10, 10, True)]
)
def test_rows_are_limited(most: int | None, rows: int, is_cut: bool) -> None:
    limited = _Limited(most)
    assert sum(batch.num_rows for batch in limited.of(iter(BATCHES))) == rows
    assert limited.is_cut == is_cut


def test_the_zone_is_the_named_one_or_the_local_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert _zone("") == "Asia/Tokyo" and _zone("Europe/Berlin") == "Europe/Berlin"
    monkeypatch.setenv("TZ", "Nowhere/Land")
    assert _zone("") == "UTC"
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(query_session, "_LOCAL_TIME", tmp_path / "zoneinfo" / "America" / "Lima")
    assert _zone("") == "America/Lima"
    with pytest.raises(Misused, match=r"--timezone \.\./etc: unknown time zone"):
        _zone("../etc")
