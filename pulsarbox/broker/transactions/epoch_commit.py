"""Epoch commit: the transactions that the tasks of one epoch of a sink have filled, committed together, once.

A sink (of a stream processor, which may run an epoch again after a failure) names the transactions in which it has
staged an epoch. They are committed with one batch, and the sink's row with them: which epoch was its last. So the epoch
is published whole or not at all, and the second attempt finds that it was.

Who begins these transactions here (``stage``) has them known as parts of an epoch. Then what another attempt, a task
that was killed or a driver that was replaced has left ends with the commit of the epoch, or when the next run of the
writer comes, and holds no reader up. Any other that nobody claims ends by its time-out.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.broker.transactions.coordinator import Who, owner_of
from pulsarbox.broker.transactions.sink_writers import Writer, admitted
from pulsarbox.broker.transactions.transaction import ABORTED, COMMITTED, Stage, Transaction
from pulsarbox.clock import Now
from pulsarbox.errors import AuthorizationError, Conflict, PulsarBoxError
from pulsarbox.storage.catalog import Row, epoch_key
from pulsarbox.storage.transactions import TxnId

if TYPE_CHECKING:
    from pulsarbox.broker.core import Core

NOBODY: Final = Writer()
"""A writer that says nothing about itself."""
Told = Callable[[bool, Now], None]
"""Is told whether the epoch was published by this request; false: it was before."""


class _UnderWay(NamedTuple):
    """A commit that is not durable yet."""

    epoch: int
    writer: str
    txn_ids: frozenset[TxnId]
    waiting: list[Told]


class Epochs:
    """The sinks of a box, named ``tenant/namespace/sink``."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._under_way: dict[str, _UnderWay] = {}

    def last(self, sink: str) -> Row | None:
        """What is known of a sink: ``epoch``, its last one (-1 for none), ``committed`` (ms since 1970), ``owner``;
        where its writer has said who that is ``writer``, ``run`` and ``former``, who was replaced. None: nothing.
        """
        return self._core.catalog.get(epoch_key(sink))

    def names(self, namespace: str, after: str = "") -> Iterator[str]:
        """The sinks of a namespace, sorted; those behind ``after``, which is without the namespace."""
        begin, cut = epoch_key(f"{namespace}/"), len(epoch_key(""))
        behind = epoch_key(f"{namespace}/{after}") if after else ""
        return (key[cut:] for key, _ in self._core.catalog.items(begin, behind))

    def stage(self, sink: str, epoch: int, writer: Writer, timeout: int, who: Who, now: Now) -> Transaction | None:
        """Begin a transaction that is a part of an epoch, durable with the next commit; None where the epoch was
        published before. ``timeout`` in milliseconds, 0 for the longest there is.

        Raises Conflict for an epoch behind the sink's last and for a writer that is not the sink's,
        AuthorizationError for another's sink, and what ``Coordinator.begin`` raises.
        """
        row = self._let_in(sink, epoch, writer, who, now)
        if row is not None and epoch <= row["epoch"]:
            self._check_not_behind(sink, row, epoch)
            return None
        stage = Stage(sink, epoch, writer.run)
        return self._core.transactions.begin(timeout, who.principal, now, stage)

    def commit(
        self, sink: str, epoch: int, txn_ids: list[TxnId], who: Who, told: Told, now: Now, writer: Writer = NOBODY
    ) -> None:
        """Publish an epoch; ``told`` when that is durable. Where it was published before, the transactions are aborted.

        Raises Conflict for an epoch behind the sink's last, for a writer that is not the sink's and for a part of
        another epoch; AuthorizationError for another's sink, and what ``Coordinator.find`` raises: then nothing has
        happened.
        """
        row, under_way = self._let_in(sink, epoch, writer, who, now), self._under_way.get(sink)
        if under_way is not None and under_way.epoch == epoch and under_way.writer == writer.name:
            self._abort([each for each in txn_ids if each not in under_way.txn_ids], who, now)
            under_way.waiting.append(lambda first, when: told(False, when))
            return
        if under_way is not None:
            raise Conflict(f"Epoch {under_way.epoch} of sink {sink} is being committed: wait for it")
        if row is not None and epoch <= row["epoch"]:
            self._check_not_behind(sink, row, epoch)
            self._abort(txn_ids, who, now)
            self._core.commits.after_commit(lambda when: told(False, when))
            return
        coordinator = self._core.transactions
        found = [coordinator.find(each, who) for each in dict.fromkeys(txn_ids)]
        _check_stages(sink, epoch, found)
        self._under_way[sink] = _UnderWay(epoch, writer.name, frozenset(txn_ids), [told])
        coordinator.end_together(found, COMMITTED, partial(self._settled, sink, owner_of(who.principal)), now)

    def _let_in(self, sink: str, epoch: int, writer: Writer, who: Who, now: Now) -> Row | None:
        """The sink's row, with this writer as its own. Raises AuthorizationError, Conflict."""
        row = self.last(sink)
        self._check_owner(sink, row, who)
        if not writer.name:
            return row
        found = admitted(sink, row, writer, epoch, owner_of(who.principal))
        if found is not row:
            self._core.commits.put_row(epoch_key(sink), found)
            self._abort_stages(sink, lambda stage: stage.run != writer.run, now)
        return found

    def _check_not_behind(self, sink: str, row: Row, epoch: int) -> None:
        if epoch < row["epoch"]:
            raise Conflict(f"Epoch {epoch} of sink {sink} is behind: its last one is {row['epoch']}")

    def _settled(self, sink: str, owner: str | None, now: Now) -> None:
        """The transactions end with the batch that gathers: so does the epoch."""
        epoch, writer, *_ = self._under_way[sink]
        row = self.last(sink) or {"owner": owner}
        if not writer or row.get("writer") == writer:  # else it was taken over in between, and counts anew
            self._core.commits.put_row(epoch_key(sink), row | {"epoch": epoch, "committed": now.wall})
        self._abort_stages(sink, lambda stage: stage.epoch <= epoch, now)
        self._core.commits.after_commit(partial(self._stored, sink))

    def _stored(self, sink: str, now: Now) -> None:
        for told in self._under_way.pop(sink).waiting:
            told(True, now)

    def _abort_stages(self, sink: str, dead: Callable[[Stage], bool], now: Now) -> None:
        """Abort parts of epochs that nobody can commit any more."""
        coordinator = self._core.transactions
        for txn in coordinator:
            if txn.stage is not None and txn.stage.sink == sink and txn.ending is None and dead(txn.stage):
                coordinator.end_together([txn], ABORTED, _nothing, now)

    def _abort(self, txn_ids: list[TxnId], who: Who, now: Now) -> None:
        """What an epoch staged that needs nothing more: as far as it is open."""
        for txn_id in txn_ids:
            try:
                self._core.transactions.end(txn_id, ABORTED, who, _ignore, now)
            except PulsarBoxError:
                continue  # it has ended already

    def forget(self, sink: str, who: Who) -> None:
        """The sink is no more: it may begin again at any epoch. Raises AuthorizationError, Conflict."""
        self._check_owner(sink, self.last(sink), who)
        if sink in self._under_way:
            raise Conflict(f"An epoch of sink {sink} is being committed: wait for it")
        self._core.commits.put_row(epoch_key(sink), None)

    def forget_namespace(self, namespace: str) -> None:
        """The namespace is no more, and none of its sinks."""
        for key in list(self._core.catalog.keys(epoch_key(f"{namespace}/"))):
            self._core.commits.put_row(key, None)

    def _check_owner(self, sink: str, row: Row | None, who: Who) -> None:
        principal = who.principal
        if row is None or principal is None or owner_of(principal) == row["owner"]:
            return
        try:
            self._core.authorization.require_superuser(principal)
        except PulsarBoxError:
            raise AuthorizationError(f"Sink {sink} is not that of {principal}: only who began it may go on") from None


def _check_stages(sink: str, epoch: int, txns: list[Transaction]) -> None:
    """Raises Conflict where one is a part of something else."""
    for txn in txns:
        if txn.stage is not None and txn.stage[:2] != (sink, epoch):
            raise Conflict(f"Transaction {txn.id} is a part of epoch {txn.stage.epoch} of sink {txn.stage.sink}")


def _nothing(now: Now) -> None:
    pass


def _ignore(error: PulsarBoxError | None, now: Now) -> None:
    pass
