"""Acknowledgement without a consumer (``broker.subscription.skip_and_clear``) at exact message positions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.subscription import skip_and_clear
from pulsarbox.broker.subscription.skip_and_clear import UnackedWalk
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PreconditionFailed
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Position
from tests.unit.broker.playbook import TOPIC, Box, Client

SHARED = CommandSubscribe.Shared
EVERY_TYPE = pytest.mark.parametrize("sub_type", CommandSubscribe.SubType.values())


def subscription(box: Box, name: str = "s") -> Subscription:
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert isinstance(topic, PersistentTopic)
    return topic.subscriptions[name]


def take_over(box: Box, client: Client) -> None:
    """Wait for the failover to the next active consumer, and discard its notifications."""
    box.advance(2)
    client.names()


class Answers:
    """Outcome of a completed operation."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def done(self, now: Now) -> None:
        self.said.append("done")

    def failed(self, error: Exception) -> None:
        self.said.append(type(error).__name__)


@given(
    ledgers=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    acked=st.sets(st.integers(0, 40)),
    count=st.integers(1, 50),
    at_once=st.integers(1, 3),
)
def test_the_nth_entry_is_the_one_that_counting_finds(
    ledgers: list[int], acked: set[int], count: int, at_once: int
) -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=max(*ledgers, 1))
    client = box.client()
    client.subscribe()
    positions = client.publish(sum(ledgers)) if sum(ledgers) else []
    cursor: ManagedCursor = subscription(box).cursor
    gone = [positions[i] for i in sorted(acked) if i < len(positions)]
    for ledger_id, entry_id in gone:
        total = positions.index((ledger_id, entry_id)) + 1
        cursor.acknowledge(ledger_id, entry_id, 1, 1, total, total)
    left = [at for at in positions if at not in gone]
    walk = UnackedWalk(cursor, count)
    steps = 0
    while not walk.step(at_once):
        steps += 1
        assert steps < 100
    assert walk.found == (left[count - 1] if count <= len(left) else None)


@EVERY_TYPE
@pytest.mark.parametrize("held", [0, 3, 10])
def test_what_is_skipped_comes_no_more_and_the_rest_does(sub_type: Any, held: int) -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe(subType=sub_type)
    positions = client.publish(10)
    take_over(box, client)
    client.flow(held)
    assert len(client.received()) == held
    subscription(box).clearing.skip(4, answers.done, answers.failed, box.now)
    box.turn()
    assert answers.said == ["done"]
    assert subscription(box).cursor.backlog_entries == 6
    client.flow(100)
    assert client.received() == positions[max(held, 4) :]
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert client.received() == positions[4:]
    client.ack(*positions[4:])
    assert subscription(box).cursor.mark_delete == positions[-1]


def test_skipping_counts_what_is_not_acknowledged() -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe(subType=SHARED)
    positions = client.publish(10)
    client.flow(10)
    client.received()
    client.ack(positions[1], positions[2], positions[4])
    subscription(box).clearing.skip(3, answers.done, answers.failed, box.now)
    box.turn()
    assert subscription(box).cursor.mark_delete == positions[5]
    assert subscription(box.restart()).cursor.mark_delete == positions[5], "it is durable"


@pytest.mark.parametrize(("count", "left"), [(0, 5), (-1, 5), (5, 0), (6, 0), (10**9, 0)])
def test_numbers_that_are_none_or_more_than_there_are(count: int, left: int) -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe()
    client.publish(5)
    subscription(box).clearing.skip(count, answers.done, answers.failed, box.now)
    box.turn()
    assert (answers.said, subscription(box).cursor.backlog_entries) == (["done"], left)


@pytest.mark.campaign
def test_many_holes_take_several_turns_and_acknowledgements_may_come_between() -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe(subType=SHARED)
    positions = client.publish(9000)
    client.flow(9000)
    client.received()
    client.ack(*positions[1::2])
    subscription(box).clearing.skip(4000, answers.done, answers.failed, box.now)
    box.turn()
    assert answers.said == []
    client.ack(*positions[0:100:2])
    box.advance(0.001)
    assert answers.said == ["done"]
    assert subscription(box).cursor.mark_delete.entry_id == pytest.approx(8000, abs=150)


@EVERY_TYPE
def test_clearing_leaves_nothing_but_what_comes_later(sub_type: Any) -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe(subType=sub_type)
    client.publish(10)
    take_over(box, client)
    client.flow(3)
    client.received()
    subscription(box).clearing.clear(answers.done, box.now)
    box.turn()
    assert (answers.said, subscription(box).cursor.backlog_messages) == (["done"], 0)
    assert sum(consumer.unacked for consumer in subscription(box).consumers) == 0
    client.flow(10)
    assert client.received() == []
    other = box.client()
    positions = other.publish(1)
    assert client.received() == positions


