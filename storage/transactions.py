"""Transactional entries in a topic's ledgers: those of open transactions, and those that were aborted.

An entry of a transaction is stored in its ledger like any other. While the transaction is open, its entries are tracked
here as runs, which determine how far the ledger can be read (``ManagedLedger.read_limit``). A commit discards the runs:
the entries are ordinary from then on. An abort turns them into rows, one per run, deleted with their ledger; every
cursor before them counts them as acknowledged. Only open transactions take memory.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from pulsarbox.storage.catalog import Catalog, Row, aborted_key, open_key
from pulsarbox.storage.ledger import NO_LIMIT
from pulsarbox.storage.record import AckedRange, Entry, Position

new_range: Final = tuple.__new__


class TxnId(NamedTuple):
    """A transaction id: the coordinator's number and the transaction's number, the two halves of Pulsar's id."""

    most: int
    least: int

    def __str__(self) -> str:
        """Format as Pulsar does."""
        return f"({self.most},{self.least})"


class OpenEntries:
    """The entries of the open transactions of one topic."""

    __slots__ = ("_changed", "_ended", "_limited", "_runs", "_topic_id")

    def __init__(self, topic_id: int, limited: Callable[[tuple[int, int]], None]) -> None:
        """``limited`` is called whenever the first of them changes, with its position; NO_LIMIT if there is none."""
        self._topic_id = topic_id
        self._limited = limited
        self._runs: dict[TxnId, list[AckedRange]] = {}
        self._changed: set[TxnId] = set()
        """Transactions whose rows are out of date."""
        self._ended: set[TxnId] = set()
        """Transactions whose end is not durable yet: they have no rows."""

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __contains__(self, txn: TxnId) -> bool:
        return txn in self._runs

    def __iter__(self) -> Iterator[TxnId]:
        return iter(list(self._runs))

    def runs(self, txn: TxnId) -> tuple[AckedRange, ...]:
        """Return the entries of a transaction, as runs in ledger order."""
        return tuple(self._runs.get(txn, ()))

    def record(self, txn: TxnId, entry: Entry) -> None:
        """Add an appended entry."""
        (ledger_id, entry_id, _, messages, total_messages, total_bytes, *_, body) = entry
        runs = self._runs.get(txn)
        if runs:
            ledger, first, last, messages_before, _, bytes_before, _ = runs[-1]
            if ledger == ledger_id and last == entry_id - 1:  # nearly always
                run = ledger, first, entry_id, messages_before, total_messages, bytes_before, total_bytes
                runs[-1] = new_range(AckedRange, run)
                self._changed.add(txn)
                return
        self.extend(txn, (ledger_id, entry_id), (messages, total_messages), (len(body), total_bytes))

    def extend(self, txn: TxnId, at: tuple[int, int], messages: tuple[int, int], size: tuple[int, int]) -> None:
        """Add an entry by its position; messages and bytes are pairs of its count and the topic's total."""
        runs = self._runs.get(txn)
        self._changed.add(txn)
        if runs is None:
            runs = self._runs[txn] = []
            if len(self._runs) == 1:
                self._limited(at)
        elif runs and (last := runs[-1]).ledger_id == at[0] and last.last == at[1] - 1:
            runs[-1] = AckedRange(
                at[0], last.first, at[1], last.messages_before, messages[1], last.bytes_before, size[1]
            )
            return
        before = messages[1] - messages[0], messages[1], size[1] - size[0], size[1]
        runs.append(AckedRange(at[0], at[1], at[1], *before))

    @property
    def ending_now(self) -> bool:
        """Whether the end of a transaction is being committed."""
        return bool(self._ended)

    @property
    def readable(self) -> tuple[Position, int, int] | None:
        """The last readable position, with the topic's totals of messages and bytes there; None if none is open."""
        first = min((runs[0] for runs in self._runs.values()), default=None)
        if first is None:
            return None
        return Position(first.ledger_id, first.first - 1), first.messages_before, first.bytes_before

    def roll_back(self, last: Position, totals: tuple[int, int]) -> None:
        """Discard the entries after ``last``, at which the topic has these totals."""
        for txn, runs in list(self._runs.items()):
            if (runs[-1].ledger_id, runs[-1].last) <= last:
                continue
            self._changed.add(txn)
            left = [run for run in runs if (run.ledger_id, run.first) <= last]
            if left and (left[-1].ledger_id, left[-1].last) > last:
                left[-1] = left[-1]._replace(last=last.entry_id, messages_after=totals[0], bytes_after=totals[1])
            if left:
                self._runs[txn] = left
            else:
                del self._runs[txn]
        self._find_limit()

    def ending(self, txn: TxnId) -> None:
        """End the transaction with the open batch: it has no row from then on."""
        if txn in self._runs:
            self._ended.add(txn)
            self._changed.discard(txn)

    def end(self, txn: TxnId) -> tuple[AckedRange, ...]:
        """Complete the end of a transaction, which is durable; return its runs."""
        self._ended.discard(txn)
        self._changed.discard(txn)
        runs = self._runs.pop(txn, [])
        if runs:
            self._find_limit()
        return tuple(runs)

    def holds(self, ledger_id: int) -> bool:
        """Return whether a ledger has entries of an open transaction."""
        return any(run.ledger_id == ledger_id for runs in self._runs.values() for run in runs)

    def _find_limit(self) -> None:
        self._limited(min(((runs[0].ledger_id, runs[0].first) for runs in self._runs.values()), default=NO_LIMIT))

    # Checkpoint

    def dirty_rows(self) -> dict[str, Row | None]:
        """Return the rows that changed since the last call."""
        rows: dict[str, Row | None] = {}
        for txn in self._changed - self._ended:
            runs = self._runs.get(txn)
            rows[open_key(self._topic_id, *txn)] = None if runs is None else {"runs": runs}
        self._changed.clear()
        return rows

    def restore(self, txn: TxnId, row: Row) -> None:
        """Restore a row."""
        self._runs[txn] = [AckedRange(*run) for run in row["runs"]]
        self._find_limit()


