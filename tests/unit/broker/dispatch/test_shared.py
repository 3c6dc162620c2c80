"""Shared subscriptions beyond test_consume: ``broker.dispatch.shared`` and the modules that it builds on."""

from typing import Any

import pytest

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, KeyValue, MessageIdData
from tests.unit.broker.playbook import TOPIC, Box, Client

SHARED = CommandSubscribe.Shared


def join(box: Box, name: str, permits: int = 0, subscription: str = "s", **fields: Any) -> Client:
    client = box.client()
    reply = client.subscribe(subscription, consumer_name=name, subType=SHARED, **fields)
    assert not hasattr(reply, "error"), reply
    if permits:
        client.flow(permits)
    return client


def subscription_of(box: Box, name: str = "s") -> Subscription:
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    found = topic.subscriptions[name]  # type: ignore[union-attr]
    assert isinstance(found, Subscription)
    return found


def test_a_thousand_consumers_get_one_each() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    clients = [join(box, f"c{i}", permits=5) for i in range(1000)]
    box.client().publish(1000)
    assert {len(client.received()) for client in clients} == {1}


def test_permits_come_back_and_the_order_of_turns_stays() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    one, two = join(box, "one", permits=1), join(box, "two", permits=3)
    sent = box.client().publish(6)
    assert one.received() == [sent[0]]
    assert two.received() == [sent[1], sent[2], sent[3]]
    one.flow(1)
    two.flow(1)
    assert (one.received(), two.received()) == ([sent[4]], [sent[5]])


@pytest.mark.parametrize(
    ("choice", "shares"), [("roundRobin", (5, 5)), ("leastUnacked", (1, 9)), ("mostPermits", (0, 10))]
)
def test_who_is_next_can_be_chosen(choice: str, shares: tuple[int, int]) -> None:
    for by_property in (False, True):
        settings: dict[str, Any] = {} if by_property else {"sharedConsumerSelection": choice}
        box = Box(dispatcherMaxRoundRobinBatchSize=1, **settings)
        fields: dict[str, Any] = (
            {"subscription_properties": [KeyValue(key="sharedConsumerSelection", value=choice)]} if by_property else {}
        )
        busy = join(box, "busy", permits=8, **fields)
        box.client().publish(8)
        busy.received()
        busy.flow(10)
        idle = join(box, "idle", permits=30)
        box.client().publish(10)
        assert (len(busy.received()), len(idle.received())) == shares


def test_chunks_of_a_message_go_to_one_consumer() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    one, two = join(box, "one", permits=100), join(box, "two", permits=100)
    producer = box.client()
    producer.producer(1)
    sequence = 0
    for chunk in range(4):
        for uuid in "abc":
            producer.send(sequence, uuid=uuid, chunk_id=chunk, num_chunks_from_msg=4, total_chunk_msg_size=4)
            sequence += 1
    got: list[set[int]] = [set(), set()]
    for i, client in enumerate((one, two)):
        got[i] = {entry % 3 for _, entry in client.received()}
    assert got[0] | got[1] == {0, 1, 2}
    assert not got[0] & got[1]
    assert got[0]
    assert got[1]


def test_chunks_wait_for_the_consumer_that_has_the_first() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    one, two = join(box, "one", permits=1), join(box, "two")
    producer = box.client()
    producer.producer(1)
    for chunk in range(3):
        producer.send(chunk, uuid="a", chunk_id=chunk, num_chunks_from_msg=3, total_chunk_msg_size=3)
    producer.send(3)
    assert [entry for _, entry in one.received()] == [0]
    two.flow(10)
    assert [entry for _, entry in two.received()] == [3]
    assert subscription_of(box).blocked_reason().reason == Reason.CHUNKS
    one.flow(1)
    assert [entry for _, entry in one.received()] == [1]
    one.request("close_consumer", consumer_id=1)
    assert [entry for _, entry in two.received()] == [0, 1, 2]


