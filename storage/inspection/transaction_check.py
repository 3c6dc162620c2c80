"""Integrity check of the rows of transactions, and of the entries that they cover. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from pulsarbox.storage.inspection.findings import Finding, damage, warning
from pulsarbox.storage.inspection.holdings import Holdings
from pulsarbox.storage.inspection.transactions import ABORTED, OPEN, TransactionRun
from pulsarbox.storage.lmdb.directory import RESTORE_BACKUP
from pulsarbox.storage.transactions import TxnId

RESTORE: Final = f"{RESTORE_BACKUP}, or save what can be read with `pulsarbox storage dump DIR --body`"


class Flagged(NamedTuple):
    """Consecutive entries of one transaction in a volume."""

    ledger_id: int
    first: int
    last: int
    txn: TxnId
    covered: bool
    """Whether the checkpoint covers them: recovery does not replay them."""


def findings(holdings: Holdings, flagged: Iterable[Flagged], ends: Mapping[int, int]) -> Iterator[Finding]:
    """Yield the problems found. ``ends``: the number of entries of each ledger, except those still to be replayed."""
    yield from _of_rows(holdings, ends)
    yield from _overlaps(holdings)
    yield from _of_entries(holdings, flagged)


def _of_rows(holdings: Holdings, ends: Mapping[int, int]) -> Iterator[Finding]:
    known = holdings.transactions
    for ledger_id, run in known.runs():
        what = "open" if run.txn is not None else "aborted"
        where = f"ledger {ledger_id}, {what} entries {run.first} to {run.last}"
        ledger = holdings.ledgers.get(ledger_id)
        if ledger is None:
            if run.txn is None:
                yield warning(where, "the ledger no longer exists, but their row does", "nothing; it is never used")
            else:
                yield damage(
                    where, f"the ledger no longer exists, but transaction {_name(run.txn)} is open", RESTORE, ledger_id
                )
        elif ledger.topic_id != run.topic_id or run.last < run.first:
            yield damage(where, "their row names another topic, or no entry", RESTORE, ledger_id, run.first)
        elif run.last >= ends.get(ledger_id, run.last + 1):
            yield damage(where, f"the ledger has {ends[ledger_id]} entries", RESTORE, ledger_id, run.first)
    for _, txn in known.open:
        if known.states.get(txn) != OPEN:
            what = "entries wait for it, but it has ended or was never begun: readers wait there forever"
            yield damage(f"transaction {_name(txn)}", what, RESTORE)
    for txn, rows in known.pending.items():
        if rows > 0 and known.states.get(txn) != OPEN:
            what = f"it has {rows} pending acknowledgements, but is not open"
            yield warning(f"transaction {_name(txn)}", what, "nothing; they are never used")


def _overlaps(holdings: Holdings) -> Iterator[Finding]:
    by_ledger: dict[int, list[TransactionRun]] = {}
    for ledger_id, run in holdings.transactions.runs():
        by_ledger.setdefault(ledger_id, []).append(run)
    for ledger_id, runs in by_ledger.items():
        runs.sort(key=lambda run: run[:2])
        for before, run in pairwise(runs):
            if run.first <= before.last:
                where = f"ledger {ledger_id}, entries {run.first} to {min(run.last, before.last)}"
                what = "two rows of transactions cover them: backlogs count them twice"
                yield damage(where, what, RESTORE, ledger_id, run.first)


def _of_entries(holdings: Holdings, flagged: Iterable[Flagged]) -> Iterator[Finding]:
    """Check that entries of open or aborted transactions are in one of their runs, or they would be delivered."""
    known = holdings.transactions
    opened: dict[tuple[TxnId, int], list[TransactionRun]] = {}
    for ledger_id, run in known.runs():
        if run.txn is not None:
            opened.setdefault((run.txn, ledger_id), []).append(run)
    for ledger_id, first, last, txn, covered in flagged:
        state = known.states.get(txn)
        if ledger_id not in holdings.ledgers or state not in (OPEN, ABORTED) or (state == OPEN and not covered):
            continue
        for entry_id in range(first, last + 1):
            if state == OPEN:
                held = any(run.first <= entry_id <= run.last for run in opened.get((txn, ledger_id), ()))
            else:
                held = known.state_of(txn, ledger_id, entry_id) == ABORTED
            if not held:
                where = f"ledger {ledger_id}, entry {entry_id}"
                what = f"it belongs to transaction {_name(txn)}, which is {state}, but has no row: it is delivered"
                yield damage(where, what, RESTORE, ledger_id, entry_id)
                break


def _name(txn: TxnId) -> str:
    """Format as commands accept it."""
    return f"{txn.most}:{txn.least}"
