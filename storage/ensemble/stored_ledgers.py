"""The ledgers that the rows of a checkpoint list. Pure."""

import json
from collections.abc import Callable, Iterable

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


def is_dropped(rows: Iterable[tuple[bytes, bytes]]) -> Callable[[int], bool]:
    """Return a function that decides whether a ledger was deleted by the checkpoint that these rows are from.

    Ids grow, so a ledger without a row was deleted unless its id was given out later.
    """
    known, next_id = set(), 0
    for key, value in rows:
        known.add(key)
        if key == IDS.encode():
            next_id = int(json.loads(value)["next"])
    listed = stored_ledgers(known)
    return lambda ledger_id: ledger_id < next_id and ledger_id not in listed
