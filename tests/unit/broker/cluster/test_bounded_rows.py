"""Rows of one kind, limited in number and size."""

import pytest

from pulsarbox.broker.cluster import bounded_rows
from pulsarbox.broker.cluster.bounded_rows import BoundedRows
from pulsarbox.errors import PreconditionFailed
from tests.unit.broker.playbook import Box


@pytest.fixture
def rows() -> BoundedRows:
    broker = Box().broker
    return BoundedRows(broker.catalog, broker.commits, "test/", "things")


def test_rows_are_named_without_their_prefix(rows: BoundedRows) -> None:
    for name in ("b", "a/y", "a/x"):
        rows.put(name, {"name": name})
    assert rows.names() == ["a/x", "a/y", "b"]
    assert rows.names("a/") == ["x", "y"]
    assert rows.get("a/x") == {"name": "a/x"} and rows.get("x") is None
    assert "b" in rows and "c" not in rows
    rows.delete_within("a/")
    assert rows.names() == ["b"]
    assert rows.delete("b") and not rows.delete("b")


def test_rows_are_limited(rows: BoundedRows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_rows, "ROWS_MAX", 2)
    rows.put("a", {})
    rows.put("b", {})
    with pytest.raises(PreconditionFailed, match="Too many things: at most 2"):
        rows.put("c", {})
    rows.put("b", {"more": 1})
    rows.delete("a")
    rows.put("c", {})
    with pytest.raises(PreconditionFailed, match="too large: things with 65548 bytes, at most 65536"):
        rows.put("c", {"text": "x" * bounded_rows.ROW_BYTES_MAX})
    with pytest.raises(PreconditionFailed, match="too long: at most 512"):
        rows.put("x" * 513, {})
    assert rows.names() == ["b", "c"]
