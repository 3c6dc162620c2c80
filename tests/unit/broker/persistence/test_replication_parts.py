"""Parts of the broker that write entries without a producer, with too few copies: nothing is lost, nothing doubled."""

from typing import Any

import pytest

from pulsarbox.errors import StoreFull
from pulsarbox.protocol.PulsarApi_pb2 import TxnAction
from pulsarbox.storage.catalog import PACKAGE_DATA
from tests.unit.broker.compaction.compacting import Sender, compact, compaction_of, settle
from tests.unit.broker.dead_letters_playbook import DLQ, give_back, join, set_policy, subscription_of
from tests.unit.broker.packages.storing import NAME, Storing, content, store
from tests.unit.broker.persistence.ensemble_box import EnsembleBox
from tests.unit.broker.playbook import TOPIC
from tests.unit.broker.transactions_playbook import Txn, backlog, topic_of

TWO_COPIES: dict[str, Any] = {
    "managedLedgerDefaultEnsembleSize": 2,
    "managedLedgerDefaultWriteQuorum": 2,
    "managedLedgerDefaultAckQuorum": 2,
}


# Dead letters


def letters(box: EnsembleBox) -> int:
    return topic_of(box, DLQ).ledger.confirmed_entries


def dying(dead_letter_quorum: int) -> EnsembleBox:
    """A box in which a message has just become a dead letter, with nothing committed yet."""
    box = EnsembleBox(2)
    box.persist(DLQ, 2, 2, dead_letter_quorum)
    client = join(box)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    assert client.received() == [at]
    box.pause()
    give_back(client, at)
    return box


def test_a_move_is_complete_when_the_dead_letter_topic_has_its_copies() -> None:
    box = dying(2)
    batch = box.take()
    assert (batch.ack_quorum_min, batch.ack_quorum) == (1, 2)  # the acknowledgement, and the dead letter
    box.copied(batch, 1)
    assert (letters(box), backlog(box)) == (0, (1, 1))
    box.landed(batch)
    assert (letters(box), backlog(box)) == (1, (0, 0))


def test_a_move_with_too_few_copies_stays_whole() -> None:
    box = dying(2)
    box.fell_short(box.take(), 1)
    assert (letters(box), backlog(box)) == (1, (0, 0))
    again = box.restart()
    assert topic_of(again, DLQ).ledger.confirmed_entries == 1
    assert backlog(again) == (0, 0)


def test_a_message_stays_while_the_dead_letter_topic_cannot_have_its_copies() -> None:
    box = EnsembleBox(2)
    box.persist(DLQ, 2, 2, 2)
    client = join(box)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    assert client.received() == [at]
    box.bookies.writable = 1
    give_back(client, at)
    assert "NotEnoughBookies" in subscription_of(box).dead_letters.refused
    assert client.received() == [at]
    box.bookies.writable = 2
    box.advance(3)
    give_back(client, at)
    assert (letters(box), client.received()) == (1, [])


# Transactions


def test_the_end_of_a_transaction_waits_for_the_copies_of_its_messages() -> None:
    box = EnsembleBox(2)
    box.persist(TOPIC, 2, 2, 2)
    consumer = join(box)
    client = box.client()
    client.producer()
    txn = Txn(client)
    box.pause()
    txn.post(0)
    first = box.take()
    assert txn.end(TxnAction.COMMIT) is None
    box.copied(first, 1)
    box.landed(first)
    assert client.names() == ["send_receipt"]
    box.landed(box.take())
    assert client.names() == ["endTxnResponse"]
    assert len(consumer.received()) == 1


def test_a_message_of_a_transaction_with_too_few_copies_is_in_it() -> None:
    box = EnsembleBox(2)
    box.persist(TOPIC, 2, 2, 2)
    consumer = join(box)
    client = box.client()
    client.producer()
    client.producer(2, "persistent://public/default/other")
    txn = Txn(client)
    box.pause()
    txn.post(0)
    client.send(0, producer_id=2)
    box.fell_short(box.take(), 1)
    box.auto = True
    box.turn()
    client.inbox.clear()
    assert consumer.received() == []
    txn.abort()
    assert consumer.received() == []
    assert backlog(box) == (0, 0)


# Compaction


def test_a_compaction_asks_for_the_copies_of_its_topic_and_fails_without_them() -> None:
    box = EnsembleBox(2, managedLedgerMaxEntriesPerLedger=4, defaultRetentionTimeInMinutes=-1)
    box.persist(TOPIC, 2, 2, 2)
    sender = Sender(box)
    for _ in range(6):
        sender.send("k", b"v")
    box.pause()
    compaction_of(box).start(box.now)
    while not box.broker.commits.open.copied:
        if not (box.commit() or box.read()):
            box.advance(0.001)
    batch = box.take()
    assert batch.ack_quorum == 2
    box.fell_short(batch, 1)
    record = box.broker.compactions.record(TOPIC)
    assert "could not be stored in enough data directories" in record.error
    box.auto = True
    settle(box)
    box.bookies.writable = 1
    compaction_of(box).start(box.now)
    box.turn()
    settle(box)
    assert "NotEnoughBookies" in record.error
    assert compaction_of(box).view is None
    box.bookies.writable = 2
    compact(box)
    assert compaction_of(box).view is not None


# Packages


def test_a_package_has_the_copies_of_the_box_or_leaves_nothing() -> None:
    box = EnsembleBox(2, **TWO_COPIES)
    box.pause()
    storing = Storing(box)
    batch = box.take()
    assert (batch.write_quorum, batch.ack_quorum) == (2, 2)
    box.bookies.writable = 1
    box.fell_short(batch, 1)
    assert storing.error is not None
    box.auto = True
    box.turn()
    assert not list(box.broker.catalog.keys(PACKAGE_DATA))
    with pytest.raises(StoreFull, match="NotEnoughBookies"):
        Storing(box, NAME._replace(name="b"))
    box.bookies.writable = 2
    store(box)
    assert content(box.restart()) == content(box)
