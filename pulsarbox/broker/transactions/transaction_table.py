"""The table of transactions: begins them, finds them and records what belongs to them.

Sources: TransactionMetadataStoreService and MLTransactionMetadataStore of Pulsar 4.2.
"""

import json
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import ref

from pulsarbox.broker.current_settings import CurrentSettings
from pulsarbox.broker.transactions.transaction import ABORTED, COMMITTED, OPEN, OpenTransaction, Stage, Who
from pulsarbox.clock import Now
from pulsarbox.errors import (
    AuthorizationError,
    InvalidTxnStatus,
    NotAllowed,
    PulsarBoxError,
    TooManyRequests,
    TransactionCoordinatorNotFound,
    TransactionNotFound,
    TransactionsDisabled,
    TransactionTimeoutTooLong,
)
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.storage.catalog import PENDING, TXNS, Catalog, Row, pending_key, txn_key
from pulsarbox.storage.transactions import TxnId

if TYPE_CHECKING:
    from pulsarbox.broker.persistence.group_commit import GroupCommit
    from pulsarbox.broker.security.authorization import Authorization
    from pulsarbox.broker.security.principal import Principal
    from pulsarbox.broker.topic.producer import AttachedProducer

new_id: Final = tuple.__new__

COORDINATOR: Final = 0
"""ID of the only coordinator: the most significant half of every transaction ID."""
OPEN_MS: Final = (10, 20, 50, 100, 500, 1000, 5000, 15_000, 30_000, 60_000, 300_000, 1_500_000, 3_000_000)
"""Upper bounds of the transaction duration histogram, as in Pulsar."""
KEPT: Final = 1000
"""Ended transactions to remember, for clients that lost the response and retry."""


class Ended(NamedTuple):
    """The outcome of a transaction."""

    state: str
    told_to: "ref[Who] | None" = None

    @property
    def connection(self) -> "Who | None":
        """The connection that received the outcome."""
        return None if self.told_to is None else self.told_to()


