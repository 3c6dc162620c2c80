"""Acknowledgement in transactions: pending state, conflicts, and the effect of commit and abort."""

from typing import Any

import pytest

from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, TxnAction
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.transactions_playbook import (
    CONFLICT,
    MINUTE,
    NOT_ALLOWED,
    NOT_FOUND,
    OTHER,
    Txn,
    backlog,
    reader,
    some_of,
    topic_of,
)

SHARED, EXCLUSIVE, KEY_SHARED = CommandSubscribe.Shared, CommandSubscribe.Exclusive, CommandSubscribe.Key_Shared
TYPES = [EXCLUSIVE, SHARED, KEY_SHARED]

At = tuple[int, int]


def stage(sub_type: int = SHARED, count: int = 3, **settings: Any) -> tuple[Box, Client, list[At]]:
    """Return a box with messages, and a consumer that has received all of them."""
    box = Box(**settings)
    sent = box.client().publish(count)
    consumer = reader(box, subType=sub_type)
    assert consumer.received() == sent
    return box, consumer, sent


def batches(sub_type: int = SHARED, size: int = 4) -> tuple[Box, Client, At]:
    """Return a box with a batch, and a consumer that has received it."""
    box = Box()
    client = box.client()
    client.producer(1)
    client.send(0, batch=size)
    at = client.take("send_receipt").message_id
    consumer = reader(box, subType=sub_type)
    assert consumer.received() == [(at.ledgerId, at.entryId)]
    return box, consumer, (at.ledgerId, at.entryId)


def ok(answer: Any) -> None:
    assert answer is not None and not answer.HasField("error"), answer


def redelivered(client: Client) -> list[tuple[At, int, list[int]]]:
    """Return position, redelivery count and remaining batch indexes of each received message."""
    found = []
    while client.inbox:
        message = client.take("message")
        found.append(
            ((message.message_id.ledgerId, message.message_id.entryId), message.redelivery_count, list(message.ack_set))
        )
    return found


@pytest.mark.parametrize("sub_type", TYPES)
def test_a_commit_acknowledges(sub_type: int) -> None:
    box, consumer, sent = stage(sub_type)
    txn = Txn(consumer)
    ok(txn.ack(sent[0], sent[2]))
    assert backlog(box) == (3, 3), "nothing is acknowledged yet"
    txn.commit()
    assert backlog(box) == (1, 1)
    assert backlog(box.restart()) == (1, 1)
    assert topic_of(box).subscriptions["s"].cursor.claims is None


@pytest.mark.parametrize("sub_type", TYPES)
def test_an_abort_has_it_sent_again(sub_type: int) -> None:
    box, consumer, sent = stage(sub_type)
    txn = Txn(consumer)
    ok(txn.ack(sent[0], sent[1]))
    consumer.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert consumer.received() == [sent[2]], "what a transaction has acknowledged is held back"
    txn.abort()
    again = consumer.received()
    assert again == (sent if sub_type == EXCLUSIVE else sent[:2])
    assert backlog(box) == (3, 3)
    ok(consumer.ack(*sent))
    assert backlog(box) == (0, 0)


def test_an_abort_counts_as_a_try() -> None:
    _, consumer, sent = stage()
    txn = Txn(consumer)
    ok(txn.ack(sent[1]))
    txn.abort()
    assert redelivered(consumer) == [(sent[1], 1, [])]


@pytest.mark.parametrize("sub_type", TYPES)
def test_another_consumer_does_not_get_it_until_it_is_aborted(sub_type: int) -> None:
    box, consumer, sent = stage(sub_type)
    txn = Txn(consumer, 10 * MINUTE)
    ok(txn.ack(sent[0]))
    consumer.cnx.closed(box.now)
    box.turn()
    other = reader(box, subType=sub_type)
    assert other.received() == sent[1:]
    txn.of(other).abort()
    assert set(other.received()) == (set(sent) if sub_type == EXCLUSIVE else {sent[0]})


def test_what_waits_to_be_sent_again_is_sent_once() -> None:
    box = Box()
    sent = box.client().publish(3)
    consumer = reader(box, permits=3, subType=SHARED)
    assert consumer.received() == sent
    consumer.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    txn = Txn(consumer)
    ok(txn.ack(sent[1]))
    txn.abort()
    consumer.flow(1000)
    assert consumer.received() == sent


def test_what_a_new_consumer_is_still_to_be_sent_is_sent_once() -> None:
    box, consumer, sent = stage()
    txn = Txn(consumer, 10 * MINUTE)
    ok(txn.ack(sent[1]))
    consumer.cnx.closed(box.now)
    other = reader(box, subType=SHARED, permits=0)
    txn.of(box.client()).abort()
    other.flow(1000)
    assert other.received() == sent


