"""The ledgers that the rows of a checkpoint list. Pure."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pulsarbox.storage.catalog import COMPACTING, IDS, PACKAGE_DATA

LEDGER_ROWS: Final = (b"ledger/", b"compacted/", PACKAGE_DATA.encode(), COMPACTING.encode())
"""Prefixes of the rows of ledgers; their keys end with the id of the ledger, in hex."""


def ledger_of(key: bytes) -> int:
    """Return the ledger of a row whose key starts with one of ``LEDGER_ROWS``. Raises ValueError."""
    return int(key.rpartition(b"/")[2], 16)


def stored_ledgers(keys: Iterable[bytes]) -> set[int]:
    """Return the ids of the ledgers that have a row."""
    return {ledger_of(key) for key in keys if key.startswith(LEDGER_ROWS)}


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
