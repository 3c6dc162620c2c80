"""Names of tables."""

import pytest

from pulsarbox.spark.lakehouse.table_place import TableError, TablePlace, parse


def test_a_directory_and_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    monkeypatch.setenv("HOME", "/home/ann")
    assert parse("lake/shop.orders") == TablePlace("/tmp/lake", "shop.orders")
    assert parse("/data/my lake/a.b.c") == TablePlace("/data/my lake", "a.b.c")
    assert parse("~/lake/a.b").warehouse == "/home/ann/lake"
    assert parse("shop.orders") == TablePlace("", "shop.orders")
    assert str(parse("/l/shop.orders")) == "/l/shop.orders" and parse("/l/a.b.c").namespace == "a.b"
    assert str(parse("shop.orders")) == "shop.orders"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orders", "expected [DIR/]NAMESPACE.TABLE"),
        ("lake/", "expected [DIR/]NAMESPACE.TABLE"),
        ("lake/a..b", "expected [DIR/]NAMESPACE.TABLE"),
        ("lake/a.b c", "expected [DIR/]NAMESPACE.TABLE"),
        ("lake/.a", "expected [DIR/]NAMESPACE.TABLE"),
        ("s3://bucket/lake/a.b", "set catalog.uri and catalog.warehouse"),
        ("a#b/c.d", "must not contain"),
        ("a%20b/c.d", "must not contain"),
    ],
)
def test_what_is_no_table(text: str, said: str) -> None:
    with pytest.raises(TableError) as caught:
        parse(text)
    assert said in str(caught.value)