@pytest.mark.parametrize("action", [TxnAction.COMMIT, TxnAction.ABORT])
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("sub_type", TYPES)
def test_it_is_held_back_after_a_crash(sub_type: int, checkpoint: bool, action: int) -> None:
    box, consumer, sent = stage(sub_type)
    txn = Txn(consumer, 10 * MINUTE)
    ok(txn.ack(sent[0]))
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
    ok(txn.ack(sent[1]))
    again = box.restart()
    consumer = reader(again, subType=sub_type)
    assert consumer.received() == sent[2:]
    assert backlog(again) == (3, 3)
    ok(txn.of(consumer).end(action))
    if action == TxnAction.COMMIT:
        assert consumer.received() == []
        assert backlog(again) == (1, 1) == backlog(again.restart())
    else:
        assert set(consumer.received()) >= set(sent[:2])
        assert backlog(again) == (3, 3) == backlog(again.restart())


def test_a_commit_reaches_topics_that_nobody_has_used_since_a_crash() -> None:
    box, consumer, sent = stage()
    there = box.client().publish(2, OTHER)
    other = reader(box, topic=OTHER)
    assert other.received() == there
    txn = Txn(consumer, 10 * MINUTE)
    ok(txn.ack(sent[0]))
    ok(txn.of(other).ack(there[0]))
    again = box.restart()
    txn.of(again.client()).commit()
    assert backlog(again) == (2, 2)
    assert backlog(again, OTHER) == (1, 1)
    third = again.restart()
    assert (backlog(third), backlog(third, OTHER)) == ((2, 2), (1, 1))


# Conflicts


def test_nobody_else_can_acknowledge_it() -> None:
    box, consumer, sent = stage()
    txn, other = Txn(consumer), Txn(consumer)
    ok(txn.ack(sent[0]))
    assert other.ack(sent[0]).error == CONFLICT
    assert other.ack(sent[1], sent[0]).error == CONFLICT
    ok(other.ack(sent[1]))  # the rejected request claimed nothing
    ok(txn.ack(sent[0]))  # a repeated request, as after a lost response
    txn.commit()
    assert other.ack(sent[0]).error == CONFLICT
    other.abort()
    third = Txn(consumer)
    ok(third.ack(sent[1]))
    third.commit()
    assert backlog(box) == (1, 1)


def test_what_is_acknowledged_conflicts() -> None:
    _, consumer, sent = stage()
    ok(consumer.ack(sent[1]))
    txn = Txn(consumer)
    assert txn.ack(sent[1]).error == CONFLICT
    assert txn.ack((sent[0][0], 99)).error == CONFLICT


def test_an_ordinary_acknowledgement_counts_at_once() -> None:
    box, consumer, sent = stage()
    txn = Txn(consumer)
    ok(txn.ack(sent[0]))
    ok(consumer.ack(sent[0]))
    assert backlog(box) == (2, 2)
    txn.abort()
    assert consumer.received() == []
    assert backlog(box) == (2, 2)


def test_only_an_open_transaction_acknowledges() -> None:
    box, consumer, sent = stage()
    txn = Txn(consumer)
    txn.commit()
    assert txn.ack(sent[0]).error == NOT_FOUND
    txn.bits = txn.bits | {"txnid_least_bits": 4711}
    assert txn.ack(sent[0]).error == NOT_FOUND
    assert backlog(box) == (3, 3)


def test_a_reader_cannot() -> None:
    box = Box()
    sent = box.client().publish(1)
    consumer = reader(box, durable=False)
    assert Txn(consumer).ack(sent[0]).error == NOT_ALLOWED


# Cumulative acknowledgement


def test_all_up_to_a_place() -> None:
    box, consumer, sent = stage(EXCLUSIVE, 5)
    txn = Txn(consumer)
    ok(txn.ack_through(sent[1]))
    ok(txn.ack_through(sent[3]))
    consumer.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert consumer.received() == [sent[4]]
    again = box.restart()
    consumer = reader(again)
    assert consumer.received() == [sent[4]]
    txn.of(consumer).commit()
    assert backlog(again) == (1, 1)
    assert backlog(again.restart()) == (1, 1)


def test_all_up_to_a_place_comes_again_after_an_abort() -> None:
    box, consumer, sent = stage(EXCLUSIVE, 5)
    txn = Txn(consumer)
    ok(txn.ack_through(sent[3]))
    txn.abort()
    assert consumer.received() == sent
    assert backlog(box) == (5, 5)


def test_two_cannot_acknowledge_all_up_to_a_place() -> None:
    box, consumer, sent = stage(EXCLUSIVE, 5)
    txn, other = Txn(consumer), Txn(consumer)
    ok(txn.ack_through(sent[1]))
    assert other.ack_through(sent[3]).error == CONFLICT
    assert other.ack(sent[0]).error == CONFLICT
    ok(other.ack(sent[4]))
    assert txn.ack_through(sent[3]).error == CONFLICT, "another has acknowledged something"
    other.abort()
    consumer.received()
    ok(txn.ack_through(sent[3]))
    txn.commit()
    third = Txn(consumer)
    assert third.ack_through(sent[3]).error == CONFLICT, "it is acknowledged"
    assert backlog(box) == (1, 1)


