"""What a topic's ledgers know of transactions: the entries of the open ones, and of those that were aborted.

An entry of a transaction stands in its ledger like any other. As long as the transaction is open it is remembered here
in runs, from which follows how far the ledger can be read (``ManagedLedger.read_limit``). With a commit the runs are
forgotten: what is left are ordinary entries. With an abort they become rows, one a run, which go with their ledger;
every cursor that has them before it takes them for acknowledged. So only what is open takes memory.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from pulsarbox.storage.catalog import Catalog, Row, aborted_key, open_key
from pulsarbox.storage.ledger import NO_LIMIT
from pulsarbox.storage.record import AckedRange, Entry, Position

new_range: Final = tuple.__new__


class TxnId(NamedTuple):
    """A transaction: the coordinator's number and the transaction's own, the two halves of Pulsar's id."""

    most: int
    least: int

    def __str__(self) -> str:
        """As Pulsar writes it."""
        return f"({self.most},{self.least})"


class OpenEntries:
    """The entries of the open transactions of one topic."""

    __slots__ = ("_changed", "_ended", "_limited", "_runs", "_topic_id")

    def __init__(self, topic_id: int, limited: Callable[[tuple[int, int]], None]) -> None:
        """``limited`` is told where the first of them stands, whenever that is another place; NO_LIMIT for nowhere."""
        self._topic_id = topic_id
        self._limited = limited
        self._runs: dict[TxnId, list[AckedRange]] = {}
        self._changed: set[TxnId] = set()
        """Those whose rows are not what they should be."""
        self._ended: set[TxnId] = set()
        """Those that have ended, of which that is not durable yet: they have no rows."""

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __contains__(self, txn: TxnId) -> bool:
        return txn in self._runs

    def __iter__(self) -> Iterator[TxnId]:
        return iter(list(self._runs))

    def runs(self, txn: TxnId) -> tuple[AckedRange, ...]:
        """The entries of a transaction, as runs that follow each other in the ledger."""
        return tuple(self._runs.get(txn, ()))

    def record(self, txn: TxnId, entry: Entry) -> None:
        """An entry was appended."""
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
        """The same: where it stands; its messages and its bytes, each with the topic's total up to it."""
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
        """Whether the end of one is on its way to the disk."""
        return bool(self._ended)

    @property
    def readable(self) -> tuple[Position, int, int] | None:
        """Up to where the ledger can be read, and the topic's totals of messages and bytes up to there; None where none
        is open."""
        first = min((runs[0] for runs in self._runs.values()), default=None)
        if first is None:
            return None
        return Position(first.ledger_id, first.first - 1), first.messages_before, first.bytes_before

    def roll_back(self, last: Position, totals: tuple[int, int]) -> None:
        """What was appended behind ``last``, up to which the topic has these totals, is given up."""
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
        """The transaction ends with the batch that gathers: it has no row from there on."""
        if txn in self._runs:
            self._ended.add(txn)
            self._changed.discard(txn)

    def end(self, txn: TxnId) -> tuple[AckedRange, ...]:
        """The end of the transaction is durable; gives its runs."""
        self._ended.discard(txn)
        self._changed.discard(txn)
        runs = self._runs.pop(txn, [])
        if runs:
            self._find_limit()
        return tuple(runs)

    def holds(self, ledger_id: int) -> bool:
        """Whether an entry of a ledger is of an open transaction."""
        return any(run.ledger_id == ledger_id for runs in self._runs.values() for run in runs)

    def _find_limit(self) -> None:
        self._limited(min(((runs[0].ledger_id, runs[0].first) for runs in self._runs.values()), default=NO_LIMIT))

    # The checkpoint

    def dirty_rows(self) -> dict[str, Row | None]:
        """The rows that changed since the last call."""
        rows: dict[str, Row | None] = {}
        for txn in self._changed - self._ended:
            runs = self._runs.get(txn)
            rows[open_key(self._topic_id, *txn)] = None if runs is None else {"runs": runs}
        self._changed.clear()
        return rows

    def restore(self, txn: TxnId, row: Row) -> None:
        """Take a row over."""
        self._runs[txn] = [AckedRange(*run) for run in row["runs"]]
        self._find_limit()


def aborted_rows(topic_id: int, runs: tuple[AckedRange, ...]) -> dict[str, Row]:
    """The rows of entries that were aborted, by key."""
    return {aborted_key(topic_id, run.ledger_id, run.first): {"run": run[2:]} for run in runs}


def aborted_of(catalog: Catalog, topic_id: int, ledger_id: int | None = None) -> Iterator[AckedRange]:
    """The entries of a topic, or of one of its ledgers, that were aborted: in order, as runs."""
    return map(run_of, catalog.items(aborted_key(topic_id, ledger_id)))


def aborted_within(catalog: Catalog, topic_id: int, ledger_id: int, first: int, end: int) -> Iterator[AckedRange]:
    """Those runs of a ledger that have one of its entries from ``first`` to before ``end``: only their rows are read,
    and the one before."""
    prefix, at = aborted_key(topic_id, ledger_id), aborted_key(topic_id, ledger_id, first)
    before = catalog.last(prefix, at)
    if before is not None and (run := run_of(before)).last >= first:
        yield run
    yield from map(run_of, catalog.items(prefix, at, aborted_key(topic_id, ledger_id, end)))


def last_aborted(catalog: Catalog, topic_id: int, ledger_id: int, through: int) -> AckedRange | None:
    """The last run of a ledger that begins at an entry or before."""
    row = catalog.last(aborted_key(topic_id, ledger_id), aborted_key(topic_id, ledger_id, through))
    return None if row is None else run_of(row)


def run_of(row: tuple[str, bytes]) -> AckedRange:
    """The entries that a row of aborted ones is about."""
    key, value = row
    *_, ledger, first = key.split("/")
    return AckedRange(int(ledger, 16), int(first, 16), *json.loads(value)["run"])


def visible_runs(
    ledger_id: int, first: int, end: int, limit: tuple[int, int], aborted: Iterable[AckedRange]
) -> Iterator[tuple[int, int]]:
    """Which of the entries of a ledger from ``first`` to before ``end`` anybody may see, as first and end of each run:
    those before ``limit``, the first entry of an open transaction of the topic (``NO_LIMIT`` where none is open), that
    are not in ``aborted``: runs of the ledger, in order."""
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
