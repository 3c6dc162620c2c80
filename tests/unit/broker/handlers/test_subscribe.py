"""Subscription and start position of a consumer (``broker.handlers.subscribe``), and its later requests.

Texts and their order are recorded from Pulsar 4.2.4. tests/differences runs them against both brokers.
"""

from typing import Any

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, KeySharedMeta, MessageIdData
from tests.unit.broker.playbook import TOPIC, Box, Client

EXCLUSIVE, SHARED = CommandSubscribe.Exclusive, CommandSubscribe.Shared
FAILOVER, KEY_SHARED = CommandSubscribe.Failover, CommandSubscribe.Key_Shared
LATEST, EARLIEST = CommandSubscribe.Latest, CommandSubscribe.Earliest
MANY = 2**63 - 1


def subscriptions(box: Box) -> list[str]:
    topic = box.broker.topics.loaded(parse_topic(TOPIC))
    assert topic is not None
    return [subscription.name for subscription in topic.all_subscriptions()]


def at(position: tuple[int, int], **fields: Any) -> MessageIdData:
    return MessageIdData(ledgerId=position[0], entryId=position[1], **fields)


def joined(client: Client, name: str = "s", consumer_id: int = 1, permits: int = 100, **fields: Any) -> None:
    reply = client.subscribe(name, consumer_id, **fields)
    assert not hasattr(reply, "error"), reply
    client.flow(permits, consumer_id)


# Names


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "Empty subscription name"),
        (" \t", "Empty subscription name"),
        ("pulsar.dedup", "Subscription with reserved subscription name attempted"),
        ("pulsar.repl", "Subscription with reserved subscription name attempted"),
        ("pulsar.repl.x", "Subscription with reserved subscription name attempted"),
    ],
)
def test_names_that_cannot_be_had(domain: str, name: str, text: str) -> None:
    reply = Box().client().subscribe(name, topic=f"{domain}://public/default/t")
    assert (reply.error, reply.message) == (16, text)


@pytest.mark.parametrize("name", ["__compaction", "pulsar.dedup2", "a/b", "a:b", "über"])
def test_names_that_can(name: str) -> None:
    assert not hasattr(Box().client().subscribe(name), "error")


def test_durable_and_not_durable_ones_do_not_share_a_name() -> None:
    box = Box()
    one, two = box.client(), box.client()
    joined(one, "d", subType=SHARED)
    one.request("close_consumer", consumer_id=1)
    reply = two.subscribe("d", subType=SHARED, durable=False)
    assert (reply.error, reply.message) == (22, "Durable subscription with the same name already exists.")
    joined(two, "n", subType=SHARED, durable=False)
    reply = one.subscribe("n", subType=SHARED)
    assert (reply.error, reply.message) == (22, "NonDurable subscription with the same name already exists.")
    joined(one, "n", subType=SHARED, durable=False)
    for client in (one, two):
        client.request("close_consumer", consumer_id=1)
    joined(one, "n", subType=SHARED)


def test_a_reader_that_is_refused_leaves_no_subscription_behind() -> None:
    box = Box()
    sticky = KeySharedMeta(keySharedMode="STICKY")
    reply = box.client().subscribe(durable=False, subType=KEY_SHARED, keySharedMeta=sticky)
    assert reply.message == "Ranges for KeyShared policy must not be empty."
    assert subscriptions(box) == []


# Start position


@pytest.mark.parametrize(
    ("back", "expected"), [(10, 3), (3600, 10), (1, 0), (2**64 - 1, 10)], ids=["ten seconds", "all", "none", "far"]
)
@pytest.mark.parametrize("durable", [True, False])
def test_a_rollback_sets_the_cursor_back_by_time(durable: bool, back: int, expected: int) -> None:
    box = Box()
    producer = box.client()
    producer.producer()
    for i in range(10):
        producer.send(i)
        box.advance(3)
    client = box.client()
    for _ in range(2):
        joined(client, durable=durable, initialPosition=LATEST, start_message_rollback_duration_sec=back)
        got = client.received()
        assert [entry for _, entry in got] == list(range(10 - expected, 10)), "at each SUBSCRIBE"
        for position in got:
            client.ack(position)
        client.request("close_consumer", consumer_id=1)


def test_a_rollback_closes_those_that_are_there() -> None:
    box = Box()
    sent = box.client().publish(3)
    one, two = box.client(), box.client()
    joined(one, initialPosition=LATEST)
    joined(two, start_message_rollback_duration_sec=60)
    assert one.names() == ["close_consumer"]
    assert two.received() == sent