def test_not_where_others_hold_what_lies_before() -> None:
    """As outside of transactions, the broker confirms the request without effect."""
    box, consumer, sent = stage(SHARED)
    txn = Txn(consumer)
    before = backlog(box)
    ok(txn.ack_through(sent[1]))
    txn.commit()
    assert backlog(box) == before


def test_up_to_the_middle_of_a_batch() -> None:
    box, consumer, at = batches(EXCLUSIVE)
    txn = Txn(consumer)
    ok(txn.ack_through(some_of(at, 4, 0, 1)))
    assert backlog(box) == (4, 1)
    txn.commit()
    assert backlog(box) == (2, 1)
    assert backlog(box.restart()) == (2, 1)


# Batches


def test_messages_of_a_batch() -> None:
    box, consumer, at = batches()
    first, second = Txn(consumer), Txn(consumer)
    ok(first.ack(some_of(at, 4, 0)))
    ok(second.ack(some_of(at, 4, 1, 2)))
    assert second.ack(some_of(at, 4, 0)).error == CONFLICT
    assert first.ack(at).error == CONFLICT, "the rest of it is not its own"
    consumer.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert redelivered(consumer) == [(at, 1, [0b1000])]
    first.commit()
    assert backlog(box) == (3, 1)
    second.abort()
    assert redelivered(consumer) == [(at, 2, [0b1110])]
    ok(consumer.ack(at))
    assert backlog(box) == (0, 0) == backlog(box.restart())


def test_messages_of_a_batch_that_are_acknowledged_conflict() -> None:
    _, consumer, at = batches()
    ok(consumer.ack(some_of(at, 4, 0, 1)))
    txn = Txn(consumer)
    assert txn.ack(some_of(at, 4, 0)).error == CONFLICT
    assert txn.ack(some_of(at, 4, 0, 1)).error == CONFLICT
    ok(txn.ack(some_of(at, 4, 1, 2)))


def test_a_batch_that_two_transactions_have_acknowledged_between_them_is_held_back() -> None:
    box, consumer, at = batches()
    first, second = Txn(consumer, 10 * MINUTE), Txn(consumer, 10 * MINUTE)
    ok(first.ack(some_of(at, 4, 0, 3)))
    ok(second.ack(some_of(at, 4, 1, 2)))
    consumer.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert consumer.received() == []
    again = box.restart()
    consumer = reader(again, subType=SHARED)
    assert consumer.received() == []
    first.of(consumer).abort()
    assert [each[::2] for each in redelivered(consumer)] == [(at, [0b1001])]
    second.of(consumer).commit()
    assert backlog(again) == (2, 1)
    ok(consumer.ack(at))
    assert backlog(again) == (0, 0) == backlog(again.restart())


def test_the_last_commit_of_a_batch_acknowledges_it() -> None:
    box, consumer, at = batches()
    first, second = Txn(consumer), Txn(consumer)
    ok(first.ack(some_of(at, 4, 0, 1)))
    ok(second.ack(some_of(at, 4, 2, 3)))
    second.commit()
    assert backlog(box) == (2, 1)
    first.commit()
    assert backlog(box) == (0, 0)


# Miscellaneous


def test_what_it_held_is_trimmed_with_the_commit() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=2)
    consumer = reader(box, subType=SHARED)
    sent = box.client().publish(5)
    assert consumer.received() == sent
    txn = Txn(consumer)
    ok(txn.ack(*sent[:4]))
    ledgers = topic_of(box).ledger.ledgers
    assert sent[0][0] in ledgers
    txn.commit()
    assert sent[0][0] not in ledgers and sent[2][0] not in ledgers


def test_a_subscription_may_be_deleted_meanwhile() -> None:
    box, consumer, sent = stage()
    txn = Txn(consumer)
    ok(txn.ack(sent[0]))
    consumer.request("unsubscribe", consumer_id=1)
    txn.commit()
    assert "s" not in topic_of(box).subscriptions
    assert reader(box).received() == sent
    assert not list(box.broker.catalog.items("pending/"))


def test_a_backlog_may_be_cleared_meanwhile() -> None:
    box, consumer, sent = stage()
    txn = Txn(consumer)
    ok(txn.ack(sent[1]))
    consumer.cnx.closed(box.now)
    topic_of(box).subscriptions["s"].clearing.clear(lambda now: None, box.now)
    box.turn()
    txn.of(box.client()).commit()
    assert backlog(box) == (0, 0) == backlog(box.restart())


def test_consume_transform_produce() -> None:
    box, consumer, sent = stage()
    consumer.producer(1, OTHER)
    for action in (TxnAction.ABORT, TxnAction.COMMIT):
        txn = Txn(consumer)
        txn.send(action)
        ok(txn.ack(sent[0]))
        ok(txn.end(action))
        consumer.received()
    out = reader(box, topic=OTHER)
    assert len(out.received()) == 1
    assert backlog(box) == (2, 2)
