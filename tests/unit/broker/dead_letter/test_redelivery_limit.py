"""Dead letters moved by the box: the redelivery limit, and the effect of crashes and failed commits."""

from copy import deepcopy
from typing import Any

import pytest

from pulsarbox.broker.dead_letter import redelivery_limit
from pulsarbox.broker.dead_letter.message import Origin, make_letter
from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.errors import StoreFull
from pulsarbox.names import parse_topic
from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.metadata import encode_entry, key_values
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandSubscribe,
    MessageIdData,
    MessageMetadata,
    SingleMessageMetadata,
)
from tests.unit.broker.dead_letters_playbook import (
    BOTH,
    DLQ,
    EXCLUSIVE,
    KEY_SHARED,
    SHARED,
    At,
    backlog,
    bodies,
    die_of,
    give_back,
    join,
    letters,
    set_policy,
    subscription_of,
    topic_of,
)
from tests.unit.broker.playbook import TOPIC, Box, Client


@BOTH
def test_what_kills_its_consumers_becomes_a_dead_letter_after_the_count(sub_type: int) -> None:
    box = Box()
    poison, other = join(box, sub_type, 0), box.client()
    poison.cnx.closed(box.now)
    set_policy(box, 2)
    published_at = box.wall
    (first,) = other.publish(1)
    die_of(box, first, times=3, sub_type=sub_type)
    assert letters(box) == []
    last = join(box, sub_type)
    assert last.received() == []
    ((metadata, body),) = letters(box)
    assert body == b"0"
    assert key_values(metadata.properties) == {
        "REAL_TOPIC": TOPIC,
        "REAL_SUBSCRIPTION": "s",
        "ORIGIN_MESSAGE_ID": f"{first[0]}:{first[1]}:-1",
        "ORIGIN_MESSAGE_IDY_TIME": f"{first[0]}:{first[1]}:-1",
        "ORIGIN_PUBLISH_TIME": str(published_at),
        "RECONSUMETIMES": "3",
        "DEAD_LETTER_REDELIVERIES": "3",
        "DEAD_LETTER_REASON": "redelivered 3 times without being acknowledged, 2 allowed",
    }
    assert backlog(box) == 0
    assert subscription_of(box).cursor.mark_delete == first
    assert subscription_of(box).dead_letters.messages == 1


@BOTH
def test_it_moves_once_over_three_restarts(sub_type: int) -> None:
    box = Box()
    join(box, sub_type, 0).cnx.closed(box.now)
    set_policy(box, 3)
    sent = box.client().publish(3)
    for _ in range(3):
        die_of(box, sent[1], times=1, sub_type=sub_type)
        box = box.restart()
    die_of(box, sent[1], times=1, sub_type=sub_type)
    box = box.restart()
    client = join(box, sub_type)
    assert client.received() == []
    assert sorted(bodies(box)) == [b"0", b"1", b"2"]
    for _ in range(2):
        box = box.restart()
        assert join(box, sub_type).received() == []
        assert sorted(bodies(box)) == [b"0", b"1", b"2"]
        assert backlog(box) == 0


def _reasons(box: Box) -> set[str]:
    """Return the body of each dead letter."""
    found = set()
    for metadata, body in letters(box):
        for single, _ in iterate_batch(body, metadata.num_messages_in_batch):
            found.add(key_values(single.properties)["DEAD_LETTER_REASON"])
    return found


GIVEN_BACK = "redelivered once without being acknowledged, 0 allowed"


@pytest.mark.parametrize(
    ("keeps", "acked_before", "unacked", "moved", "more"),
    [
        (True, False, None, 4, "; all 4 messages of its batch were moved: no consumer has acknowledged by batch index"
         ", so some may have been processed"),
        (True, True, None, 4, "; no message of its batch of 4 was acknowledged"),
        (True, False, 0b0110, 2, ""),
        (False, False, 0b0110, 4, "; all 4 messages of its batch were moved: the broker does not track "
         "acknowledgements by batch index"),
    ],
)  # fmt: skip
def test_the_reason_says_whether_acknowledgements_within_a_batch_are_known(
    keeps: bool, acked_before: bool, unacked: int | None, moved: int, more: str
) -> None:
    box = Box(acknowledgmentAtBatchIndexLevelEnabled=keeps)
    client = join(box)
    producer = box.client()
    producer.producer(1)
    if acked_before:
        producer.send(0, encode_batch(_singles(2)), batch=2, highest=1)
        (at,) = client.received()
        client.ack(MessageIdData(ledgerId=at[0], entryId=at[1], ack_set=[0b01], batch_size=2))
        client.ack(at)
    set_policy(box, 0)
    producer.send(2, encode_batch(_singles(4)), batch=4, highest=5)
    (at,) = client.received()
    if unacked is not None:
        client.ack(MessageIdData(ledgerId=at[0], entryId=at[1], ack_set=[unacked], batch_size=4))
    give_back(client, at)
    box.turn()
    assert _reasons(box) == {GIVEN_BACK + more}
    assert subscription_of(box).dead_letters.messages == moved


