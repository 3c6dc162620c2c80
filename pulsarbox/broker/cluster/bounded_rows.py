"""Catalog rows of one kind, limited in number and size."""

import json
from itertools import islice
from typing import Final

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.errors import PreconditionFailed
from pulsarbox.storage.catalog import Catalog, Row

ROWS_MAX: Final = 1000
"""Maximum number of rows of a kind."""
ROW_BYTES_MAX: Final = 64 << 10
"""Maximum bytes of a row as JSON."""
NAME_MAX: Final = 512
"""Maximum characters of a name in a key."""


class BoundedRows:
    """The rows whose keys start with a prefix. HTTP answers wait until changes are durable."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, prefix: str, noun: str, *, counted: bool = True) -> None:
        """``noun``: a row of this kind, in the plural, for errors.

        ``counted``: whether the number of rows is limited; False if each belongs to an object of its own.
        """
        self._catalog = catalog
        self._commits = commits
        self._prefix = prefix
        self._noun = noun
        self._counted = counted

    def names(self, within: str = "") -> list[str]:
        """Return the sorted names that start with ``within``, without it."""
        start = self._prefix + within
        return [key.removeprefix(start) for key in self._catalog.keys(start)]

    def get(self, name: str) -> Row | None:
        """Return a row, or None if there is none."""
        return self._catalog.get(self._prefix + name)

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._catalog

    def put(self, name: str, row: Row) -> None:
        """Write a row. Raises PreconditionFailed if the name or row is too large, or for one row too many."""
        if len(name) > NAME_MAX:
            raise PreconditionFailed(f"The name {name[:40]!r}... is too long: at most {NAME_MAX} characters")
        size = len(json.dumps(row))
        if size > ROW_BYTES_MAX:
            raise PreconditionFailed(f"The value is too large: {self._noun} with {size} bytes, at most {ROW_BYTES_MAX}")
        if self._counted and name not in self and self._is_full():
            raise PreconditionFailed(f"Too many {self._noun}: at most {ROWS_MAX} are stored; delete some")
        self._commits.put_row(self._prefix + name, row)

    def _is_full(self) -> bool:
        return sum(1 for _ in islice(self._catalog.keys(self._prefix), ROWS_MAX)) == ROWS_MAX

    def delete(self, name: str) -> bool:
        """Delete a row. Return whether it existed."""
        existed = name in self
        if existed:
            self._commits.put_row(self._prefix + name, None)
        return existed

    def delete_within(self, within: str) -> None:
        """Delete all rows whose names start with ``within``."""
        for name in self.names(within):
            self.delete(within + name)