def test_chunks_that_are_acknowledged_meanwhile_are_waited_for_no_more() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    one, two = join(box, "one", permits=1), join(box, "two", permits=10)
    producer = box.client()
    producer.producer(1)
    for chunk in range(3):
        producer.send(chunk, uuid="a", chunk_id=chunk, num_chunks_from_msg=3, total_chunk_msg_size=3)
    got = one.received()
    assert [entry for _, entry in got] == [0]
    assert subscription_of(box).blocked_reason().reason == Reason.CHUNKS
    ledger, _ = got[0]
    for entry in range(3):
        two.ask("ack", consumer_id=1, ack_type=0, message_id=[MessageIdData(ledgerId=ledger, entryId=entry)])
    assert subscription_of(box).blocked_reason().reason == Reason.END_OF_LOG


def test_whoever_acknowledges_the_holder_holds_it_no_longer() -> None:
    box = Box(maxUnackedMessagesPerConsumer=4)
    one, two = join(box, "one", permits=10), join(box, "two")
    sent = box.client().publish(6)
    assert one.received() == sent[:4]
    two.ack(*sent[:2])
    assert one.received() == sent[4:]
    consumer = one.cnx.consumers[1]
    assert consumer.unacked == len(consumer.held) == 4


def test_the_subscription_goes_on_at_half_its_limit() -> None:
    box = Box(maxUnackedMessagesPerSubscription=6, dispatcherMaxRoundRobinBatchSize=1)
    one, two = join(box, "one", permits=10), join(box, "two", permits=10)
    box.client().publish(10)
    first, second = one.received(), two.received()
    assert len(first + second) == 6
    assert subscription_of(box).blocked_reason().reason == Reason.UNACKED_LIMIT
    one.ack(*first[:2])
    assert one.inbox == two.inbox == []
    two.ack(second[0])
    assert len(one.received() + two.received()) == 3


def test_the_broker_goes_on_at_half_its_limit() -> None:
    box = Box(maxUnackedMessagesPerBroker=10, maxUnackedMessagesPerSubscriptionOnBrokerBlocked=0.2)
    large, small = join(box, "large", permits=100), join(box, "small", permits=1, subscription="t")
    sent = box.client().publish(30)
    got = large.received()
    assert len(got) == 9
    assert len(small.received()) == 1
    assert subscription_of(box).blocked_reason().reason == Reason.UNACKED_LIMIT
    small.flow(1)
    assert len(small.received()) == 1, "it holds less than its share"
    large.ack(*got[:5])
    assert large.inbox == []
    large.ack(got[5])
    assert large.received() == sent[9:29], "a turn's worth: the limit is looked at between turns"


def test_a_read_that_fails_is_tried_again() -> None:
    box = Box()
    one = join(box, "one", permits=10)
    sent = box.client().publish(3)
    one.received()
    for ledger in subscription_of(box).ledger.tail.values():
        ledger.clear()
    box.auto = False
    one.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    box.read(PersistenceError("bad disk"))
    assert one.received() == []
    box.auto = True
    box.advance(2)
    assert one.received() == sent


def test_why_says_the_one_reason_and_since_when() -> None:
    box = Box()
    one = join(box, "one")
    box.client().publish(3)
    subscription = subscription_of(box)

    def reason() -> str:
        return subscription.blocked_reason().reason

    assert reason() == Reason.NO_PERMITS
    box.advance(5)
    one.flow(10)
    assert reason() == Reason.END_OF_LOG
    assert subscription.blocked_reason().since == box.wall
    then = box.wall
    box.advance(5)
    one.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=[MessageIdData(ledgerId=1, entryId=99)])
    assert subscription.blocked_reason().since == then, "nothing was sent"
    one.outbox.blocked = one.outbox.full = True
    box.client().publish(1)
    assert reason() == Reason.SLOW_CONNECTION
    one.cnx.closed(box.now)
    assert reason() == Reason.NO_CONSUMER
    assert subscription.blocked_reason().since == box.wall
    assert subscription.blocked_reason().text == "no consumer is connected"


