"""The rules of transactions: their effects are atomic, and the responses are correct.

Sources: document 1.8 of the protocol's facts; TransactionBufferImpl and PendingAckHandleImpl of Pulsar 4.2.
"""

from __future__ import annotations

from typing import Any, Final

from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.storage.ledger import NO_LIMIT
from pulsarbox.storage.record import Meta, Position
from pulsarbox.storage.recovery import StoredTopic
from pulsarbox.storage.transactions import TxnId, aborted_of
from tests.simulation.model.letters import TOPIC_SUFFIX
from tests.simulation.model.model import Model
from tests.simulation.model.pledges import ABORTED, COMMITTED, OPEN, TxnView
from tests.simulation.model.views import ConnView, ConsumerView, EntryView, MessageKey, Request, SubView, TopicView
from tests.simulation.rules.checker import Checker


class Unseen(Checker):
    """No client receives an entry of an open or aborted transaction, nor an entry after an open one."""

    rule = "unseen"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._turns = 0

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        pledges = self.model.pledges
        entry = consumer.sub.topic.entries.get(position) if consumer is not None and pledges.txns else None
        if consumer is None or entry is None:
            return
        state, limit = pledges.state(entry), pledges.limit(consumer.sub.topic)
        self.check(state == COMMITTED, "delivered, and", state, entry.txn, position, consumer.sub.name)
        self.check(position < limit, "delivered behind an open transaction:", position, limit, consumer.sub.name)

    def last_message_id(self, position: Position) -> None:
        """See Checker."""
        for topic in self.model.topics.values() if self.model.pledges.txns else ():
            if position in topic.entries:
                state = self.model.pledges.state(topic.entries[position])
                seen = state == COMMITTED and position < self.model.pledges.limit(topic)
                self.check(seen, "the last message id is that of", state, position)

    def read_back(self, topic: str, entries: dict[Position, list[MessageKey]]) -> None:
        """See Checker."""
        view = self.model.topic(topic)
        for position in entries if self.model.pledges.txns else ():
            if position in view.entries:
                state = self.model.pledges.state(view.entries[position])
                self.check(state == COMMITTED, "read, and", state, topic, position)

    def turn(self) -> None:
        """See Checker: readers stop at open transactions, and at nothing else."""
        self._turns += 1
        commits = self.model.box.broker.commits
        if self._turns % 10 or commits.in_flight is not None or commits.open.batch or not self.model.pledges.txns:
            return
        for topic in self.model.topics.values():
            core = self.model.box.topic(topic.name)
            if core is not None and not topic.name.endswith(TOPIC_SUFFIX):
                found, right = core.ledger.read_limit, self.model.pledges.limit(topic)
                same = found == right or min(found, right) > topic.order[-1]
                self.check(same, "readers of", topic.name, "stop at", found, "not", right)


class Pledged(Checker):
    """An entry acknowledged in an open transaction is dispatched to no consumer.

    A commit acknowledges all entries of the transaction, an abort none.
    """

    rule = "pledged"

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None or not self.model.pledges.txns or position not in consumer.sub.topic.entries:
            return
        sub, entry = consumer.sub, consumer.sub.topic.entries[position]
        bits = bits_of(body.ack_set) or entry.all_bits
        for txn in self.model.pledges.open:
            for pledge in txn.pledges:
                if pledge.sub is sub and pledge.answered and not sub.seeks:
                    named = dict(pledge.acks).get(position, 0)
                    if pledge.cumulative and position < pledge.acks[-1][0]:
                        named = entry.all_bits
                    self.check(not bits & named, "sent, and acknowledged in", txn.id, position, sub.name)

    def recovered(self, sub: SubView) -> None:
        """See Checker: the core's pending acknowledgements are those confirmed to its clients."""
        core = self.model.box.broker
        for txn in self.model.pledges.open:
            told = {at for p in txn.pledges if p.sub is sub and p.answered for at, _ in p.acks}
            found = core.transactions.open.get(txn.id)
            self.check(not told or found is not None, "an open transaction is forgotten:", txn.id)
            if found is not None and told:
                rows = [row for rows in found.acks.values() for row in rows]
                named = {Position(*each[:2]) for row in rows for each in row["acks"]}
                through = [Position(*row["through"][:2]) for row in rows if "through" in row]
                lost = [at for at in told if at not in named and not any(at <= each for each in through)]
                lost = [at for at in lost if at not in through and (at.ledger_id, at.entry_id - 1) not in through]
                self.check(not lost, "acknowledged in", txn.id, "and forgotten by a crash:", lost[:3], sub.name)