def test_the_reason_of_a_batch_that_cannot_be_opened() -> None:
    body = encode_batch(_singles(4))
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=4)
    metadata.encryption_keys.add(key="k", value=b"v")
    origin = Origin(TOPIC, "s", "1:2:-1", 1, 0, messages=4, acknowledged=3)
    letter = make_letter(encode_entry(metadata, body), 0b0001, origin, 5, 1000)
    assert letter.body == body
    assert key_values(letter.metadata.properties)["DEAD_LETTER_REASON"] == (
        f"{GIVEN_BACK}; all 4 messages of its batch were moved, including 3 acknowledged ones: the broker cannot open "
        "the batch"
    )


def _singles(count: int) -> list[tuple[SingleMessageMetadata, bytes]]:
    return [(SingleMessageMetadata(payload_size=1, sequence_id=number), b"x") for number in range(count)]


@BOTH
def test_counts_of_what_is_left_of_a_batch_outlive_connections_and_restarts(sub_type: int) -> None:
    box = Box(acknowledgmentAtBatchIndexLevelEnabled=True)
    first = join(box, sub_type)
    producer = box.client()
    producer.producer(1)
    producer.send(0, b"batch", batch=4, highest=3)
    (at,) = first.received()
    first.ack(MessageIdData(ledgerId=at[0], entryId=at[1], ack_set=[0b0110], batch_size=4))
    first.cnx.closed(box.now)
    for count in (1, 2, 3):
        box.advance(0.1)
        box = box.restart()
        client = join(box, sub_type)
        message = client.take("message")
        assert (message.redelivery_count, list(message.ack_set)) == (count, [0b0110])
        client.cnx.closed(box.now)


def test_nothing_moves_unless_that_is_set() -> None:
    box = Box()
    (at,) = box.client().publish(1)
    join(box, permits=0)
    die_of(box, at, times=20)
    assert join(box).received() == [at]
    assert not box.broker.topics.exists(parse_topic(DLQ))


def test_no_redelivery_allowed_is_one_delivery() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    assert client.received() == [at]
    give_back(client, at)
    assert client.received() == []
    assert bodies(box) == [b"0"]


@BOTH
def test_others_go_on_beside_dead_letters(sub_type: int) -> None:
    box = Box()
    client = join(box, sub_type)
    set_policy(box, 1)
    sent = box.client().publish(10)
    assert sorted(client.received()) == sent
    for _ in range(2):
        give_back(client, sent[2], sent[7])
    assert client.received() == [sent[2], sent[7]]
    client.ack(*[at for at in sent if at not in (sent[2], sent[7])])
    assert sorted(bodies(box)) == [b"2", b"7"]
    assert backlog(box) == 0
    assert subscription_of(box).cursor.mark_delete == sent[-1]


def test_a_dead_letter_is_nobodys_turn() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    first, second = join(box), join(box)
    set_policy(box, 0)
    (poison,) = box.client().publish(1)
    assert first.received() == [poison]
    give_back(first, poison)
    sent = box.client().publish(2)
    assert (second.received(), first.received()) == (sent[:1], sent[1:])
    assert bodies(box) == [b"0"]


def test_the_ledger_of_a_dead_letter_goes_also_where_one_before_it_stays() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=1)
    client = join(box)
    set_policy(box, 0)
    sent = box.client().publish(3)
    assert client.received() == sent
    give_back(client, sent[1])
    box.turn()
    assert [*topic_of(box).ledger.ledgers] == [sent[0][0], sent[2][0]]


def test_a_policy_that_is_set_later_counts_what_was_before() -> None:
    box = Box()
    client = join(box)
    (at,) = box.client().publish(1)
    for _ in range(5):
        give_back(client, at)
    client.received()
    set_policy(box, 3)
    give_back(client, at)
    assert client.received() == []
    assert bodies(box) == [b"0"]


def test_a_policy_that_is_taken_away_stays_away() -> None:
    box = Box()
    join(box, permits=0)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    subscription_of(box).dead_letters.set_policy(None, box.now)
    box.turn()
    box = box.restart()
    assert subscription_of(box).dead_letters.policy is None
    die_of(box, at, times=3)
    assert join(box).received() == [at]


# Crashes and failed commits


def moving(*, auto: bool = False) -> tuple[Box, Client, At]:
    """Build a box in which a message has just become a dead letter, with nothing committed yet."""
    box = Box()
    client = join(box)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    assert client.received() == [at]
    box.auto = auto
    give_back(client, at)
    return box, client, at


def test_before_the_commit_it_is_where_it_was() -> None:
    box, client, at = moving()
    assert subscription_of(box).dead_letters.moving
    assert client.inbox == []
    box = box.restart()
    assert letters(box) == []
    assert join(box).received() == [at]  # the redelivery count was not durable either
    box, _, at = moving()
    assert box.commit()
    box = box.restart()  # after the commit, and before the old box's cursor advanced past the message
    assert bodies(box) == [b"0"]
    assert join(box).received() == []
    assert backlog(box) == 0
    assert subscription_of(box).cursor.mark_delete == at


