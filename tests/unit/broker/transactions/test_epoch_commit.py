"""Epoch commit publishes all staged data of an epoch, or none, exactly once."""

import pytest

from pulsarbox.errors import AuthorizationError, Conflict, InvalidTxnStatus, TransactionNotFound
from pulsarbox.storage.transactions import TxnId
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.roles import client_of, guarded_box
from tests.unit.broker.transactions_playbook import OTHER, Txn, reader


class Nobody:
    """A caller on a box without authentication."""

    principal = None


class Sink:
    """A sink, with two tasks."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.who = Nobody()
        self.tasks: list[Client] = []
        for _ in range(2):
            client = box.client()
            client.producer(1)
            client.producer(2, OTHER)
            self.tasks.append(client)
        self.sent = 0
        self.told: list[bool] = []

    def stage(self) -> list[TxnId]:
        """Stage an epoch in all tasks."""
        found = []
        for task in self.tasks:
            txn = Txn(task)
            for producer_id in (1, 2):
                self.sent += 1
                txn.send(self.sent, producer_id)
            found.append(TxnId(0, txn.bits["txnid_least_bits"]))
        return found

    def commit(self, epoch: int, txn_ids: list[TxnId]) -> None:
        """Request the commit of an epoch."""
        epochs = self.box.broker.epochs
        epochs.commit("s", epoch, txn_ids, self.who, lambda done, now: self.told.append(done), self.box.now)
        self.box.turn()


def counts(box: Box) -> tuple[int, int]:
    """Return the number of visible messages in each of the two topics."""
    found = []
    for topic in (TOPIC, OTHER):
        other = reader(box, "r", durable=False, topic=topic)
        found.append(len(other.received()))
        other.cnx.closed(box.now)
    return found[0], found[1]


def test_an_epoch_is_published_once() -> None:
    box = Box()
    sink = Sink(box)
    first = sink.stage()
    assert counts(box) == (0, 0)
    sink.commit(1, first)
    assert (sink.told, counts(box)) == ([True], (2, 2))
    again = sink.stage()  # the driver missed the response and runs the epoch again
    sink.commit(1, again)
    assert (sink.told, counts(box)) == ([True, False], (2, 2))
    assert not box.broker.transactions.open, "what was staged again is aborted"
    sink.commit(1, first)
    assert (sink.told, counts(box)) == ([True, False, False], (2, 2))
    sink.commit(2, sink.stage())
    assert (sink.told[-1], counts(box)) == (True, (4, 4))


def test_an_epoch_that_is_behind_is_told_so() -> None:
    sink = Sink(Box())
    sink.commit(5, sink.stage())
    late = sink.stage()
    with pytest.raises(Conflict, match="behind its last epoch, 5"):
        sink.commit(4, late)
    assert counts(sink.box) == (2, 2)


def test_nothing_is_published_where_a_transaction_is_gone() -> None:
    sink = Sink(Box())
    staged = sink.stage()
    with pytest.raises(TransactionNotFound):
        sink.commit(1, [*staged, TxnId(0, 4711)])
    assert counts(sink.box) == (0, 0)
    sink.commit(1, staged)
    assert counts(sink.box) == (2, 2)
    with pytest.raises(InvalidTxnStatus):
        sink.commit(2, staged)


@pytest.mark.parametrize("stored", [False, True])
def test_a_crash_leaves_all_or_nothing(stored: bool) -> None:
    box = Box()
    sink = Sink(box)
    staged = sink.stage()
    box.auto = False
    sink.commit(1, staged)
    assert sink.told == []
    if stored:
        box.commit()
    again = box.restart()
    row = again.broker.epochs.last("s")
    assert counts(again) == ((2, 2) if stored else (0, 0))
    assert (row is not None) == stored
    sink = Sink(again)
    sink.commit(1, sink.stage() if stored else staged)
    assert (sink.told, counts(again)) == ([not stored], (2, 2))


def test_two_who_ask_at_once_are_told_by_one_commit() -> None:
    box = Box()
    sink = Sink(box)
    first, second = sink.stage(), sink.stage()
    box.auto = False
    sink.commit(1, first)
    sink.commit(1, second)
    with pytest.raises(Conflict, match="is still being committed"):
        sink.commit(2, second)
    box.auto = True
    box.turn()
    assert (sink.told, counts(box)) == ([True, False], (2, 2))


def test_sinks_go_with_their_namespace() -> None:
    box = Box()
    box.broker.tenants.create_namespace("public/gone", None)
    for sink in ("public/gone/s", "public/default/s"):
        box.broker.epochs.commit(sink, 1, [], Nobody(), lambda done, now: None, box.now)
        box.turn()
    for step in box.broker.removal.of_namespace("public/gone", force=True):
        step(box.now)
    box.turn()
    assert box.broker.epochs.last("public/gone/s") is None
    assert box.broker.epochs.last("public/default/s") is not None


def test_what_nobody_claims_expires() -> None:
    box = Box()
    sink = Sink(box)
    sink.stage()
    for _ in range(4):
        box.advance(20)
    assert not box.broker.transactions.open
    assert counts(box) == (0, 0)


def test_a_sink_is_its_owners() -> None:
    box = guarded_box()
    epochs = box.broker.epochs
    mine, other, root = (client_of(box, role).cnx for role in ("producer", "consumer", "root"))
    epochs.commit("s", 1, [], mine, lambda done, now: None, box.now)
    box.turn()
    with pytest.raises(AuthorizationError):
        epochs.commit("s", 2, [], other, lambda done, now: None, box.now)
    with pytest.raises(AuthorizationError):
        epochs.forget("s", other)
    epochs.forget("s", root)
    box.turn()
    assert epochs.last("s") is None
