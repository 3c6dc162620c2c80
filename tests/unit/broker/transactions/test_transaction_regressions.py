"""Regression tests for defects found by the simulation of transactions."""

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, TxnAction
from tests.unit.broker.playbook import Box
from tests.unit.broker.transactions_playbook import Txn, reader, topic_of


@pytest.mark.parametrize("action", [TxnAction.COMMIT, TxnAction.ABORT])
def test_nobody_is_told_of_an_end_before_it_is_durable(action: int) -> None:
    box = Box()
    client, other = box.client(), box.client()
    client.producer(1)
    txn = Txn(client)
    txn.send(0)
    box.auto = False
    client.ask("endTxn", request_id=1, txn_action=action, **txn.bits)
    other.ask("endTxn", request_id=2, txn_action=action, **txn.bits)
    box.flush()
    assert not client.inbox and not other.inbox
    box.commit()
    assert (client.names(), other.names()) == (["endTxnResponse"], ["endTxnResponse"])


def test_who_asks_for_an_end_twice_is_answered_twice() -> None:
    box = Box()
    client = box.client()
    txn = Txn(client)
    box.auto = False
    client.ask("endTxn", request_id=1, txn_action=TxnAction.COMMIT, **txn.bits)
    client.ask("endTxn", request_id=2, txn_action=TxnAction.COMMIT, **txn.bits)
    box.commit()
    assert [client.take("endTxnResponse").request_id for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("sub_type", [CommandSubscribe.Shared, CommandSubscribe.Key_Shared])
def test_what_an_aborted_transaction_acknowledged_is_sent_again_though_its_first_read_fails(sub_type: int) -> None:
    box = Box()
    (at,) = box.client().publish(1)
    consumer = reader(box, subType=sub_type)
    assert consumer.received() == [at]
    txn = Txn(consumer)
    assert not txn.ack(at).HasField("error")
    topic_of(box).ledger.tail.clear()
    box.auto = False
    consumer.ask("endTxn", request_id=1, txn_action=TxnAction.ABORT, **txn.bits)
    box.commit()
    assert box.read(PersistenceError("the disk does not answer"))
    assert consumer.names() == ["endTxnResponse"]
    box.auto = True
    box.advance(2)
    assert consumer.received() == [at]


def test_an_open_transaction_is_a_reason_only_where_something_waits_for_it() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    txn = Txn(client)
    txn.send(0)
    late = reader(box, "late", initialPosition=CommandSubscribe.Latest)
    early = reader(box, "early")
    subscriptions = topic_of(box).subscriptions
    assert subscriptions["early"].blocked_reason().reason == "open-transaction"
    assert subscriptions["late"].blocked_reason().reason == "end-of-log"
    assert not late.inbox and not early.inbox


def test_a_compaction_does_not_speak_of_what_is_on_its_way_to_the_disk_before_an_open_transaction() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    client.send(0, partition_key="a")
    first = client.take("send_receipt").message_id
    txn = Txn(client)
    compaction = topic_of(box).compaction
    box.auto = False
    client.send(1, partition_key="b")
    txn.post(2)
    compaction.start(box.now)
    while box.read():  # read the messages to compact before the commit
        box.advance(0.1)
    for _ in range(50):
        if not (box.commit() or box.read()):
            box.chore()
        box.advance(0.1)
    assert compaction.view is not None
    assert compaction.view.horizon == (first.ledgerId, first.entryId)
    box.auto = True
    txn.abort()
    consumer = reader(box, "c", read_compacted=True)
    assert len(consumer.received()) == 2
