"""Epoch commit: the transactions that the tasks of one epoch of a sink have filled, committed together, once.

A sink (of a stream processor, which may run an epoch again after a failure) names the transactions in which it has
staged an epoch. They are committed with one batch, and the sink's row with them: which epoch was its last. So the epoch
is published whole or not at all, and the second attempt finds that it was. What nobody claims ends as any transaction
does: by its time-out.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pulsarbox.broker.transactions.coordinator import Who, owner_of
from pulsarbox.broker.transactions.transaction import ABORTED, COMMITTED
from pulsarbox.clock import Now
from pulsarbox.errors import AuthorizationError, Conflict, PulsarBoxError
from pulsarbox.storage.catalog import Row, epoch_key
from pulsarbox.storage.transactions import TxnId

if TYPE_CHECKING:
    from pulsarbox.broker.core import Core

Told = Callable[[bool, Now], None]
"""Is told whether the epoch was published by this request; false: it was before."""


class _UnderWay(NamedTuple):
    """A commit that is not durable yet."""

    epoch: int
    txn_ids: frozenset[TxnId]
    waiting: list[Told]


class Epochs:
    """The sinks of a box, named ``tenant/namespace/sink``."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._under_way: dict[str, _UnderWay] = {}

    def last(self, sink: str) -> Row | None:
        """The sink's last epoch: ``epoch``, ``committed`` (ms since 1970), ``owner``; None of one that is not known."""
        return self._core.catalog.get(epoch_key(sink))

    def commit(self, sink: str, epoch: int, txn_ids: list[TxnId], who: Who, told: Told, now: Now) -> None:
        """Publish an epoch; ``told`` when that is durable. Where it was published before, the transactions are aborted.

        Raises Conflict for an epoch behind the sink's last, AuthorizationError for another's sink, and what
        ``Coordinator.find`` raises: then nothing has happened.
        """
        row, under_way = self.last(sink), self._under_way.get(sink)
        self._check_owner(sink, row, who)
        if under_way is not None and under_way.epoch == epoch:
            self._abort([each for each in txn_ids if each not in under_way.txn_ids], who, now)
            under_way.waiting.append(lambda first, when: told(False, when))
            return
        if under_way is not None:
            raise Conflict(f"Epoch {under_way.epoch} of sink {sink} is being committed: wait for it")
        if row is not None and epoch < row["epoch"]:
            raise Conflict(f"Epoch {epoch} of sink {sink} is behind: its last one is {row['epoch']}")
        if row is not None and epoch == row["epoch"]:
            self._abort(txn_ids, who, now)
            told(False, now)
            return
        coordinator = self._core.transactions
        found = [coordinator.find(each, who) for each in dict.fromkeys(txn_ids)]
        self._under_way[sink] = _UnderWay(epoch, frozenset(txn_ids), [told])
        owner = row["owner"] if row is not None else owner_of(who.principal)
        coordinator.end_together(found, COMMITTED, partial(self._settled, sink, epoch, owner), now)

    def _settled(self, sink: str, epoch: int, owner: str | None, now: Now) -> None:
        """The transactions end with the batch that gathers: so does the epoch."""
        row = {"epoch": epoch, "committed": now.wall, "owner": owner}
        self._core.commits.put_row(epoch_key(sink), row)
        self._core.commits.after_commit(partial(self._stored, sink))

    def _stored(self, sink: str, now: Now) -> None:
        for told in self._under_way.pop(sink).waiting:
            told(True, now)

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


def _ignore(error: PulsarBoxError | None, now: Now) -> None:
    pass
