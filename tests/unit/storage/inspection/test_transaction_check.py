"""Transaction rows, and detection of inconsistent ones."""

import json
from typing import Any

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.catalog import aborted_key, epoch_key, ledger_key, open_key, pending_key, topic_key, txn_key
from pulsarbox.storage.inspection.holdings import Holdings
from pulsarbox.storage.inspection.transaction_check import Flagged, findings
from pulsarbox.storage.transactions import TxnId

TOPIC = "persistent://public/default/t"
OPEN, COMMITTED, ABORTED = TxnId(0, 21), TxnId(0, 22), TxnId(0, 23)
ROWS: dict[str, Any] = {
    topic_key(TOPIC): {"id": 1},
    ledger_key(1, 5): {"entries": 20, "closed": 1},
    ledger_key(1, 6): {"entries": 5, "closed": 0},
    txn_key(*OPEN): {"state": "OPEN"},
    txn_key(*COMMITTED): {"state": "COMMITTED"},
    txn_key(*ABORTED): {"state": "ABORTED"},
    open_key(1, *OPEN): {"runs": [[5, 10, 12, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0]]},
    aborted_key(1, 5, 2): {"run": [3, 0, 0, 0, 0]},
    aborted_key(1, 5, 7): {"run": [7, 0, 0, 0, 0]},
    pending_key(*OPEN, 1, 8, 1): {"acks": []},
    epoch_key("public/default/sink"): {"epoch": 3, "committed": 1, "owner": None},
}
FLAGGED = [
    Flagged(5, 0, 1, COMMITTED, True),
    Flagged(5, 2, 3, ABORTED, True),
    Flagged(5, 10, 12, OPEN, True),
    Flagged(6, 0, 0, OPEN, True),
    Flagged(6, 7, 7, OPEN, False),
    Flagged(9, 0, 4, ABORTED, True),
    Flagged(5, 15, 15, TxnId(0, 1), True),
]
"""Entries in volumes: the log after the checkpoint has the last one of the open transaction; ledger 9 is deleted;
transaction 0:1 is forgotten."""


def holdings(changes: dict[str, Any]) -> Holdings:
    """The entries referenced by the rows; a row changed to None is omitted."""
    found = Holdings()
    for key, row in (ROWS | changes).items():
        if row is not None:
            found.apply(key.encode(), json.dumps(row).encode())
    return found


def said(changes: dict[str, Any]) -> list[str]:
    known = holdings(changes)
    ends = {number: ledger.entries for number, ledger in known.ledgers.items() if ledger.closed}
    return [f"{each.severity}: {each.where}: {each.what}" for each in findings(known, FLAGGED, ends)]


def test_nothing_is_wrong_where_rows_and_entries_agree() -> None:
    assert said({}) == []
    known = holdings({}).transactions
    assert (known.open_transactions(), known.aborted_entries(), known.epochs) == (1, 3, {"public/default/sink": 3})
    states = [known.state_of(each.txn, each.ledger_id, each.first) for each in FLAGGED]
    assert states == ["committed", "aborted", "open", "open", "open", "committed", "committed"]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({aborted_key(1, 5, 3): {"run": [4, 0, 0, 0, 0]}}, "damage: ledger 5, entries 3 to 3: two rows"),
        ({aborted_key(1, 5, 12): {"run": [13, 0, 0, 0, 0]}}, "damage: ledger 5, entries 12 to 12: two rows"),
        ({aborted_key(1, 7, 0): {"run": [1, 0, 0, 0, 0]}}, "warning: ledger 7, aborted entries 0 to 1: the ledger"),
        ({aborted_key(2, 5, 0): {"run": [1, 0, 0, 0, 0]}}, "damage: ledger 5, aborted entries 0 to 1: their row names"),
        ({aborted_key(1, 5, 19): {"run": [20, 0, 0, 0, 0]}}, "damage: ledger 5, aborted entries 19 to 20: the led"),
        ({open_key(1, 0, 24): {"runs": [[7, 0, 1, 0, 0, 0, 0]]}}, "damage: ledger 7, open entries 0 to 1: the ledger"),
        ({txn_key(*OPEN): None}, "damage: transaction 0:21: entries wait for it"),
        ({txn_key(*OPEN): None}, "warning: transaction 0:21: it has 1 pending acknowledgements"),
        ({open_key(1, *OPEN): None}, "damage: ledger 5, entry 10: it belongs to transaction 0:21, which is open"),
        ({open_key(1, *OPEN): {"runs": [[5, 10, 11, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0]]}}, "damage: ledger 5"),
        ({aborted_key(1, 5, 2): None}, "damage: ledger 5, entry 2: it belongs to transaction 0:23, which is aborted"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(changes: dict[str, Any], wrong: str) -> None:
    assert any(each.startswith(wrong) for each in said(changes)), said(changes)


def test_what_the_log_deletes_takes_its_rows_along() -> None:
    known = holdings({})
    known.apply(txn_key(*OPEN).encode(), json.dumps({"state": "COMMITTED"}).encode(), replayed=True)
    known.apply(open_key(1, *OPEN).encode(), None, replayed=True)
    known.apply(ledger_key(1, 5).encode(), None, replayed=True)
    assert list(findings(known, FLAGGED, {})) == []
    assert known.transactions.aborted_entries() == 0
    known = holdings({})
    known.apply(topic_key(TOPIC).encode(), None, replayed=True)
    assert (known.transactions.open, known.transactions.aborted) == ({}, {})


@pytest.mark.parametrize(
    ("key", "row"),
    [
        (txn_key(*OPEN), {"state": "LOST"}),
        (open_key(1, *OPEN), {"runs": [[1]]}),
        (aborted_key(1, 5, 2), {"run": []}),
        (epoch_key("public/default/sink"), {"last": 3}),
    ],
)
def test_a_row_that_cannot_be_understood_is_damaged(key: str, row: dict[str, Any]) -> None:
    with pytest.raises(PersistenceError, match="is damaged"):
        Holdings().apply(key.encode(), json.dumps(row).encode())
