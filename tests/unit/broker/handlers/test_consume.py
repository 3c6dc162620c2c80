"""Consumers: ``broker.handlers.consume``, ``broker.subscription``, ``broker.dispatch``."""

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData
from tests.unit.broker.playbook import TOPIC, Box, Client


def consuming(box: Box, **fields: object) -> Client:
    client = box.client()
    client.subscribe(**fields)  # type: ignore[arg-type]
    return client


def test_everything_in_order_as_far_as_permits_go() -> None:
    box = Box()
    sent = box.client().publish(10)
    client = consuming(box)
    client.flow(3)
    assert client.received() == sent[:3]
    client.flow(100)
    assert client.received() == sent[3:]


def test_permits_count_messages_and_one_batch_may_overshoot() -> None:
    box = Box()
    producer = box.client()
    producer.producer(1)
    for i in range(3):
        producer.send(i, batch=10)
    client = consuming(box)
    client.flow(5)
    assert len(client.received()) == 1
    client.flow(5)
    assert client.received() == []
    client.flow(1)
    assert len(client.received()) == 1


def test_a_backlog_outside_the_cache_comes_through_reads() -> None:
    box = Box(managedLedgerCacheSizeMB=1)
    producer = box.client()
    producer.producer(1)
    for i in range(400):
        producer.send(i, bytes(8192))
    sent = [(m.ledgerId, m.entryId) for m in (producer.take("send_receipt").message_id for _ in range(400))]
    client = consuming(box)
    client.flow(1000)
    assert client.received() == sent


def test_a_read_that_fails_is_tried_again() -> None:
    box = Box()
    sent = box.client().publish(5)
    again = box.restart()
    again.auto = False
    client = again.client()
    client.ask("subscribe", topic=TOPIC, subscription="s", subType=0, consumer_id=1, request_id=1, initialPosition=1)
    again.commit()
    assert client.names() == ["success"]
    client.flow(10)
    again.read(PersistenceError("bad disk"))
    assert client.names() == []
    again.auto = True
    again.advance(2)
    assert client.received() == sent


def test_a_backlog_with_holes_is_read_to_its_end() -> None:
    box = Box(dispatcherMaxReadBatchSize=2)
    sent = box.client().publish(20)
    client = consuming(box)
    client.ack(*sent[2:6], *sent[9:14])
    again = consuming(box.restart())
    again.flow(100)
    assert again.received() == [*sent[:2], *sent[6:9], *sent[14:]]


def test_acknowledged_messages_do_not_come_again_after_a_crash() -> None:
    box = Box()
    sent = box.client().publish(10)
    client = consuming(box)
    client.flow(10)
    client.received()
    response = client.ack(sent[0], sent[1], sent[5])
    assert not response.HasField("error")
    back = consuming(box.restart())
    back.flow(10)
    assert back.received() == [each for i, each in enumerate(sent) if i not in (0, 1, 5)]


def test_an_ack_receipt_waits_for_the_commit() -> None:
    box = Box()
    sent = box.client().publish(1)
    client = consuming(box)
    client.flow(1)
    client.received()
    box.auto = False
    ids = [MessageIdData(ledgerId=sent[0][0], entryId=sent[0][1])]
    client.ask("ack", consumer_id=1, ack_type=CommandAck.Individual, message_id=ids, request_id=5)
    assert client.names() == []
    box.commit()
    assert client.names() == ["ackResponse"]


def test_an_ack_without_receipt_is_written_soon() -> None:
    box = Box()
    sent = box.client().publish(2)
    client = consuming(box)
    client.flow(2)
    client.received()
    ids = [MessageIdData(ledgerId=sent[0][0], entryId=sent[0][1])]
    client.ask("ack", consumer_id=1, ack_type=CommandAck.Individual, message_id=ids)
    box.advance(0.1)
    back = consuming(box.restart())
    back.flow(10)
    assert back.received() == sent[1:]


def test_cumulative_ack() -> None:
    box = Box()
    sent = box.client().publish(10)
    client = consuming(box)
    client.flow(10)
    client.received()
    client.ack(sent[8])
    client.ack(sent[6], ack_type=CommandAck.Cumulative)
    back = consuming(box.restart())
    back.flow(10)
    assert back.received() == [sent[7], sent[9]]


def test_part_of_a_batch() -> None:
    box = Box()
    producer = box.client()
    producer.producer(1)
    producer.send(0, batch=10)
    position = producer.take("send_receipt").message_id
    client = consuming(box)
    client.flow(10)
    client.received()
    unacked = 0b1111100000
    part = MessageIdData(ledgerId=position.ledgerId, entryId=position.entryId, ack_set=[unacked], batch_size=10)
    client.ack(part)
    back = consuming(box.restart())
    back.flow(10)
    message = back.take("message")
    assert list(message.ack_set) == [unacked]
    rest = MessageIdData(ledgerId=position.ledgerId, entryId=position.entryId, ack_set=[0b0000011111], batch_size=10)
    back.ack(rest)
    last = consuming(back.box.restart())
    last.flow(10)
    assert last.received() == []