def aborted_rows(topic_id: int, runs: tuple[AckedRange, ...]) -> dict[str, Row]:
    """Return the rows of aborted entries, by key."""
    return {aborted_key(topic_id, run.ledger_id, run.first): {"run": run[2:]} for run in runs}


def aborted_of(catalog: Catalog, topic_id: int, ledger_id: int | None = None) -> Iterator[AckedRange]:
    """Return the aborted entries of a topic, or of one of its ledgers, in order, as runs."""
    return map(run_of, catalog.items(aborted_key(topic_id, ledger_id)))


def aborted_within(catalog: Catalog, topic_id: int, ledger_id: int, first: int, end: int) -> Iterator[AckedRange]:
    """Yield the aborted runs of a ledger that overlap the entries from ``first`` to before ``end``.

    Only their rows and the one before are read.
    """
    prefix, at = aborted_key(topic_id, ledger_id), aborted_key(topic_id, ledger_id, first)
    before = catalog.last(prefix, at)
    if before is not None and (run := run_of(before)).last >= first:
        yield run
    yield from map(run_of, catalog.items(prefix, at, aborted_key(topic_id, ledger_id, end)))


def last_aborted(catalog: Catalog, topic_id: int, ledger_id: int, through: int) -> AckedRange | None:
    """Return the last aborted run of a ledger that begins at or before an entry."""
    row = catalog.last(aborted_key(topic_id, ledger_id), aborted_key(topic_id, ledger_id, through))
    return None if row is None else run_of(row)


def run_of(row: tuple[str, bytes]) -> AckedRange:
    """Decode a row of aborted entries."""
    key, value = row
    *_, ledger, first = key.split("/")
    return AckedRange(int(ledger, 16), int(first, 16), *json.loads(value)["run"])


def visible_runs(
    ledger_id: int, first: int, end: int, limit: tuple[int, int], aborted: Iterable[AckedRange]
) -> Iterator[tuple[int, int]]:
    """Yield the visible entries of a ledger from ``first`` to before ``end``, as first and end of each run.

    Visible entries are before ``limit``, the first entry of an open transaction of the topic (``NO_LIMIT`` if none is
    open), and not in ``aborted``: runs of the ledger, in order.
    """
    if ledger_id >= limit[0]:
        end = min(end, limit[1] if ledger_id == limit[0] else 0)
    for run in aborted:
        if run.first >= end:
            break
        if first < run.first:
            yield first, run.first
        first = max(first, run.last + 1)
    if first < end:
        yield first, end
