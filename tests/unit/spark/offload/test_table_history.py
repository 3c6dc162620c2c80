"""Tables as the history of topics: their names, and what is missing."""

from pathlib import Path

import pytest

from pulsarbox.spark.lakehouse.table_place import TableError
from pulsarbox.spark.offload.table_history import OffloadedTable, offloaded, root_of, topics_of
from tests.unit.spark.lakehouse.tables import add, options_in


def test_a_root_is_a_directory_or_a_table(tmp_path: Path) -> None:
    assert root_of(tmp_path) == tmp_path and topics_of(tmp_path) == []
    table = root_of("iceberg:/lake/shop.orders@12345")
    assert isinstance(table, OffloadedTable) and table.snapshot == 12345 and root_of(table) is table
    assert str(table) == "iceberg:/lake/shop.orders@12345"
    assert str(root_of("iceberg:shop.orders", "prod")) == "iceberg:shop.orders"
    for name, catalog, said in (
        ("iceberg:lake/orders", "", "expected .DIR/.NAMESPACE.TABLE"),
        ("iceberg:/lake/shop.orders", "prod", "is in the catalog of its directory"),
        ("history", "prod", "history is not a table"),
    ):
        with pytest.raises(TableError, match=said):
            root_of(name, catalog)


def test_what_a_table_lacks_is_said(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "shop.orders"
    with pytest.raises(TableError, match=r"lake has no catalog\.db"):
        offloaded(root_of(f"iceberg:{place}"), ["persistent://public/default/t"])
    assert not place.parent.exists(), "reading creates nothing"
    add(options_in(tmp_path), "q", 0, 1)
    with pytest.raises(TableError, match="the table does not exist"):
        topics_of(root_of(f"iceberg:{place}s"))
    with pytest.raises(TableError, match="no such snapshot, or it has expired"):
        offloaded(root_of(f"iceberg:{place}@7"), ["persistent://public/default/t"])
    found = offloaded(root_of(f"iceberg:{place}"), ["persistent://public/default/t"])
    assert (found.files, found.marks, found.newest) == ({}, {}, "") and topics_of(root_of(f"iceberg:{place}")) == []