def test_a_rollback_that_cannot_read_lets_the_consumer_come_as_it_is() -> None:
    box = Box()
    box.client().publish(4)
    box = box.restart()
    box.auto = False
    client = box.client()
    fields = {"topic": TOPIC, "subscription": "s", "subType": EXCLUSIVE, "consumer_id": 1, "request_id": 9}
    client.ask("subscribe", start_message_rollback_duration_sec=60, **fields)
    assert box.read(PersistenceError("bad disk"))
    box.auto = True
    box.turn()
    assert client.names() == ["success"]
    client.flow(9)
    assert client.received() == []


@pytest.mark.parametrize("restart", [False, True], ids=["in memory", "on the disk"])
def test_of_two_rollbacks_at_once_one_is_refused(restart: bool) -> None:
    box = Box()
    box.client().publish(3)
    if restart:
        box = box.restart()
    one, two = box.client(), box.client()
    box.auto = False
    for client in (one, two):
        fields = {"topic": TOPIC, "subscription": "s", "subType": EXCLUSIVE, "consumer_id": 1, "request_id": 9}
        client.ask("subscribe", start_message_rollback_duration_sec=60, **fields)
    box.auto = True
    box.turn()
    assert sorted(name for client in (one, two) for name in client.names() if name != "ping") == ["error", "success"]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("rollback", [0, 60])
@pytest.mark.parametrize("durable", [True, False])
def test_a_consumer_closed_while_its_start_is_read_has_an_answer(rollback: int, *, durable: bool, again: bool) -> None:
    box = Box()
    sent = box.client().publish(4)
    box = box.restart()
    box.auto = False
    client = box.client()
    fields: dict[str, Any] = {"topic": TOPIC, "subscription": "s", "subType": EXCLUSIVE, "consumer_id": 1}
    fields |= {"durable": durable, "start_message_rollback_duration_sec": rollback}
    fields |= {"start_message_id": MessageIdData(ledgerId=sent[2][0], entryId=sent[2][1])}
    client.ask("subscribe", request_id=9, **fields)
    client.ask("close_consumer", consumer_id=1, request_id=10)
    if again:
        client.ask("subscribe", request_id=11, **fields)
    box.auto = True
    box.turn()
    commands = [parse_command(data) for data, _ in client.inbox]
    bodies = [(COMMANDS[each.type].field, getattr(each, COMMANDS[each.type].field)) for each in commands]
    answers = [(body.request_id, name) for name, body in bodies if name in ("success", "error")]
    assert sorted(each for each in answers if each[0] != 11) == [(9, "error"), (10, "success")]
    assert sum(request_id == 11 for request_id, _ in answers) == again


@pytest.mark.parametrize("durable", [True, False])
def test_who_goes_while_the_cursor_is_set_back_leaves_nothing_of_a_reader(durable: bool) -> None:
    box = Box()
    box.client().publish(4)
    box = box.restart()
    box.auto = False
    client = box.client()
    fields = {"topic": TOPIC, "subscription": "s", "subType": EXCLUSIVE, "consumer_id": 1, "request_id": 9}
    client.ask("subscribe", start_message_rollback_duration_sec=60, durable=durable, **fields)
    client.cnx.closed(box.now)
    box.auto = True
    box.turn()
    box.advance(200)
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None, "a reader's would keep it in memory"


@pytest.mark.parametrize("initial", [LATEST, EARLIEST])
def test_a_reader_whose_start_is_not_to_be_found_goes_to_its_initial_position(initial: Any) -> None:
    box = Box()
    sent = box.client().publish(3)
    ledger = sent[0][0]
    client = box.client()
    lost = sent if initial == EARLIEST else []
    for start, expected in [
        (at((MANY, MANY)), lost),
        (at((ledger, 100)), lost),
        (at((1 << 40, 0)), lost),
        (None, lost),
        (at((ledger, 3)), []),
        (at(sent[2]), sent[2:]),
        (at((0, 0)), sent),
        (at((2**64 - 1, 2**64 - 1)), sent),
        (at((ledger, 2**64 - 1)), sent),
    ]:
        fields: dict[str, Any] = {} if start is None else {"start_message_id": start}
        joined(client, durable=False, initialPosition=initial, **fields)
        assert client.received() == expected, start
        client.request("close_consumer", consumer_id=1)


def batch_in(box: Box) -> tuple[int, int]:
    """Publish a batch of three messages."""
    producer = box.client()
    producer.producer()
    producer.send(0, batch=3)
    position = producer.take("send_receipt").message_id
    return position.ledgerId, position.entryId


def test_a_reader_that_starts_in_a_batch_gets_it_whole() -> None:
    box = Box()
    start = at(batch_in(box), batch_index=1, batch_size=3)
    client = box.client()
    joined(client, durable=False, start_message_id=start)
    assert list(client.take("message").ack_set) == []


def test_the_initial_position_counts_when_a_subscription_is_made() -> None:
    box = Box()
    sent = box.client().publish(3)
    client = box.client()
    joined(client, start_message_id=at(sent[2]), initialPosition=EARLIEST)
    assert client.received() == sent, "a start is for readers"
    client.ack(sent[2])
    client.request("close_consumer", consumer_id=1)
    joined(client, initialPosition=LATEST)
    assert client.received() == sent[:2]