def test_batch_indexes_turned_off() -> None:
    box = Box(acknowledgmentAtBatchIndexLevelEnabled=False)
    producer = box.client()
    producer.producer(1)
    ids = []
    for i in range(2):
        producer.send(i, batch=4)
        ids.append(producer.take("send_receipt").message_id)
    client = consuming(box)
    client.flow(8)
    client.received()
    client.ack(MessageIdData(ledgerId=ids[0].ledgerId, entryId=ids[0].entryId, ack_set=[0b1100]))
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    client.flow(8)
    assert len(client.received()) == 2
    part = MessageIdData(ledgerId=ids[1].ledgerId, entryId=ids[1].entryId, ack_set=[0b1100])
    client.ack(part, ack_type=CommandAck.Cumulative)
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    client.flow(8)
    assert client.received() == [(ids[1].ledgerId, ids[1].entryId)]


def test_an_ack_of_what_an_earlier_consumer_got_is_looked_up() -> None:
    box = Box()
    sent = box.client().publish(5)
    again = box.restart()
    client = consuming(again)
    client.ack(sent[3])
    client.flow(10)
    assert client.received() == [sent[0], sent[1], sent[2], sent[4]]


def test_acks_of_what_does_not_exist_change_nothing() -> None:
    box = Box()
    sent = box.client().publish(2)
    client = consuming(box)
    for position in [(9999, 0), (sent[0][0], 77), (2**64 - 1, 2**64 - 1)]:
        assert client.ack(position) is not None
    client.flow(10)
    assert client.received() == sent


def test_exclusive_takes_one_and_the_type_may_change_when_all_have_gone() -> None:
    box = Box()
    one, two = consuming(box), box.client()
    assert two.subscribe().error == 5
    assert two.subscribe(subType=CommandSubscribe.Shared).error == 5
    one.request("close_consumer", consumer_id=1)
    assert not hasattr(two.subscribe(subType=CommandSubscribe.Shared), "error")


def test_shared_takes_turns_and_gives_back_what_a_consumer_held() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=2)
    one, two = box.client(), box.client()
    for client in (one, two):
        client.subscribe(subType=CommandSubscribe.Shared)
        client.flow(100)
    sent = box.client().publish(8)
    first, second = one.received(), two.received()
    assert sorted(first + second) == sent
    assert first and second
    one.cnx.closed(box.now)
    box.turn()
    assert two.received() == first


def test_shared_prefers_the_lower_priority_level_while_it_has_permits() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    first, second = box.client(), box.client()
    second.subscribe(subType=CommandSubscribe.Shared, priority_level=1)
    first.subscribe(subType=CommandSubscribe.Shared, priority_level=0)
    second.flow(10)
    first.flow(3)
    sent = box.client().publish(5)
    assert first.received() == sent[:3]
    assert second.received() == sent[3:]


def test_shared_redelivers_what_is_asked_for_with_a_count() -> None:
    box = Box()
    client = consuming(box, subType=CommandSubscribe.Shared)
    sent = box.client().publish(3)
    client.flow(10)
    client.received()
    ids = [MessageIdData(ledgerId=sent[1][0], entryId=sent[1][1])]
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)
    message = client.take("message")
    assert (message.message_id.entryId, message.redelivery_count) == (sent[1][1], 1)
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    again = [client.take("message") for _ in range(3)]
    assert [(m.message_id.entryId, m.redelivery_count) for m in again] == [(0, 1), (1, 2), (2, 1)]


def test_exclusive_redelivers_everything_in_order() -> None:
    box = Box()
    sent = box.client().publish(5)
    client = consuming(box)
    client.flow(20)
    client.received()
    client.ack(sent[2])
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert client.received() == [sent[0], sent[1], sent[3], sent[4]]


def test_a_blocked_shared_consumer_goes_on_at_half() -> None:
    box = Box(maxUnackedMessagesPerConsumer=4)
    client = consuming(box, subType=CommandSubscribe.Shared)
    sent = box.client().publish(10)
    client.flow(1)
    for _ in range(9):
        client.flow(1)
    got = client.received()
    assert got == sent[:4]
    client.ack(got[0])
    assert client.received() == []
    client.ack(got[1])
    assert client.received() == sent[4:6]


def test_a_slow_client_stops_the_dispatcher_and_goes_on() -> None:
    box = Box(auto=True)
    sent = box.client().publish(5)
    client = consuming(box)
    client.outbox.blocked = client.outbox.full = True
    client.flow(10)
    assert client.received() == []
    client.outbox.blocked = client.outbox.full = False
    client.cnx.writable(box.now)
    box.turn()
    assert client.received() == sent


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("index", [0, 3, 9, 10])
def test_seek_by_id(index: int, restart: bool) -> None:
    box = Box()
    sent = box.client().publish(10)
    if restart:
        box = box.restart()
    client = consuming(box)
    client.flow(20)
    client.ack(*client.received())
    ledger, entry = (*sent, (sent[0][0], 10))[index]
    reply = client.request("seek", consumer_id=1, message_id=MessageIdData(ledgerId=ledger, entryId=entry))
    assert not hasattr(reply, "error")
    assert client.take("close_consumer").consumer_id == 1
    client.subscribe()
    client.flow(20)
    assert client.received() == sent[index:]


