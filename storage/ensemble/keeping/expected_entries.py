"""The entries that exist according to the rows of a checkpoint, and how many copies of them are wanted. Pure."""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.stored_ledgers import LEDGER_ROWS, ledger_of

CopiesOf = Callable[[int], int]
"""Returns the number of copies wanted of the entries of a ledger, at least 1."""
Wanted = Callable[[Rows], CopiesOf]
"""Builds that function from the rows of a checkpoint, which have the policies of topics and namespaces."""


class ExpectedLedger(NamedTuple):
    """A ledger that is not deleted."""

    ledger_id: int
    entries: int | None
    """The number of its entries, from 0 on; None while it is being written and no row has the number."""


def expected_ledgers(rows: Rows) -> Iterator[ExpectedLedger]:
    """Yield the ledgers that have a row: those of topics, compacted views and packages.

    A compacted ledger that is being replaced has two rows, and may be yielded twice. Raises PersistenceError if a row
    cannot be decoded.
    """
    for prefix in LEDGER_ROWS:
        for key, value in rows.items(prefix):
            yield expected_ledger(key, value)


def expected_ledger(key: bytes, value: bytes) -> ExpectedLedger:
    """Decode the row of a ledger. Raises PersistenceError."""
    try:
        entries = json.loads(value).get("entries")
        return ExpectedLedger(ledger_of(key), None if entries is None else int(entries))
    except (ValueError, TypeError, AttributeError) as error:
        raise PersistenceError(f"row {key!r} is damaged: {error!r}") from error
