"""Epoch commit: commits the transactions filled by the tasks of a sink's epoch together, exactly once.

A sink of a stream processor, which may rerun an epoch after a failure, names the transactions in which it has staged
the epoch. They are committed in one batch with the sink's row, which stores its last epoch. The epoch is published as a
whole or not at all, and a second attempt finds that it was.

Transactions begun here (``stage``) are known to belong to an epoch. Leftovers of another attempt, a killed task or a
replaced driver are aborted when the epoch is committed or the writer's next run arrives, so they block no readers. Any
other unclaimed transaction ends with its timeout.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.security.authorization import Authorization
from pulsarbox.broker.transactions.coordinator import Coordinator
from pulsarbox.broker.transactions.sink_writers import SinkWriter, admitted
from pulsarbox.broker.transactions.transaction import ABORTED, COMMITTED, OpenTransaction, Stage, Who
from pulsarbox.broker.transactions.transaction_table import TransactionTable, owner_of
from pulsarbox.clock import Now
from pulsarbox.errors import AuthorizationError, Conflict, EpochBehind, PulsarBoxError
from pulsarbox.storage.catalog import Catalog, Row, epoch_key
from pulsarbox.storage.transactions import TxnId

NOBODY: Final = SinkWriter()
"""An anonymous writer."""
Told = Callable[[bool, Now], None]
"""Receives whether this request published the epoch; false if it was already published."""


class _UnderWay(NamedTuple):
    """A commit that is not durable yet."""

    epoch: int
    writer: str
    txn_ids: frozenset[TxnId]
    waiting: list[Told]


class Epochs:
    """The sinks of a box, named ``tenant/namespace/sink``."""

    def __init__(
        self,
        catalog: Catalog,
        commits: GroupCommit,
        authorization: Authorization,
        transactions: TransactionTable,
        coordinator: Coordinator,
    ) -> None:
        self._catalog = catalog
        self._commits = commits
        self._authorization = authorization
        self._transactions = transactions
        self._coordinator = coordinator
        self._under_way: dict[str, _UnderWay] = {}

    def last(self, sink: str) -> Row | None:
        """Return a sink's row; None if it is unknown.

        The row has ``epoch``, the last one (-1 for none), ``committed`` (ms since 1970) and ``owner``; for a named
        writer also ``writer``, ``run`` and ``former``, the replaced ones.
        """
        return self._catalog.get(epoch_key(sink))

    def names(self, namespace: str, after: str = "") -> Iterator[str]:
        """Yield the sinks of a namespace in order, starting after ``after``, which excludes the namespace."""
        begin, cut = epoch_key(f"{namespace}/"), len(epoch_key(""))
        behind = epoch_key(f"{namespace}/{after}") if after else ""
        return (key[cut:] for key, _ in self._catalog.items(begin, behind))

    def stage(
        self, sink: str, epoch: int, writer: SinkWriter, timeout: int, who: Who, now: Now
    ) -> OpenTransaction | None:
        """Begin a transaction for an epoch, durable with the next commit; None if the epoch is already published.

        ``timeout`` in milliseconds, 0 for the maximum. Raises Conflict if the epoch is older than the sink's last or
        the writer is not the sink's, AuthorizationError for another owner's sink, and the errors of
        ``Coordinator.begin``.
        """
        row = self._register_writer(sink, epoch, writer, who, now)
        if row is not None and epoch <= row["epoch"]:
            self._check_not_behind(sink, row, epoch)
            return None
        stage = Stage(sink, epoch, writer.run)
        return self._coordinator.begin(timeout, who.principal, now, stage)

    def commit(
        self, sink: str, epoch: int, txn_ids: list[TxnId], who: Who, told: Told, now: Now, writer: SinkWriter = NOBODY
    ) -> None:
        """Publish an epoch; ``told`` is called once that is durable.

        Aborts the transactions if the epoch is already published. Raises, without a change, Conflict if the epoch is
        older than the sink's last, the writer is not the sink's, or a transaction belongs to another epoch;
        AuthorizationError for another owner's sink; and the errors of ``TransactionTable.find``.
        """
        row, under_way = self._register_writer(sink, epoch, writer, who, now), self._under_way.get(sink)
        if under_way is not None and under_way.epoch == epoch and under_way.writer == writer.name:
            self._abort([each for each in txn_ids if each not in under_way.txn_ids], who, now)
            under_way.waiting.append(lambda first, when: told(False, when))
            return
        if under_way is not None:
            raise Conflict(f"Epoch {under_way.epoch} of sink {sink} is still being committed: try again")
        if row is not None and epoch <= row["epoch"]:
            self._check_not_behind(sink, row, epoch)
            self._abort(txn_ids, who, now)
            self._commits.after_commit(lambda when: told(False, when))
            return
        found = [self._transactions.find(each, who) for each in dict.fromkeys(txn_ids)]
        _check_stages(sink, epoch, found)
        self._under_way[sink] = _UnderWay(epoch, writer.name, frozenset(txn_ids), [told])
        self._coordinator.end_together(found, COMMITTED, partial(self._settled, sink, owner_of(who.principal)), now)

    def _register_writer(self, sink: str, epoch: int, writer: SinkWriter, who: Who, now: Now) -> Row | None:
        """Register the writer as the sink's and return the row. Raises AuthorizationError, Conflict."""
        row = self.last(sink)
        self._check_owner(sink, row, who)
        if not writer.name:
            return row
        found = admitted(sink, row, writer, epoch, owner_of(who.principal))
        if found is not row:
            self._commits.put_row(epoch_key(sink), found)
            self._abort_stages(sink, lambda stage: stage.run != writer.run, now)
        return found

    def _check_not_behind(self, sink: str, row: Row, epoch: int) -> None:
        if epoch < row["epoch"]:
            raise EpochBehind(f"Epoch {epoch} of sink {sink} is behind its last epoch, {row['epoch']}")

    def _settled(self, sink: str, owner: str | None, now: Now) -> None:
        """Record the epoch in the batch that ends the transactions."""
        epoch, writer, *_ = self._under_way[sink]
        row = self.last(sink) or {"owner": owner}
        if not writer or row.get("writer") == writer:  # else another writer has taken over and starts its own numbering
            self._commits.put_row(epoch_key(sink), row | {"epoch": epoch, "committed": now.wall})
        self._abort_stages(sink, lambda stage: stage.epoch <= epoch, now)
        self._commits.after_commit(partial(self._stored, sink))

    def _stored(self, sink: str, now: Now) -> None:
        for told in self._under_way.pop(sink).waiting:
            told(True, now)

    def _abort_stages(self, sink: str, dead: Callable[[Stage], bool], now: Now) -> None:
        """Abort an epoch's transactions that can no longer be committed."""
        for txn in self._transactions:
            if txn.stage is not None and txn.stage.sink == sink and txn.ending is None and dead(txn.stage):
                self._coordinator.end_together([txn], ABORTED, _nothing, now)

    def _abort(self, txn_ids: list[TxnId], who: Who, now: Now) -> None:
        """Abort superfluous transactions of an epoch that are still open."""
        for txn_id in txn_ids:
            try:
                self._coordinator.end(txn_id, ABORTED, who, _ignore, now)
            except PulsarBoxError:
                continue  # already ended

    def forget(self, sink: str, who: Who) -> None:
        """Forget the sink, which may then begin at any epoch. Raises AuthorizationError, Conflict."""
        self._check_owner(sink, self.last(sink), who)
        if sink in self._under_way:
            raise Conflict(f"An epoch of sink {sink} is still being committed: try again")
        self._commits.put_row(epoch_key(sink), None)

    def forget_namespace(self, namespace: str) -> None:
        """Forget all sinks of a deleted namespace."""
        for key in list(self._catalog.keys(epoch_key(f"{namespace}/"))):
            self._commits.put_row(key, None)

    def _check_owner(self, sink: str, row: Row | None, who: Who) -> None:
        principal = who.principal
        if row is None or principal is None or owner_of(principal) == row["owner"]:
            return
        try:
            self._authorization.require_superuser(principal)
        except PulsarBoxError:
            raise AuthorizationError(
                f"Sink {sink} does not belong to {principal}: only its creator can use it"
            ) from None


def _check_stages(sink: str, epoch: int, txns: list[OpenTransaction]) -> None:
    """Raise Conflict if a transaction belongs to another epoch or sink."""
    for txn in txns:
        if txn.stage is not None and txn.stage[:2] != (sink, epoch):
            raise Conflict(f"Transaction {txn.id} belongs to epoch {txn.stage.epoch} of sink {txn.stage.sink}")


def _nothing(now: Now) -> None:
    pass


def _ignore(error: PulsarBoxError | None, now: Now) -> None:
    pass