def test_a_lost_connection_with_two_consumers_counts_once() -> None:
    box = Box()
    both = join(box, "one", permits=1)
    both.request("subscribe", topic=TOPIC, subscription="s", consumer_id=2, consumer_name="two", subType=SHARED)
    both.ask("flow", consumer_id=2, messagePermits=5)
    box.client().publish(3)
    both.received()
    other = join(box, "other")
    both.cnx.closed(box.now)
    box.turn()
    other.flow(10)
    assert [other.take("message").redelivery_count for _ in range(3)] == [1, 1, 1]


def test_a_subscription_that_is_down_to_its_share_goes_on_while_the_broker_is_at_its_limit() -> None:
    box = Box(maxUnackedMessagesPerBroker=10, maxUnackedMessagesPerSubscriptionOnBrokerBlocked=0.2)
    greedy, modest = join(box, "greedy", subscription="g"), join(box, "modest", subscription="m", permits=3)
    box.client().publish(20)
    held = modest.received()
    greedy.flow(7)
    modest.flow(10)
    assert modest.received() == [], "the broker is at its limit, three are more than the share of two"
    assert subscription_of(box, "m").blocked_reason().reason == Reason.UNACKED_LIMIT
    modest.ack(*held)
    assert modest.received(), "nothing but its own acknowledgements has changed"


def test_who_is_below_its_limit_again_comes_before_lower_priorities() -> None:
    box = Box(maxUnackedMessagesPerConsumer=4, maxUnackedMessagesPerBroker=4)
    first = join(box, "first", permits=100, priority_level=0)
    second = join(box, "second", permits=100, priority_level=1)
    sent = box.client().publish(5)
    assert (first.received(), second.received()) == (sent[:4], [])
    first.ack(*sent[:2])
    assert (first.received(), second.received()) == (sent[4:], []), "it and the broker were released at once"


def test_a_part_of_a_batch_that_comes_while_its_acknowledgement_is_looked_up_is_counted_right() -> None:
    box = Box()
    one = join(box, "one", permits=20)
    producer = box.client()
    producer.producer(1)
    producer.send(0, batch=10)
    [(ledger_id, entry_id)] = one.received()
    one.ack(MessageIdData(ledgerId=ledger_id, entryId=entry_id, ack_set=[0b11111]))
    box = box.restart()
    one = join(box, "one")
    box.auto = False
    one.flow(20)
    one.ack(MessageIdData(ledgerId=ledger_id, entryId=entry_id, ack_set=[0b11]))
    box.auto = True
    box.turn()
    consumer = one.cnx.consumers[1]
    assert [each.messages for each in consumer.held.values()] == [2]
    assert consumer.unacked == 2


def test_acknowledgements_that_have_to_be_looked_up_do_not_keep_a_limit_of_others() -> None:
    box = Box(maxUnackedMessagesPerConsumer=2)
    sent = box.client().publish(4)
    box.client().subscribe("s", subType=SHARED)
    box = box.restart()
    one = join(box, "one", permits=10)
    assert one.received() == sent[:2]
    box.auto = False
    one.ack(sent[0], sent[3])
    box.flush()
    assert one.received() == sent[2:3], "whatever becomes of the read"


def test_a_limit_of_the_consumer_that_holds_what_another_acknowledges() -> None:
    box = Box(maxUnackedMessagesPerConsumer=2)
    one, two = join(box, "one", permits=10), join(box, "two")
    sent = box.client().publish(3)
    assert one.received() == sent[:2]
    assert not two.ack(sent[0]).HasField("error")
    assert one.received() == sent[2:]


def test_who_had_the_last_turn_longest_ago_is_next_whenever_it_has_permits_again() -> None:
    box = Box()
    a, b, c = (box.client() for _ in range(3))
    for client in (a, b, c):
        client.subscribe(subType=CommandSubscribe.Shared)
    a.flow(10)
    sent = box.client().publish(2)
    assert a.received() == sent
    c.flow(10)
    b.flow(1)
    assert [len(box.client().publish(1)) for _ in range(5)] == [1] * 5
    assert [len(client.received()) for client in (a, b, c)] == [2, 1, 2]
    ids = [MessageIdData(ledgerId=sent[0][0], entryId=sent[0][1])]
    a.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)
    assert (a.names(), c.names()) == ([], ["message"]), "a had the last one"
