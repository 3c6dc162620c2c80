"""The ledgers that the rows of a checkpoint list. Pure."""

import json
from collections.abc import Callable, Iterable, Iterator

from pulsarbox.storage.catalog import COMPACTING, IDS, PACKAGE_DATA
from pulsarbox.storage.engine import Rows

_PREFIXES = (b"ledger/", b"compacted/", COMPACTING.encode(), PACKAGE_DATA.encode())
"""Prefixes of rows whose keys end with the id of a ledger, in hex."""


def stored_ledgers(keys: Iterable[bytes]) -> set[int]:
    """Return the ids of the ledgers that have a row."""
    return {int(key.rsplit(b"/", 1)[-1], 16) for key in keys if key.startswith(_PREFIXES)}


def listed_ledgers(rows: Rows) -> set[int]:
    """Return the ids of the ledgers that have a row; reads only rows of ledgers."""
    return stored_ledgers(key for prefix in _PREFIXES for key, _ in rows.items(prefix))


class ListedLedgers:
    """The ledgers of a checkpoint, collected while its rows pass by."""

    def __init__(self) -> None:
        self._listed: set[int] = set()
        self._next_id = 0

    def noted(self, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows, and note their ledgers."""
        for row in rows:
            if row[0] == IDS.encode():
                self._next_id = int(json.loads(row[1])["next"])
            else:
                self._listed |= stored_ledgers(row[:1])
            yield row

    def is_dropped(self, ledger_id: int) -> bool:
        """Return whether a ledger was deleted by the checkpoint, once all rows have passed.

        Ids grow, so a ledger without a row was deleted unless its id was given out later.
        """
        return ledger_id < self._next_id and ledger_id not in self._listed


def is_dropped(rows: Iterable[tuple[bytes, bytes]]) -> Callable[[int], bool]:
    """Return a function that decides whether a ledger was deleted by the checkpoint that these rows are from."""
    ledgers = ListedLedgers()
    for _ in ledgers.noted(rows):
        pass
    return ledgers.is_dropped
