"""Entries of open transactions, as runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.record import AckedRange, Entry
from pulsarbox.storage.transactions import OpenEntries, TxnId

steps = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.binary(max_size=5)), max_size=30)


@given(steps)
def test_runs_are_what_stands_side_by_side_in_one_ledger(history: list[tuple[int, int, bytes]]) -> None:
    """Codes of ``history``: 0 and 1 publish in a transaction, 2 publishes outside of it, and 3 starts the next
    ledger."""
    found = OpenEntries(1, lambda _: None)
    txns = TxnId(0, 1), TxnId(0, 2)
    expected: dict[TxnId, list[AckedRange]] = {each: [] for each in txns}
    ledger_id, entry_id, messages, size, owner = 5, 0, 0, 0, -1
    for what, count, body in history:
        if what == 3:
            ledger_id, entry_id, owner = ledger_id + 1, 0, -1
            continue
        entry = Entry(
            ledger_id, entry_id, 0, count, messages + count, size + len(body), 0, 0, 0, 0, 0, body
        )  # fmt: skip
        if what < 2:
            txn = txns[what]
            found.record(txn, entry)
            run = AckedRange(ledger_id, entry_id, entry_id, messages, messages + count, size, size + len(body))
            if owner == what:
                before = expected[txn].pop()
                run = run._replace(first=before.first, messages_before=before[3], bytes_before=before[5])
            expected[txn].append(run)
        owner, entry_id, messages, size = what, entry_id + 1, messages + count, size + len(body)
    assert {each: list(found.runs(each)) for each in txns} == expected
    assert all(type(run) is AckedRange for each in txns for run in found.runs(each))
    rows = found.dirty_rows()
    assert len(rows) == sum(bool(runs) for runs in expected.values())
