"""Names of tables: ``[WAREHOUSE/]NAMESPACE.TABLE``. Pure.

A table with a warehouse, a local directory, is in the SQLite catalog ``catalog.db`` of that directory. One without
is in a catalog that options or the configuration of pyiceberg describe.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.errors import PulsarBoxError

CATALOG_FILE: Final = "catalog.db"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,127})+")
_UNSAFE: Final = re.compile(r"[#?%\x00-\x1f]")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class TableError(PulsarBoxError):
    """A table cannot be written; the message names it, the reason and the remedy."""


class TablePlace(NamedTuple):
    """Location of a table."""

    warehouse: str
    """Absolute path of a directory; empty if the catalog is described elsewhere."""
    name: str
    """``namespace.table``, with one or more levels of namespaces."""

    def __str__(self) -> str:
        return f"{self.warehouse}/{self.name}" if self.warehouse else self.name

    @property
    def namespace(self) -> str:
        """The namespace, without the table."""
        return self.name.rpartition(".")[0]


def parse(text: str) -> TablePlace:
    """Parse ``lake/shop.orders`` or ``shop.orders``. Raises TableError."""
    warehouse, slash, name = text.rpartition("/")
    if not _NAME.fullmatch(name):
        raise TableError(
            f"table {text!r}: expected [DIR/]NAMESPACE.TABLE with letters, digits, _ and -, such as lake/shop.orders"
        )
    if not slash:
        return TablePlace("", name)
    if _URL.match(text):
        raise TableError(
            f"table {text!r}: the warehouse of a path is a local directory, with its catalog in {CATALOG_FILE}. For "
            "object storage, name only the table, and set catalog.uri and catalog.warehouse, or catalog"
        )
    if _UNSAFE.search(warehouse):
        raise TableError(f"table {text!r}: the directory must not contain #, ?, % or control characters")
    return TablePlace(str(Path(warehouse or "/").expanduser().absolute()), name)