def test_seek_to_the_ends() -> None:
    box = Box()
    sent = box.client().publish(3)
    client = consuming(box)
    client.request("seek", consumer_id=1, message_id=MessageIdData(ledgerId=2**63 - 1, entryId=2**63 - 1))
    client.names()
    client.subscribe()
    client.flow(20)
    assert client.received() == []
    client.request("seek", consumer_id=1, message_id=MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1))
    client.names()
    client.subscribe()
    client.flow(20)
    assert client.received() == sent


def test_seek_by_time_finds_the_first_since() -> None:
    box = Box()
    producer = box.client()
    producer.producer(1)
    for i in range(20):
        producer.send(i, publish_time=1000 + 10 * i)
    box = box.restart()
    client = consuming(box)
    for publish_time, expected in [(0, 0), (1000, 0), (1001, 1), (1100, 10), (1190, 19), (1191, 20)]:
        client.request("seek", consumer_id=1, message_publish_time=publish_time)
        client.names()
        client.subscribe()
        client.flow(30)
        assert [entry for _, entry in client.received()] == list(range(expected, 20))


def test_a_reader_starts_with_the_entry_it_names_and_leaves_nothing_behind() -> None:
    box = Box()
    sent = box.client().publish(10)
    client = box.client()
    start = MessageIdData(ledgerId=sent[4][0], entryId=sent[4][1])
    client.subscribe("reader", durable=False, start_message_id=start)
    client.flow(20)
    assert client.received() == sent[4:]
    client.request("close_consumer", consumer_id=1)
    assert not next(iter(box.broker.topics)).subscriptions  # type: ignore[attr-defined]


def test_a_reader_that_does_not_come_back_from_its_seek_leaves_nothing_behind() -> None:
    box = Box()
    sent = box.client().publish(3)
    client = box.client()
    client.subscribe("reader", durable=False)
    client.request("seek", consumer_id=1, message_id=MessageIdData(ledgerId=sent[1][0], entryId=sent[1][1]))
    client.names()
    client.subscribe("reader", durable=False)
    client.flow(5)
    assert client.received() == sent[1:]
    client.request("seek", consumer_id=1, message_id=MessageIdData(ledgerId=sent[0][0], entryId=sent[0][1]))
    box.advance(100)
    assert not next(iter(box.broker.topics)).subscriptions  # type: ignore[attr-defined]


def test_last_message_id_is_that_of_the_batch() -> None:
    box = Box()
    client = consuming(box)
    empty = client.request("getLastMessageId", consumer_id=1).last_message_id
    assert (empty.ledgerId, empty.entryId) == (2**64 - 1, 2**64 - 1)
    producer = box.client()
    producer.producer(1)
    producer.send(0)
    assert client.request("getLastMessageId", consumer_id=1).last_message_id.batch_index == -1
    producer.send(1, batch=7)
    for each in (client, consuming(box.restart())):
        last = each.request("getLastMessageId", consumer_id=1).last_message_id
        assert (last.entryId, last.batch_index) == (1, 6)


def test_unsubscribe_forgets_and_a_new_subscription_starts_afresh() -> None:
    box = Box()
    sent = box.client().publish(3)
    client = consuming(box)
    client.flow(10)
    client.ack(*client.received())
    assert not hasattr(client.request("unsubscribe", consumer_id=1), "error")
    back = consuming(box.restart())
    back.flow(10)
    assert back.received() == sent


def test_unsubscribe_is_refused_while_others_are_there_unless_forced() -> None:
    box = Box()
    one = consuming(box, subType=CommandSubscribe.Shared)
    two = consuming(box, subType=CommandSubscribe.Shared)
    assert one.request("unsubscribe", consumer_id=1).error == 1
    assert not hasattr(one.request("unsubscribe", consumer_id=1, force=True), "error")
    assert two.names() == ["close_consumer"]


def test_refusals() -> None:
    box = Box()
    client = box.client()
    assert client.subscribe("").error == 16
    assert client.subscribe("pulsar.dedup").error == 16
    assert client.subscribe(subType=CommandSubscribe.Shared, read_compacted=True).error == 22
    assert client.subscribe(topic="persistent://public/default/no", force_topic_creation=False).error == 11
    for field in ("seek", "unsubscribe", "getLastMessageId"):
        extra = {"message_publish_time": 1} if field == "seek" else {}
        assert client.request(field, consumer_id=9, **extra).error == 1
    assert client.request("ack", consumer_id=9, ack_type=0).error == 1
    assert client.request("consumerStats", consumer_id=9).error_code == 1