# Seek


def test_clients_are_closed_before_the_seek_is_answered() -> None:
    box = Box()
    sent = box.client().publish(3)
    client = box.client()
    joined(client)
    client.names()
    client.ask("seek", consumer_id=1, request_id=7, message_id=at(sent[1]))
    client.ask("seek", consumer_id=1, request_id=8, message_id=at(sent[2]))
    assert client.names() == ["close_consumer", "success", "error"]
    joined(client)
    assert client.received() == sent[1:], "the second found no consumer"


def test_a_seek_into_a_batch_with_and_without_a_set() -> None:
    box = Box()
    whole = batch_in(box)
    client = box.client()
    for target, words in [(at(whole, batch_index=1), []), (at(whole, ack_set=[0b110]), [0b110])]:
        joined(client)
        client.names()
        client.request("seek", consumer_id=1, message_id=target)
        client.names()
        joined(client)
        assert list(client.take("message").ack_set) == words
        client.request("close_consumer", consumer_id=1)


def test_a_seek_into_a_batch_is_durable_with_its_set_once_it_is_answered() -> None:
    box = Box()
    whole = batch_in(box)
    joined(box.client())
    box = box.restart()  # the batch is no longer in memory: it is read while the seek waits
    client = box.client()
    joined(client)
    client.names()
    box.auto = False
    client.ask("seek", consumer_id=1, request_id=7, message_id=at(whole, ack_set=[6]))
    names = list[str]()
    while "success" not in names:
        assert box.commit() or box.read()
        names += client.names()
    client = box.restart().client()
    joined(client)
    assert list(client.take("message").ack_set) == [6]


def test_a_seek_on_a_non_persistent_topic_succeeds_and_does_nothing() -> None:
    box = Box()
    topic = "non-persistent://public/default/t"
    client = box.client()
    joined(client, topic=topic)
    assert not hasattr(client.request("seek", consumer_id=1, message_publish_time=1), "error")
    box.client().publish(1, topic)
    assert client.names() == ["message"]


# Epochs


@pytest.mark.parametrize("kind", [EXCLUSIVE, FAILOVER])
def test_the_highest_epoch_goes_with_messages(kind: Any) -> None:
    box = Box(activeConsumerFailoverDelayTimeMillis=0)
    sent = box.client().publish(1)
    client = box.client()
    client.subscribe(subType=kind, consumer_epoch=3)
    client.names()
    client.flow(100)
    assert client.take("message").consumer_epoch == 3
    asked: list[tuple[dict[str, Any], int]] = [
        ({"consumer_epoch": 5}, 5),
        ({"consumer_epoch": 4}, 5),
        ({}, 5),
        ({"consumer_epoch": 9, "message_ids": [at(sent[0])]}, 9),
    ]
    for fields, expected in asked:
        client.ask("redeliverUnacknowledgedMessages", consumer_id=1, **fields)
        assert client.take("message").consumer_epoch == expected, "lower ones set back all the same"


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_side_by_side_there_are_no_epochs(kind: Any) -> None:
    box = Box()
    box.client().publish(1)
    client = box.client()
    joined(client, subType=kind, consumer_epoch=3)
    assert not client.take("message").HasField("consumer_epoch")
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, consumer_epoch=5)
    assert not client.take("message").HasField("consumer_epoch")


# Mismatched sets of batch indexes


def test_a_set_on_a_single_message_acknowledges_nothing_and_comes_back() -> None:
    box = Box()
    sent = box.client().publish(1)
    client = box.client()
    joined(client, subType=SHARED)
    client.received()
    assert not client.ack(at(sent[0], ack_set=[1], batch_size=1)).HasField("error")
    stats = client.request("consumerStats", consumer_id=1)
    assert (stats.unackedMessages, stats.msgBacklog) == (1, 1)
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert list(client.take("message").ack_set) == [1]


def test_sets_that_do_not_fit() -> None:
    box = Box()
    producer = box.client()
    producer.producer()
    producer.send(0, batch=5)
    position = producer.take("send_receipt").message_id
    whole = (position.ledgerId, position.entryId)
    client = box.client()
    joined(client, subType=SHARED)
    client.received()
    for ack_set, left in [(0b11011, 4), (0b11011, 4), (-1, 4), (0b111, 2), (0, 0)]:
        client.ack(at(whole, ack_set=[ack_set], batch_size=5))
        assert client.request("consumerStats", consumer_id=1).unackedMessages == left