class TransactionTable:
    """All transactions of the box. ``Coordinator`` ends them."""

    def __init__(
        self, catalog: Catalog, commits: "GroupCommit", settings: CurrentSettings, authorization: "Authorization"
    ) -> None:
        self._catalog = catalog
        self._commits = commits
        self._settings = settings
        self._authorization = authorization
        self.open: dict[TxnId, OpenTransaction] = {}
        self.ended: OrderedDict[TxnId, Ended] = OrderedDict()
        """The most recently ended transactions."""
        self.created = self.committed = self.aborted = self.timed_out = 0
        """Counts since the start."""
        self.last_id = 0
        """ID of the last transaction begun, if known."""
        self.appended = 0
        """Transaction rows written since the start."""
        self.latencies = [0] * (len(OPEN_MS) + 1)
        """Histogram of the durations of transactions ended since the start."""
        self._restore()

    @property
    def enabled(self) -> bool:
        """Whether transactions are enabled."""
        return self._settings.current.transactionCoordinatorEnabled

    def __iter__(self) -> Iterator[OpenTransaction]:
        return iter(list(self.open.values()))

    def _restore(self) -> None:
        ended = []
        for key, value in self._catalog.items(TXNS):
            row, txn_id = json.loads(value), _id_of(key)
            self.last_id = max(self.last_id, txn_id.least)
            if row["state"] == OPEN:
                self.open[txn_id] = OpenTransaction.of_row(txn_id, row)
            else:
                ended.append((row["ended"], txn_id, row["state"]))
        self.ended.update((txn_id, Ended(state)) for _, txn_id, state in sorted(ended))
        for key, value in self._catalog.items(PENDING):
            _, most, least, topic_id, cursor_id, _ = key.split("/")
            owner = self.open.get(TxnId(int(most, 16), int(least, 16)))
            if owner is not None:
                owner.acks.setdefault((int(topic_id, 16), int(cursor_id, 16)), []).append(json.loads(value))

    def recent(self, txn_id: TxnId) -> OpenTransaction | None:
        """Return a recently ended transaction; None if it is no longer remembered."""
        row = self._catalog.get(txn_key(*txn_id)) if txn_id in self.ended else None
        return None if row is None else OpenTransaction.of_row(txn_id, row)

    def acks_on(self, topic_id: int, cursor_id: int) -> list[tuple[OpenTransaction, list[Row]]]:
        """Return the pending acknowledgements of open transactions with a cursor."""
        key = (topic_id, cursor_id)
        return [(txn, txn.acks[key]) for txn in self.open.values() if key in txn.acks and not txn.settled]

    # Begin and register

    def check_coordinator(self, number: int) -> None:
        """Raise NotAllowed if transactions are disabled, TransactionCoordinatorNotFound for another ID."""
        if not self.enabled:
            raise TransactionsDisabled("Transactions are not enabled.")
        if number != COORDINATOR:
            raise TransactionCoordinatorNotFound(
                f"Transaction coordinator {number} not found: the only coordinator is 0"
            )

    def add(self, timeout: int, principal: "Principal | None", now: Now, stage: Stage | None = None) -> OpenTransaction:
        """Add an open transaction, durable with the next commit; ``timeout`` in milliseconds, 0 for the maximum.

        Raises TooManyRequests, NotAllowed.
        """
        settings = self._settings.current
        most, longest = settings.maxActiveTransactionsPerCoordinator, settings.transactionMaxTimeoutSeconds * 1000
        if most and len(self.open) >= most:
            raise TooManyRequests(
                f"{most} transactions are open, the maximum set by maxActiveTransactionsPerCoordinator"
            )
        if timeout > longest:
            raise TransactionTimeoutTooLong(
                f"The transaction timeout of {timeout} ms exceeds {longest} ms (transactionMaxTimeoutSeconds)"
            )
        txn_id = TxnId(COORDINATOR, self._commits.new_id())
        txn = OpenTransaction(txn_id, now.wall, timeout or longest, owner_of(principal))
        txn.stage = stage
        self.open[txn_id] = txn
        self.created += 1
        self.last_id = txn_id.least
        self._write(txn)
        return txn

    def find(self, txn_id: TxnId, who: Who) -> OpenTransaction:
        """Return a transaction that can be added to.

        Raises TransactionNotFound, InvalidTxnStatus, AuthorizationError.
        """
        self.check_coordinator(txn_id.most)
        txn = self.open.get(txn_id)
        if txn is None:
            ended = self.ended.get(txn_id)
            if ended is not None and ended.connection is not who:
                raise InvalidTxnStatus(f"Transaction {txn_id} is {ended.state}: nothing can be added to it")
            raise TransactionNotFound(f"Transaction {txn_id} not found: it has ended, or was never begun")
        self.check_owner(txn, who.principal)
        if txn.ending is not None:
            raise InvalidTxnStatus(f"Transaction {txn_id} is {txn.state}: nothing can be added to it")
        return txn

    def check_owner(self, txn: OpenTransaction, principal: "Principal | None") -> None:
        """Raise AuthorizationError unless the principal began the transaction or is a superuser."""
        if principal is None or owner_of(principal) == txn.owner:
            return
        try:
            self._authorization.require_superuser(principal)
        except PulsarBoxError:
            raise AuthorizationError(
                f"Transaction {txn.id} does not belong to {principal}: only its creator can add to it or end it"
            ) from None

    def add_topics(self, txn: OpenTransaction, names: Iterable[str]) -> None:
        """Register topics that the transaction publishes to. Raises InvalidTopicName."""
        self._add(txn, {str(parse_topic(name)): name for name in names}, {})

    def add_subscriptions(self, txn: OpenTransaction, names: Iterable[tuple[str, str]]) -> None:
        """Register (topic, subscription) pairs that the transaction acknowledges on. Raises InvalidTopicName."""
        self._add(txn, {}, {(str(parse_topic(topic)), name): topic for topic, name in names})

    def _add(self, txn: OpenTransaction, topics: dict[str, str], subscriptions: dict[tuple[str, str], str]) -> None:
        if topics.keys() <= txn.topics.keys() and subscriptions.keys() <= txn.subscriptions.keys():
            return
        txn.topics = topics | txn.topics
        txn.subscriptions = subscriptions | txn.subscriptions
        self._write(txn)

    def of_send(self, most: int, least: int, producer: "AttachedProducer") -> OpenTransaction:
        """Return the transaction of a message. Raises NotAllowed, the only error on which clients drop a message."""
        txn_id = new_id(TxnId, (most, least))
        known = self.open.get(txn_id)
        if known is not None and producer in known.producers and known.ending is None:
            principal = producer.cnx.principal
            if principal is None or owner_of(principal) == known.owner:
                return known
        try:
            txn = self.find(txn_id, producer.cnx)
        except PulsarBoxError as error:
            raise NotAllowed(str(error)) from None
        if producer not in txn.producers:
            name = str(producer.topic.name)
            if name not in txn.topics:
                self.add_topics(txn, [name])
            txn.producers.add(producer)
        return txn

    def acknowledged(
        self, txn: OpenTransaction, topic: TopicName, subscription: str, key: tuple[int, int], row: Row
    ) -> None:
        """Record a pending acknowledgement (``row``) of the transaction; durable with the next commit.

        ``key`` has the IDs of topic and cursor.
        """
        self.add_subscriptions(txn, [(str(topic), subscription)])
        rows = txn.acks.setdefault(key, [])
        rows.append(row)
        self._commits.put_row(pending_key(*txn.id, *key, len(rows)), row)

    def _write(self, txn: OpenTransaction, state: str = OPEN, ended: int = 0) -> None:
        self.appended += 1
        self._commits.put_row(txn_key(*txn.id), txn.row(state, ended))

    # End, requested by the coordinator

    def settle(self, txn: OpenTransaction, now: Now) -> None:
        """Write the outcome of a transaction into the open batch."""
        assert txn.ending is not None
        self._catalog.delete_all(pending_key(*txn.id))
        self._write(txn, txn.ending, now.wall)
        self.ended[txn.id] = Ended(txn.ending, next((ref(who) for who, _ in txn.waiting), None))
        while len(self.ended) > KEPT:
            self._commits.put_row(txn_key(*self.ended.popitem(last=False)[0]), None)

    def close(self, txn: OpenTransaction, now: Now) -> None:
        """Remove a transaction whose outcome is durable from the open ones, and count it."""
        del self.open[txn.id]
        self.latencies[bisect_left(OPEN_MS, now.wall - txn.opened)] += 1
        self.committed += txn.ending == COMMITTED
        self.aborted += txn.ending == ABORTED
        self.timed_out += txn.timed_out


def owner_of(principal: "Principal | None") -> str | None:
    """Return the transaction owner's role: the client's, not that of a proxy in front of it."""
    return None if principal is None else principal.original or principal.role


def _id_of(key: str) -> TxnId:
    _, most, least = key.split("/")
    return TxnId(int(most, 16), int(least, 16))