def test_a_limit_that_is_reached_goes_on_after_clearing() -> None:
    box, answers = Box(maxUnackedMessagesPerConsumer=3), Answers()
    client = box.client()
    client.subscribe(subType=SHARED)
    client.publish(5)
    client.flow(100)
    assert len(client.received()) == 3
    subscription(box).clearing.skip(3, answers.done, answers.failed, box.now)
    box.turn()
    assert len(client.received()) == 2


def test_what_is_older_expires() -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe("s")
    client.publish(3)
    box.advance(10)
    later = box.wall
    client.publish(2)
    subscription(box).clearing.expire_before(later, answers.done, answers.failed, box.now)
    box.turn()
    sub = subscription(box)
    assert (answers.said, sub.cursor.backlog_entries) == (["done"], 2)
    assert (sub.clearing.expired, sub.clearing.last_expired) == (3, box.wall)


def test_expiring_through_a_message_of_a_batch_leaves_the_others_of_it() -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe("s")
    client.producer()
    for i in range(3):
        client.send(i * 4, batch=4)
    receipts = [client.take("send_receipt").message_id for _ in range(3)]
    middle = Position(receipts[1].ledgerId, receipts[1].entryId)
    subscription(box).clearing.expire_through(middle, [0b1100], answers.done, answers.failed, box.now)
    box.turn()
    assert answers.said == ["done"]
    assert subscription(box).cursor.backlog_messages == 6
    assert subscription(box).clearing.expired == 1, "entries are counted, and the second is still there"


def test_what_is_deleted_or_being_reset_is_let_be() -> None:
    box, answers = Box(auto=False), Answers()
    box.auto = True
    client = box.client()
    client.subscribe("s")
    client.publish(3)
    sub = subscription(box)
    sub.fenced = True
    with pytest.raises(PreconditionFailed, match="Busy"):
        sub.clearing.clear(answers.done, box.now)
    sub.fenced = False
    sub.remove(box.now)
    with pytest.raises(NotFound, match="Subscription s not found"):
        sub.clearing.skip(1, answers.done, answers.failed, box.now)
    assert answers.said == []


def test_a_topic_that_is_unloaded_loses_nothing() -> None:
    box, answers = Box(auto=False), Answers()
    box.turn()
    box.auto = True
    client = box.client()
    client.subscribe(subType=SHARED)
    positions = client.publish(10)
    client.flow(5)
    client.received()
    client.ack(positions[2])
    client.producer(7)
    box.auto = False
    client.send(0, b"on its way", producer_id=7)
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert topic is not None
    box.broker.topics.unload(topic, answers.done, box.now)
    box.broker.topics.unload(topic, answers.done, box.now)
    box.flush()
    assert set(client.names()) == {"close_consumer", "close_producer"}, (
        "those with nothing on its way are told to come back"
    )
    refused = client.request("producer", topic=TOPIC, producer_id=8)
    assert (refused.error, answers.said) == (6, [])
    box.auto = True
    box.turn()
    box.advance(0.1)
    assert answers.said == ["done", "done"]
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    assert client.names() == ["send_receipt", "close_producer"], "told before, the client would send it again"
    client.subscribe(subType=SHARED)
    client.flow(100)
    assert len(client.received()) == 10


def test_a_topic_that_is_not_persistent_is_unloaded_at_once() -> None:
    box, answers = Box(), Answers()
    client = box.client()
    topic = "non-persistent://public/default/n"
    client.producer(1, topic)
    found = box.broker.topics.find(parse_topic(topic), box.now)
    assert found is not None
    box.broker.topics.unload(found, answers.done, box.now)
    box.turn()
    assert (answers.said, client.names()) == (["done"], ["close_producer"])
    assert not hasattr(client.producer(2, topic), "error")


def test_clearing_many_holes_takes_several_turns_and_counts_what_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe(subType=SHARED)
    positions = client.publish(4000)
    client.flow(4000)
    client.received()
    client.ack(*positions[1::2])
    monkeypatch.setattr(skip_and_clear, "CHUNKS_AT_ONCE", 1)
    subscription(box).clearing.expire_before(box.wall + 1, answers.done, answers.failed, box.now)
    box.turn()
    cursor = subscription(box).cursor
    assert (answers.said, cursor.backlog_messages) == ([], 2000 - 512)
    box.advance(0.001)
    assert (answers.said, cursor.backlog_messages, subscription(box).clearing.expired) == (["done"], 0, 2000)
    assert subscription(box.restart()).cursor.backlog_messages == 0


def test_what_is_deleted_while_it_is_cleared_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    box, answers = Box(), Answers()
    client = box.client()
    client.subscribe(subType=SHARED)
    positions = client.publish(4000)
    client.flow(4000)
    client.received()
    client.ack(*positions[1::2])
    monkeypatch.setattr(skip_and_clear, "CHUNKS_AT_ONCE", 1)
    sub = subscription(box)
    sub.clearing.clear(answers.done, box.now)
    client.request("unsubscribe", consumer_id=1)
    box.advance(0.001)
    assert answers.said == ["done"]