def test_a_batch_index_without_a_set_means_the_whole_entry() -> None:
    box = Box()
    producer = box.client()
    producer.producer()
    producer.send(0, batch=2)
    position = producer.take("send_receipt").message_id
    client = box.client()
    joined(client, subType=SHARED)
    client.received()
    client.ack(at((position.ledgerId, position.entryId), batch_index=0, batch_size=2))
    stats = client.request("consumerStats", consumer_id=1)
    assert (stats.unackedMessages, stats.msgBacklog) == (0, 0)


def test_a_cumulative_set_does_not_bring_back_what_a_later_one_took() -> None:
    box = Box()
    producer = box.client()
    producer.producer()
    producer.send(0)
    producer.send(1, batch=5)
    positions = [producer.take("send_receipt").message_id for _ in range(2)]
    client = box.client()
    joined(client)
    client.received()
    for ack_set in (0b11100, 0b11110):
        fields = {"ack_type": CommandAck.Cumulative}
        client.ack(at((positions[1].ledgerId, positions[1].entryId), ack_set=[ack_set]), **fields)
        client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
        assert list(client.take("message").ack_set) == [0b11100]
        assert client.inbox == []


# Numbers


def test_consumer_stats() -> None:
    box = Box()
    sent = box.client().publish(5)
    client = box.client()
    joined(client, permits=4, subType=SHARED)
    client.received()
    client.ack(sent[0])
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=[at(sent[1])])
    box.advance(10)
    stats = client.request("consumerStats", consumer_id=1)
    assert (stats.unackedMessages, stats.msgBacklog, stats.type) == (3 - 1, 4, "Shared")
    assert (stats.msgRateOut, stats.msgRateRedeliver, stats.messageAckRate) == (0.4, 0.1, 0.1)
    assert stats.msgThroughputOut > 4
    client.flow(1)
    box.advance(10)
    stats = client.request("consumerStats", consumer_id=1)
    assert (stats.msgRateOut, stats.msgRateRedeliver, stats.messageAckRate) == (0.25, 0.05, 0.05)


def test_rates_of_all_kinds_of_acknowledgements() -> None:
    box = Box()
    sent = box.client().publish(8)
    client = box.client()
    joined(client, permits=8)
    client.received()
    client.ack(sent[3], ack_type=CommandAck.Cumulative)
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    client.ack(sent[5])
    box.advance(1)
    stats = client.request("consumerStats", consumer_id=1)
    assert (stats.msgRateOut, stats.msgRateRedeliver, stats.messageAckRate) == (8, 4, 5)
    assert stats.unackedMessages == 0, "Pulsar counts them on Shared and Key_Shared only"


def test_permits_may_be_negative() -> None:
    for domain in ("persistent", "non-persistent"):
        box = Box()
        topic = f"{domain}://public/default/t"
        client = box.client()
        joined(client, topic=topic, permits=2, subType=SHARED)
        producer = box.client()
        producer.producer(topic=topic)
        producer.send(0, batch=5)
        assert client.names() == ["message"]
        assert client.request("consumerStats", consumer_id=1).availablePermits == 2**64 - 3


def test_a_blocked_consumer_says_so() -> None:
    box = Box(maxUnackedMessagesPerConsumer=2)
    box.client().publish(5)
    client = box.client()
    joined(client, subType=SHARED)
    stats = client.request("consumerStats", consumer_id=1)
    assert (stats.blockedConsumerOnUnackedMsgs, stats.unackedMessages, stats.msgBacklog) == (True, 2, 5)


def test_a_partly_acknowledged_batch_costs_what_is_left_of_it() -> None:
    box = Box()
    producer = box.client()
    producer.producer()
    producer.send(0, batch=4)
    position = producer.take("send_receipt").message_id
    whole = (position.ledgerId, position.entryId)
    client = box.client()
    joined(client, permits=4, subType=SHARED)
    client.received()
    client.ack(at(whole, ack_set=[0b1100]))
    client.flow(3)
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=[at(whole)])
    message = client.take("message")
    assert (message.redelivery_count, list(message.ack_set)) == (1, [0b1100])
    stats = client.request("consumerStats", consumer_id=1)
    assert (stats.availablePermits, stats.unackedMessages) == (1, 2)


# Unsubscribe


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_unsubscribing_by_force_closes_the_others_and_forgets_the_asker(domain: str) -> None:
    box = Box()
    one, two = box.client(), box.client()
    for client in (one, two):
        joined(client, topic=f"{domain}://public/default/t", subType=SHARED)
    refused = one.request("unsubscribe", consumer_id=1)
    assert (refused.error, refused.message) == (1, "Unconnected or shared consumer attempting to unsubscribe")
    one.ask("unsubscribe", consumer_id=1, request_id=7, force=True)
    assert (one.names(), two.names()) == (["success"], ["close_consumer"])
    assert one.request("unsubscribe", consumer_id=1).message == "Consumer not found"
    assert not hasattr(two.request("close_consumer", consumer_id=1), "error")