def test_a_commit_that_fails_is_tried_again() -> None:
    box, client, _ = moving()
    box.commit(OSError("no"))
    box.auto = True
    box.advance(1)
    assert client.inbox == []
    assert bodies(box) == [b"0"]
    assert bodies(box.restart()) == [b"0"]
    assert backlog(box) == 0


def test_with_a_full_disk_it_is_delivered_as_before() -> None:
    box, client, at = moving()
    box.commit(StoreFull("the disk is full"))
    box.auto = True
    box.turn()
    assert client.received() == [at]
    assert "full" in subscription_of(box).dead_letters.refused
    box.advance(3)  # the topic accepts messages again
    give_back(client, at)
    assert client.received() == []
    assert bodies(box) == [b"0"]
    assert not subscription_of(box).dead_letters.refused


def test_a_commit_that_fails_while_consumers_change_loses_nothing() -> None:
    for late in (False, True):
        box, client, _ = moving()
        client.cnx.closed(box.now)
        if late:  # the source has read past the entry, whose move was pending
            other = join_at_once(box)
            assert other.inbox == []
        box.commit(OSError("no"))
        box.auto = True
        box.advance(1)
        other = join(box)
        box.turn()
        assert list(other.inbox) == []
        assert bodies(box) == [b"0"], late
        assert backlog(box) == 0


def join_at_once(box: Box) -> Client:
    """Join with a consumer that has permits but does not wait for commits."""
    client = box.client()
    subscribe = {"subType": SHARED, "initialPosition": CommandSubscribe.Earliest}
    client.ask("subscribe", topic=TOPIC, subscription="s", consumer_id=1, request_id=1, **subscribe)
    client.flow(1000)
    client.inbox.clear()
    return client


def test_nobody_else_gets_it_while_it_moves() -> None:
    box, client, _ = moving()
    client.cnx.closed(box.now)
    exclusive = box.client()
    reply = exclusive.request("subscribe", topic=TOPIC, subscription="s", consumer_id=1, subType=EXCLUSIVE)
    assert "try again" in reply.message
    assert not topic_of(box).is_settled()
    assert join_at_once(box).inbox == []
    box.auto = True
    box.turn()
    assert bodies(box) == [b"0"]


def test_a_checkpoint_made_with_the_move_knows_of_it() -> None:
    box, _, _ = moving()
    box.broker.commits.ask_checkpoint()
    assert box.commit()
    assert not box.chore(), "a checkpoint that does not know of the acknowledgement would cover the record of it"
    crashed = Box(deepcopy(box.disk))
    assert (bodies(crashed), backlog(crashed)) == ([b"0"], 0)
    assert box.commit()
    assert box.chore()
    again = box.restart()
    assert (bodies(again), backlog(again)) == ([b"0"], 0)


def test_a_checkpoint_does_not_wait_for_a_subscription_that_is_gone() -> None:
    box, _, _ = moving()
    box.broker.commits.ask_checkpoint()
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    topic_of(box).delete(box.now)
    box.engine.commit(batch)
    box.broker.committed(batch, box.now)
    while box.commit():
        pass
    assert box.chore()


def test_a_seek_while_it_moves_wins() -> None:
    box, _, at = moving()
    done: list[Any] = []
    subscription_of(box).seek(topic_of(box).ledger.first_position(), [], done.append, done.append, box.now)
    box.auto = True
    box.turn()
    assert done
    again = Box(deepcopy(box.disk))
    for each in (box, again):
        assert join(each).received() == [at]
        assert bodies(each) == [b"0"]


def test_a_seek_and_then_a_move_in_one_batch_stay_in_this_order() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    first, second = box.client().publish(2)
    client.ack(first)
    client.received()
    box.auto = False
    done: list[Any] = []
    subscription_of(box).seek(topic_of(box).ledger.first_position(), [], done.append, done.append, box.now)
    other = join_at_once(box)
    box.flush()
    subscription_of(box).dead_letters.set_policy(None, box.now)
    give_back(other, second)
    subscription_of(box).cursor.redelivered(second)
    set_policy(box, 0)
    give_back(other, second)
    assert subscription_of(box).dead_letters.moving
    assert box.commit()
    box = box.restart()
    assert join(box).received() == [first]
    assert bodies(box) == [b"1"]


def test_many_at_once_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redelivery_limit, "MOVING_MAX", 5)
    for sub_type in (SHARED, KEY_SHARED):
        box = Box(dispatcherMaxRoundRobinBatchSize=2, dispatcherMaxReadBatchSize=2)
        client = join(box, sub_type)
        set_policy(box, 0)
        sent = box.client().publish(50)
        assert sorted(client.received()) == sent
        box.auto = False
        give_back(client, *sent)
        assert subscription_of(box).blocked_reason().reason == Reason.DEAD_LETTERS
        assert len(subscription_of(box).dead_letters._moving) <= 7
        box.auto = True
        box.turn()
        assert sorted(bodies(box)) == sorted(b"%d" % i for i in range(50))
        assert (client.inbox, backlog(box)) == ([], 0)
        assert subscription_of(box).blocked_reason().reason == Reason.END_OF_LOG
