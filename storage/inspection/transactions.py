"""Transactions according to the rows of a box: the open ones with their entries, and aborted entries. Pure."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pulsarbox.storage.transactions import TxnId

KINDS: Final = frozenset({"txn", "open", "aborted", "pending", "epoch"})
OPEN: Final = "open"
ABORTED: Final = "aborted"
COMMITTED: Final = "committed"


class TransactionRun(NamedTuple):
    """Consecutive entries of one transaction in a ledger."""

    first: int
    last: int
    topic_id: int
    txn: TxnId | None
    """None for aborted entries: their row does not contain the id."""


class Transactions:
    """Decoded transaction rows. Apply the checkpoint's rows first, then those of the log after it."""

    def __init__(self) -> None:
        self.states: dict[TxnId, str] = {}
        """States of the transactions that have rows: the open ones, and the most recently ended."""
        self.open: dict[tuple[int, TxnId], list[tuple[int, TransactionRun]]] = {}
        """By topic and transaction, each run with its ledger."""
        self.aborted: dict[int, dict[int, TransactionRun]] = {}
        """By ledger and first entry."""
        self.pending: dict[TxnId, int] = {}
        """Number of acknowledgement rows."""
        self.epochs: dict[str, int] = {}
        self._sorted: dict[int, list[TransactionRun]] = {}

    def apply(self, kind: str, rest: str, row: Any) -> None:
        """Apply a row. Raises KeyError, ValueError, TypeError if it cannot be decoded."""
        if kind == "epoch":
            if row is None:
                self.epochs.pop(rest, None)
            else:
                self.epochs[rest] = int(row["epoch"])
            return
        numbers = [int(part, 16) for part in rest.split("/")]
        if kind == "txn":
            self._apply_txn(TxnId(*numbers), row)
        elif kind == "pending":
            txn = TxnId(*numbers[:2])
            self.pending[txn] = self.pending.get(txn, 0) + (1 if row is not None else -1)
        elif kind == "open":
            self._apply_open(numbers[0], TxnId(*numbers[1:]), row)
        else:
            topic_id, ledger_id, first = numbers
            self._apply_aborted(topic_id, ledger_id, first, row)

    def _apply_txn(self, txn: TxnId, row: Any) -> None:
        if row is None:
            self.states.pop(txn, None)
        else:
            self.states[txn] = {"OPEN": OPEN, "COMMITTED": COMMITTED, "ABORTED": ABORTED}[row["state"]]
        if row is None or self.states[txn] != OPEN:
            self.pending.pop(txn, None)  # implied, without a log record

    def _apply_open(self, topic_id: int, txn: TxnId, row: Any) -> None:
        self.open.pop((topic_id, txn), None)
        if row is not None:
            runs = [(int(run[0]), TransactionRun(int(run[1]), int(run[2]), topic_id, txn)) for run in row["runs"]]
            self.open[topic_id, txn] = runs

    def _apply_aborted(self, topic_id: int, ledger_id: int, first: int, row: Any) -> None:
        runs = self.aborted.setdefault(ledger_id, {})
        runs.pop(first, None)
        self._sorted.pop(ledger_id, None)
        if row is not None:
            runs[first] = TransactionRun(first, int(row["run"][0]), topic_id, None)

    def ledger_gone(self, ledger_id: int) -> None:
        """Remove the aborted entries of a deleted ledger."""
        self.aborted.pop(ledger_id, None)

    def topic_gone(self, topic_id: int) -> None:
        """Remove the open and aborted entries of a deleted topic."""
        for key in [each for each in self.open if each[0] == topic_id]:
            del self.open[key]
        for ledger_id in [
            each for each, runs in self.aborted.items() if any(r.topic_id == topic_id for r in runs.values())
        ]:
            del self.aborted[ledger_id]

    def aborted_entries(self) -> int:
        """Return the number of aborted entries."""
        return sum(run.last - run.first + 1 for runs in self.aborted.values() for run in runs.values())

    def open_transactions(self) -> int:
        """Return the number of open transactions."""
        return sum(state == OPEN for state in self.states.values())

    def state_of(self, txn: TxnId, ledger_id: int, entry_id: int) -> str:
        """Return the state of a transaction's entry: open, aborted or committed."""
        if self.states.get(txn) == OPEN:
            return OPEN
        runs = self._sorted.get(ledger_id)
        if runs is None:
            runs = self._sorted[ledger_id] = sorted(self.aborted.get(ledger_id, {}).values(), key=lambda run: run.first)
        at = bisect_right(runs, entry_id, key=lambda run: run.first) - 1
        return ABORTED if at >= 0 and entry_id <= runs[at].last else COMMITTED

    def runs(self) -> Iterator[tuple[int, TransactionRun]]:
        """Yield all runs, each with its ledger."""
        for ledger_id, runs in self.aborted.items():
            yield from ((ledger_id, run) for run in runs.values())
        for of_one in self.open.values():
            yield from of_one