class Outcome(Checker):
    """A transaction ends once, on request or by its timeout; a reported outcome is final."""

    rule = "outcome"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._ended: dict[TxnId, str] = {}

    def written(self, row: Meta) -> None:
        """See Checker; the model has already applied the row."""
        if not row.key.startswith(b"txn/") or row.value is None:
            return
        _, most, least = row.key.decode().split("/")
        txn = self.model.pledges.of(TxnId(int(most, 16), int(least, 16)))
        before = self._ended.get(txn.id, txn.state)
        self.check(txn.state == before, "ended as", before, "and now as", txn.state, txn.id)
        if txn.state == OPEN or txn.id in self._ended:
            return
        self._ended[txn.id] = txn.state
        timed_out = txn.state == ABORTED and txn.ends_at <= self.model.latest_wall
        self.check(txn.state in txn.asked or timed_out, "ended by nobody:", txn.id, txn.state, txn.asked, txn.ends_at)

    def turn(self) -> None:
        """See Checker."""
        self.model.latest_wall = max(self.model.latest_wall, self.model.world.now.wall)

    def came(self, topic: TopicView, entry: EntryView) -> None:
        """See Checker."""
        if entry.txn is not None:
            state = self.model.pledges.state(entry)
            self.check(state == OPEN, "stored in a transaction that has ended:", entry.txn, entry.position)

    def begun(self, txn: TxnView) -> None:
        """See Checker."""
        row = self.model.box.broker.catalog.get(f"txn/{txn.id.most:016x}/{txn.id.least:016x}")
        self.check(row is not None, "begun, and not known:", txn.id)

    def ended_txn(self, conn: ConnView, request: Request, error: int | None) -> None:
        """See Checker."""
        txn = request.txn
        assert txn is not None
        if error is None:
            self.check(txn.state == request.outcome, "told", request.outcome, "and it is", txn.state, txn.id)
            return
        self.check(txn.state != OPEN or not txn.ends_at or self._may_end(txn), "refused, and it is open:", txn.id)
        names = ServerError.TransactionNotFound, ServerError.InvalidTxnStatus
        self.check(error in names, "refused with", error, txn.id)

    def _may_end(self, txn: TxnView) -> bool:
        """Return whether the transaction is being ended."""
        found = self.model.box.broker.transactions.open.get(txn.id)
        return found is not None and found.ending is not None

    def started(self) -> None:
        """See Checker: outcomes reported before a crash are recovered."""
        catalog = self.model.box.found.catalog
        for txn_id, state in self._ended.items():
            txn = self.model.pledges.txns[txn_id]
            row = catalog.get(f"txn/{txn.id.most:016x}/{txn.id.least:016x}")
            self.check(row is None or row["state"] == state, "ended as", state, "and found", row)

    def recovered_topic(self, topic: TopicView, ledgers: set[int]) -> None:
        """See Checker: compare the recovered open and aborted entries with the model's."""
        stored = self.model.box.found.topic(topic.name)
        if stored is not None and self.model.pledges.txns and not topic.name.endswith(TOPIC_SUFFIX):
            self._compare(topic, stored, ledgers)

    def finished(self) -> None:
        """See Checker."""
        left = [txn.id for txn in self.model.pledges.open if txn.ends_at]  # others never began
        self.check(not left, "never ended:", left)

    def _compare(self, topic: TopicView, stored: StoredTopic, ledgers: set[int]) -> None:
        for state, found in (
            (OPEN, [run for txn in stored.open for run in stored.open.runs(txn)]),
            (ABORTED, list(aborted_of(self.model.box.found.catalog, stored.topic_id))),
        ):
            positions = [Position(run.ledger_id, i) for run in found for i in range(run.first, run.last + 1)]
            right = {
                at
                for at, entry in topic.entries.items()
                if entry.txn is not None and self.model.pledges.state(entry) == state and at.ledger_id in ledgers
            }
            self.check(len(positions) == len(set(positions)), "a run overlaps another:", topic.name, state, found)
            self.check(set(positions) == right, "entries of", state, "differ:", topic.name, set(positions) ^ right)
        limit = min((at for at, e in topic.entries.items() if self.model.pledges.state(e) == OPEN), default=NO_LIMIT)
        self.check(stored.ledger.read_limit == limit, "recovered, readers stop at", stored.ledger.read_limit, limit)


TRANSACTION_CHECKERS: Final[tuple[type[Checker], ...]] = (Unseen, Pledged, Outcome)
