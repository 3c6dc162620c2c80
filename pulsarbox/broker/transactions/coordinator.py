"""The transaction coordinator: begins transactions, watches their timeouts and ends them.

A transaction ends with one batch, which holds the outcome for its entries and acknowledgements on all topics and its
own row. It ends everywhere or nowhere, so nothing needs to be retried. Consumers see the outcome once that batch is
durable. The batch waits for the transaction's entries that are not durable yet.

Sources: TransactionMetadataStoreService and MLTransactionMetadataStore of Pulsar 4.2.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.transactions import topic_outcome
from pulsarbox.broker.transactions.transaction import ABORTED, Answer, OpenTransaction, Stage, Who
from pulsarbox.broker.transactions.transaction_table import TransactionTable
from pulsarbox.clock import Now
from pulsarbox.storage.transactions import TxnId

if TYPE_CHECKING:
    from pulsarbox.broker.security.principal import Principal
    from pulsarbox.broker.topic.topic import PersistentTopic

log = logging.getLogger(__name__)


class Coordinator:
    """Begins and ends the transactions of the box."""

    def __init__(
        self,
        transactions: TransactionTable,
        commits: GroupCommit,
        timers: Timers,
        topic_of: "Callable[[str, Now], PersistentTopic | None]",
    ) -> None:
        """``topic_of`` loads a persistent topic; None if it does not exist."""
        self._transactions = transactions
        self._commits = commits
        self._timers = timers
        self._topic_of = topic_of
        for txn in transactions:
            self._watch(txn)

    def begin(
        self, timeout: int, principal: "Principal | None", now: Now, stage: Stage | None = None
    ) -> OpenTransaction:
        """Begin a transaction, durable with the next commit; ``timeout`` in milliseconds, 0 for the maximum.

        Raises TooManyRequests, NotAllowed.
        """
        txn = self._transactions.add(timeout, principal, now, stage)
        self._watch(txn)
        return txn

    def _watch(self, txn: OpenTransaction) -> None:
        txn.timer = self._timers.at_wall(txn.ends_at, partial(self._time_out, txn))

    def _time_out(self, txn: OpenTransaction, now: Now) -> None:
        if txn.ending is None:
            log.info("transaction %s is aborted: its timeout of %d ms has expired", txn.id, txn.timeout)
            txn.timed_out = True
            self._begin_end(txn, ABORTED, now)

    def end(self, txn_id: TxnId, outcome: str, who: Who, answer: Answer, now: Now) -> None:
        """Commit or abort; ``answer`` is called once that is durable.

        If the connection broke before the response, the client may repeat the request on another one. On the same
        connection, an ended transaction is unknown, as in Pulsar. Raises TransactionNotFound, InvalidTxnStatus,
        AuthorizationError.
        """
        transactions = self._transactions
        transactions.check_coordinator(txn_id.most)
        txn, ended = transactions.open.get(txn_id), transactions.ended.get(txn_id)
        if txn is None and ended is not None and ended.state == outcome and ended.connection is not who:
            answer(None, now)
            return
        if txn is not None and txn.ending == outcome:
            transactions.check_owner(txn, who.principal)
        else:
            txn = transactions.find(txn_id, who)
        txn.waiting.append((who, answer))
        if txn.ending is None:
            self._begin_end(txn, outcome, now)

    def end_together(self, txns: list[OpenTransaction], outcome: str, settled: Callable[[Now], None], now: Now) -> None:
        """End transactions with one batch; ``settled`` adds further changes to it."""
        on_its_way = False
        for txn in txns:
            txn.ending = outcome
            if txn.timer is not None:
                txn.timer.cancel()
            on_its_way |= any(topic_outcome.is_on_its_way(topic, txn) for topic in self._touched(txn, now))

        def end(when: Now) -> None:
            for each in txns:
                self._settled(each, when)
            settled(when)

        if on_its_way:
            self._commits.after_commit(end)
        else:
            end(now)

    def _begin_end(self, txn: OpenTransaction, outcome: str, now: Now) -> None:
        self.end_together([txn], outcome, _nothing, now)

    def _touched(self, txn: OpenTransaction, now: Now) -> "Iterator[PersistentTopic]":
        """Yield the existing topics that the transaction has published to or acknowledged on."""
        for name in dict.fromkeys((*txn.topics, *(topic for topic, _ in txn.subscriptions))):
            topic = self._topic_of(name, now)
            if topic is not None:
                yield topic

    def _settled(self, txn: OpenTransaction, now: Now) -> None:
        """End the transaction on all topics; its entries are stored or dropped by now."""
        assert txn.ending is not None
        txn.settled = True
        topics = list(self._touched(txn, now))
        for topic in topics:
            topic_outcome.end(topic, txn, self._commits, now)
        self._transactions.settle(txn, now)
        self._commits.after_commit(partial(self._has_ended, txn, topics))

    def _has_ended(self, txn: OpenTransaction, topics: "list[PersistentTopic]", now: Now) -> None:
        self._transactions.close(txn, now)
        for topic in topics:
            topic_outcome.has_ended(topic, txn, now)
        for _, answer in txn.waiting:
            answer(None, now)


def _nothing(now: Now) -> None:
    pass
