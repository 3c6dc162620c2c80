"""Operations and policies on topics and subscriptions that open transactions use.

Data of open transactions is not lost when messages expire or are skipped, cleared or evicted.
"""

from collections.abc import Callable
from typing import Any

import pytest

from pulsarbox.broker.backlog.message_expiry import RETRY_MS
from pulsarbox.broker.policies.kinds.backlog_quota import Follows
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.policies.kept import leave, set_policy
from tests.unit.broker.transactions_playbook import MINUTE, At, Txn, backlog, reader, topic_of

Act = Callable[[Box], None]
LASTING: dict[str, Any] = {"keepAliveIntervalSeconds": 1_000_000}
BIG = b"x" * 1000


def plain(client: Client, sequence_id: int, body: bytes = b"x") -> At:
    client.send(sequence_id, body)
    receipt = client.take("send_receipt").message_id
    return receipt.ledgerId, receipt.entryId


def subscribed(box: Box) -> None:
    """Create a durable subscription without consumers."""
    leave(reader(box))


def received(box: Box) -> list[At]:
    """Return the messages that a temporary consumer receives."""
    client = reader(box)
    found = client.received()
    leave(client)
    return found


def clearing(box: Box) -> Any:
    return topic_of(box).subscriptions["s"].clearing


def nothing(*_: Any) -> None:
    """Ignore the result."""


def failed(error: Exception) -> None:
    raise error


def clear(box: Box) -> None:
    clearing(box).clear(nothing, box.now)
    box.turn()


def skip(count: int) -> Act:
    def act(box: Box) -> None:
        clearing(box).skip(count, nothing, failed, box.now)
        box.turn()

    return act


def expire(box: Box) -> None:
    box.advance(2)
    clearing(box).expire_before(box.wall, nothing, failed, box.now)
    box.turn()


def expire_by_position(box: Box) -> None:
    clearing(box).expire_through(topic_of(box).ledger.last_confirmed, [], nothing, failed, box.now)
    box.turn()


def truncate(box: Box) -> None:
    topic_of(box).truncate(nothing, box.now)
    box.turn()


def grow_old(box: Box) -> None:
    set_policy(box, message_ttl_in_seconds=60)
    box.advance(61)


def too_old_for_the_quota(box: Box) -> None:
    limit = {"limitSize": -1, "limitTime": 60, "policy": str(Follows.EVICTION)}
    set_policy(box, backlog_quota_map={"message_age": limit})
    box.advance(61)


def too_large(box: Box) -> None:
    limit = {"limitSize": 10, "limitTime": -1, "policy": str(Follows.EVICTION)}
    set_policy(box, backlog_quota_map={"destination_storage": limit})
    box.turn()


ACTS = [
    clear, skip(2), skip(99), expire, expire_by_position, truncate, grow_old, too_old_for_the_quota, too_large,
]  # fmt: skip
NAMES = ["clear", "skip 2", "skip 99", "expire", "expire to", "truncate", "ttl", "quota by age", "quota by size"]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("act", ACTS, ids=NAMES)
def test_what_is_open_and_what_is_behind_it_stays(act: Act, *, restarted: bool) -> None:
    box = Box(**LASTING)
    subscribed(box)
    client = box.client()
    client.producer(1)
    plain(client, 0, BIG)
    txn = Txn(client, 20 * MINUTE)
    opened = txn.send(1)
    behind = plain(client, 2, BIG)
    act(box)
    assert topic_of(box).subscriptions["s"].cursor.mark_delete == (opened[0], opened[1] - 1)
    assert backlog(box) == (2, 2)
    if restarted:
        box = box.restart()
        client = box.client()
        assert received(box) == []
    set_policy(box, message_ttl_in_seconds=None, backlog_quota_map=None)
    txn.of(client).commit()
    assert received(box) == [opened, behind]


@pytest.mark.parametrize("end", [Txn.commit, Txn.abort])
@pytest.mark.parametrize("act", [grow_old, too_old_for_the_quota, too_large])
def test_a_policy_has_its_way_when_the_transaction_has_ended(act: Act, end: Callable[[Txn], None]) -> None:
    box = Box(**LASTING)
    subscribed(box)
    client = box.client()
    client.producer(1)
    txn = Txn(client, 20 * MINUTE)
    txn.post(0)
    plain(client, 1, BIG)
    act(box)
    assert backlog(box) == (2, 2)
    end(txn)
    box.advance(RETRY_MS / 1000 + 0.1)
    assert backlog(box) == (0, 0)
    assert received(box) == []


def test_an_eviction_that_stops_at_a_transaction_does_not_go_round() -> None:
    box = Box(**LASTING)
    subscribed(box)
    client = box.client()
    client.producer(1)
    txn = Txn(client, 20 * MINUTE)
    first = txn.send(0)
    too_large(box)
    sent = [plain(client, i, BIG) for i in range(1, 4)]
    quota = topic_of(box).backlog
    assert (quota.evictions, quota.evicting) == (0, False), "there is nothing that could go"
    set_policy(box, backlog_quota_map=None)
    txn.commit()
    assert received(box) == [first, *sent]


def test_old_messages_are_not_looked_for_behind_a_transaction_again_and_again() -> None:
    box = Box(**LASTING)
    subscribed(box)
    client = box.client()
    client.producer(1)
    txn = Txn(client, 20 * MINUTE)
    txn.send(0)
    plain(client, 1)
    grow_old(box)
    expiry = topic_of(box).expiry
    assert not expiry.under_way
    assert expiry.oldest is None
    assert expiry.expire_due(box.now) == 0, "with the end of the transaction it is looked again"


@pytest.mark.parametrize("end", [Txn.commit, Txn.abort])
@pytest.mark.parametrize("act", ACTS, ids=NAMES)
def test_other_claims_and_the_end_outlive_what_takes_a_claimed_message_away(
    act: Act, end: Callable[[Txn], None]
) -> None:
    box = Box(**LASTING)
    client = box.client()
    sent = client.publish(2)
    consumer = reader(box, subType=1)
    assert consumer.received() == sent
    txn = Txn(consumer, 20 * MINUTE)
    assert not txn.ack(sent[0]).HasField("error")
    client.producer(1)
    opened = txn.of(client).send(10)
    box.advance(1)
    act(box)
    set_policy(box, message_ttl_in_seconds=None, backlog_quota_map=None)
    last = plain(client, 11)
    assert consumer.received() == []
    end(txn)
    found = consumer.received()
    assert found == ([opened] if end is Txn.commit else []) + [last]
    consumer.ack(*found)
    assert backlog(box) == (0, 0) == backlog(box.restart())


def test_a_claim_behind_what_is_skipped_is_held_and_comes_back() -> None:
    box = Box()
    client = box.client()
    sent = client.publish(3)
    consumer = reader(box, subType=1)
    assert consumer.received() == sent
    txn = Txn(consumer)
    assert not txn.ack(sent[2]).HasField("error")
    skip(2)(box)
    assert backlog(box) == (1, 1)
    other = reader(box, consumer_id=2, subType=1)
    assert other.received() == []
    txn.abort()
    assert [*consumer.received(), *other.received()] == [sent[2]]


def test_of_what_is_skipped_the_entries_of_aborted_transactions_do_not_count() -> None:
    box = Box()
    subscribed(box)
    client = box.client()
    client.producer(1)
    plain(client, 0)
    gone = Txn(client)
    gone.send(1)
    gone.abort()
    plain(client, 2)
    kept = plain(client, 3)
    skip(2)(box)
    assert backlog(box) == (1, 1)
    assert received(box) == [kept]
