"""Producer access modes: ``broker.topic.producer_access`` and ``broker.handlers.produce``, with Pulsar's texts."""

from copy import deepcopy
from typing import Any

import pytest

from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import ProducerAccessMode
from pulsarbox.storage.catalog import topic_key
from tests.unit.broker.playbook import TOPIC, Box, Client

STORED, FLEETING = TOPIC, TOPIC.replace("persistent", "non-persistent")
BOTH = pytest.mark.parametrize("topic", [STORED, FLEETING])

SHARED = ProducerAccessMode.Shared
EXCLUSIVE = ProducerAccessMode.Exclusive
WAIT = ProducerAccessMode.WaitForExclusive
FENCING = ProducerAccessMode.ExclusiveWithFencing
ALONE = (EXCLUSIVE, WAIT, FENCING)

BUSY, FENCED, NOT_READY = 16, 25, 6


def opened(client: Client, mode: Any = SHARED, producer_id: int = 1, topic: str = TOPIC, **fields: Any) -> Any:
    """Request a producer and return the response."""
    return client.producer(producer_id, topic, producer_access_mode=mode, **fields)


def epoch(reply: Any) -> int | None:
    """Return the topic epoch in a PRODUCER_SUCCESS, or None if it has none."""
    assert reply.DESCRIPTOR.name == "CommandProducerSuccess", str(reply)
    return reply.topic_epoch if reply.HasField("topic_epoch") else None


def row_of(box: Box, topic: str = TOPIC) -> Any:
    """Return the catalog row of the topic."""
    return box.broker.catalog.get(topic_key(topic))


# Concurrent producers


@BOTH
@pytest.mark.parametrize(
    ("first", "second", "error", "text"),
    [
        (SHARED, EXCLUSIVE, FENCED, "Topic has existing shared producers"),
        *((mode, SHARED, BUSY, "Topic has an existing exclusive producer: a") for mode in ALONE),
        *((mode, EXCLUSIVE, FENCED, "Topic has an existing exclusive producer: a") for mode in ALONE),
    ],
)
def test_who_is_refused_beside_whom(topic: str, first: Any, second: Any, error: int, text: str) -> None:
    box = Box()
    one, two = box.client(), box.client()
    opened(one, first, topic=topic, producer_name="a")
    refused = opened(two, second, topic=topic, producer_name="b")
    assert (refused.error, refused.message) == (error, text)
    assert one.names() == []
    assert opened(two, second, 2, topic, producer_name="b").error == error
    one.request("close_producer", producer_id=1)
    assert opened(two, second, topic=topic).producer_ready


@BOTH
@pytest.mark.parametrize("mode", ALONE)
def test_alone_on_the_topic_each_mode_gets_it_at_once(topic: str, mode: Any) -> None:
    box = Box()
    reply = opened(box.client(), mode, topic=topic)
    assert reply.producer_ready
    assert epoch(reply) == 0


@BOTH
def test_the_epoch_is_told_to_whoever_comes_once_there_is_one(topic: str) -> None:
    box = Box()
    client = box.client()
    assert epoch(opened(client, SHARED, topic=topic)) is None
    client.request("close_producer", producer_id=1)
    for expected, mode in enumerate(ALONE):
        assert epoch(opened(client, mode, topic=topic)) == expected
        client.request("close_producer", producer_id=1)
    assert epoch(opened(client, SHARED, 1, topic)) == 2
    assert epoch(opened(client, SHARED, 2, topic)) == 2


@BOTH
def test_a_producer_that_is_open_is_told_so_again_without_an_epoch(topic: str) -> None:
    client = Box().client()
    name = opened(client, EXCLUSIVE, topic=topic).producer_name
    again = opened(client, EXCLUSIVE, topic=topic)
    assert again.producer_ready
    assert (again.producer_name, again.last_sequence_id, epoch(again)) == (name, -1, None)


# Waiting producers


@BOTH
@pytest.mark.parametrize("present", [SHARED, *ALONE])
def test_one_that_waits_hears_twice_on_the_same_request(topic: str, present: Any) -> None:
    box = Box()
    one, two = box.client(), box.client()
    before = epoch(opened(one, present, topic=topic))
    two.ask("producer", topic=topic, producer_id=1, request_id=7, producer_name="b", producer_access_mode=WAIT)
    first = two.take("producer_success")
    assert (first.request_id, first.producer_name, first.producer_ready) == (7, "b", False)
    assert (first.last_sequence_id, epoch(first)) == (-1, None)
    one.request("close_producer", producer_id=1)
    second = two.take("producer_success")
    assert (second.request_id, second.producer_name, second.producer_ready) == (7, "b", True)
    assert epoch(second) == (0 if before is None else before + 1)
    two.send(0)
    assert two.take("send_receipt").sequence_id == 0


@BOTH
def test_those_that_wait_are_served_in_the_order_they_came(topic: str) -> None:
    box = Box()
    clients = [box.client() for _ in range(4)]
    for client in clients:
        opened(client, WAIT, topic=topic)
    for i, client in enumerate(clients[1:]):
        assert [each.names() for each in clients[1:]] == [[], [], []]
        clients[i].request("close_producer", producer_id=1)
        assert epoch(client.take("producer_success")) == i + 1


@BOTH
def test_the_last_of_shared_producers_makes_room(topic: str) -> None:
    box = Box()
    one, two = box.client(), box.client()
    opened(one, SHARED, 1, topic)
    opened(one, SHARED, 2, topic)
    opened(two, WAIT, 1, topic)
    one.request("close_producer", producer_id=1)
    assert two.names() == []
    one.request("close_producer", producer_id=2)
    assert two.names() == ["producer_success"]


@BOTH
@pytest.mark.parametrize(("mode", "error"), [(SHARED, BUSY), (EXCLUSIVE, FENCED)])
def test_nobody_comes_in_past_one_that_waits(topic: str, mode: Any, error: int) -> None:
    box = Box()
    client = box.client()
    opened(client, SHARED, 1, topic)
    opened(client, WAIT, 2, topic)
    refused = opened(client, mode, 3, topic)
    assert (refused.error, refused.message) == (error, "Topic has an existing exclusive producer: null")


@BOTH
def test_one_that_waits_closes_and_is_not_served(topic: str) -> None:
    box = Box()
    one, two, three = box.client(), box.client(), box.client()
    opened(one, EXCLUSIVE, topic=topic)
    opened(two, WAIT, topic=topic)
    opened(three, WAIT, topic=topic)
    assert opened(two, WAIT, topic=topic).message == "Producer is already present on the connection"
    two.names()
    two.ask("close_producer", producer_id=1, request_id=7)
    refused = two.take("error")
    assert (refused.error, refused.message) == (NOT_READY, "The producer was closed before it was open")
    assert two.take("success").request_id == 7
    one.request("close_producer", producer_id=1)
    assert two.names() == []
    assert epoch(three.take("producer_success")) == 1
    assert not opened(two, WAIT, topic=topic).producer_ready


@BOTH
def test_connections_that_go_leave_the_queue_and_make_room(topic: str) -> None:
    box = Box()
    one, two, three = box.client(), box.client(), box.client()
    opened(one, EXCLUSIVE, 1, topic)
    opened(one, WAIT, 2, topic)
    opened(two, WAIT, 1, topic)
    opened(three, WAIT, 1, topic)
    two.cnx.closed(box.now)
    one.cnx.closed(box.now)
    box.turn()
    assert two.names() == one.names() == []
    assert epoch(three.take("producer_success")) == 1


def test_a_message_of_one_that_waits_costs_the_connection() -> None:
    box = Box()
    one, two = box.client(), box.client()
    opened(one, EXCLUSIVE)
    opened(two, WAIT)
    two.send(0)
    assert two.closed


@BOTH
def test_those_that_wait_for_a_topic_that_goes_are_to_try_again(topic: str) -> None:
    box = Box()
    one, two = box.client(), box.client()
    opened(one, EXCLUSIVE, topic=topic)
    opened(two, WAIT, topic=topic)
    box.broker.topics.delete(parse_topic(topic), box.now, force=True)
    box.turn()
    assert one.names() == ["close_producer"]
    refused = two.take("error")
    assert (refused.error, refused.message) == (NOT_READY, "Topic is temporarily unavailable")
    assert row_of(box, topic) is None
    assert epoch(opened(two, WAIT, topic=topic)) == 0


# Fencing


@BOTH
@pytest.mark.parametrize("present", [SHARED, *ALONE])
def test_fencing_lets_everybody_go_and_takes_the_topic(topic: str, present: Any) -> None:
    box = Box()
    one, two, three = box.client(), box.client(), box.client()
    before = epoch(opened(one, present, topic=topic))
    two.ask("producer", topic=topic, producer_id=1, request_id=7, producer_access_mode=WAIT)
    two.take("producer_success")
    reply = opened(three, FENCING, topic=topic)
    assert reply.producer_ready
    assert epoch(reply) == (0 if before is None else before + 1)
    refused = two.take("error")
    assert (refused.request_id, refused.error, refused.message) == (7, FENCED, "Fenced out")
    assert (one.names(), two.names()) == ([], [])  # the fenced producer is not notified
    one.send(0)
    assert one.closed
    two.request("close_producer", producer_id=1)
    three.send(0)
    assert three.names() == ["send_receipt"]


@BOTH
def test_one_that_fenced_is_fenced_in_turn(topic: str) -> None:
    box = Box()
    one, two = box.client(), box.client()
    assert epoch(opened(one, FENCING, topic=topic)) == 0
    assert epoch(opened(two, FENCING, topic=topic)) == 1
    assert epoch(opened(one, FENCING, topic=topic)) == 2
    assert opened(two, EXCLUSIVE, topic=topic).error == FENCED


def test_what_was_sent_before_the_fencing_is_stored_and_nothing_after_it() -> None:
    box = Box()
    old, new, reader = box.client(), box.client(), box.client()
    reader.subscribe()
    reader.flow(10)
    opened(old, EXCLUSIVE)
    box.auto = False
    old.send(0, b"before")
    new.ask("producer", topic=TOPIC, producer_id=1, request_id=1, producer_access_mode=FENCING)
    old.send(1, b"after")
    refused = old.take("send_error")
    assert (refused.sequence_id, refused.error, refused.message) == (1, 2, "Producer is closed")
    assert new.names() == []
    box.commit()
    assert old.take("send_receipt").sequence_id == 0
    old.send(2, b"after")
    assert old.closed
    box.flush()
    assert epoch(new.take("producer_success")) == 1
    box.auto = True
    new.send(0, b"mine")
    new.take("send_receipt")
    assert [entry for _, entry in reader.received()] == [0, 1]


def test_a_fenced_one_whose_messages_fail_is_told_so_first() -> None:
    box = Box()
    old, new = box.client(), box.client()
    opened(old, EXCLUSIVE)
    box.auto = False
    old.send(0)
    new.ask("producer", topic=TOPIC, producer_id=1, request_id=1, producer_access_mode=FENCING)
    box.commit(OSError("broken"))
    assert old.names() == ["send_error"]
    assert new.names() == []
    box.auto = True
    box.advance(1)
    assert epoch(new.take("producer_success")) == 1


def test_a_fenced_one_that_closes_meanwhile_hears_of_what_it_sent_first_and_may_use_its_number_again() -> None:
    box = Box()
    old, new = box.client(), box.client()
    opened(old, EXCLUSIVE)
    box.auto = False
    old.send(0)
    new.ask("producer", topic=TOPIC, producer_id=1, request_id=1, producer_access_mode=FENCING)
    old.ask("close_producer", producer_id=1, request_id=8)
    old.send(1)
    old.ask("producer", topic=TOPIC + "2", producer_id=1, request_id=9)
    assert old.names() == ["send_error"]
    box.commit()
    assert old.names() == ["send_receipt", "success", "producer_success"]


def test_one_that_is_fenced_before_its_epoch_is_durable_gets_the_error() -> None:
    box = Box(auto=False)
    box.commit()
    one, two = box.client(), box.client()
    one.ask("producer", topic=TOPIC, producer_id=1, request_id=1, producer_access_mode=EXCLUSIVE)
    two.ask("producer", topic=TOPIC, producer_id=1, request_id=1, producer_access_mode=FENCING)
    box.commit()
    assert one.take("error").error == FENCED
    assert epoch(two.take("producer_success")) == 1
    assert (one.names(), two.names()) == ([], [])


# Reconnecting


@BOTH
@pytest.mark.parametrize("mode", ALONE)
def test_who_comes_back_with_the_epoch_of_the_topic_has_it_again(topic: str, mode: Any) -> None:
    box = Box()
    one, two = box.client(), box.client()
    opened(one, SHARED, topic=topic)
    assert epoch(opened(one, FENCING, 2, topic)) == 0
    one.cnx.closed(box.now)
    assert epoch(opened(two, mode, topic=topic, topic_epoch=0)) == 0
    two.request("close_producer", producer_id=1)
    assert epoch(opened(two, mode, topic=topic)) == 1


@BOTH
@pytest.mark.parametrize("mode", ALONE)
@pytest.mark.parametrize("held", [False, True])
def test_who_comes_back_with_an_older_epoch_stays_out(topic: str, mode: Any, held: bool) -> None:
    box = Box()
    one, two = box.client(), box.client()
    for _ in range(2):
        opened(one, EXCLUSIVE, topic=topic, producer_name="a")
        if not held:
            one.request("close_producer", producer_id=1)
        else:
            opened(two, FENCING, 2, topic, producer_name="b")
            break
    refused = opened(one, mode, 3, topic, topic_epoch=0)
    expected = "Topic epoch has already moved. Current epoch: 1, Producer epoch: 0"
    if held and mode == EXCLUSIVE:
        expected = "Topic has an existing exclusive producer: b"
    assert (refused.error, refused.message) == (FENCED, expected)
    assert two.names() == []  # the current exclusive producer is unaffected


@BOTH
def test_an_epoch_ahead_of_the_topic_becomes_its_own(topic: str) -> None:
    box = Box()
    client = box.client()
    assert epoch(opened(client, EXCLUSIVE, topic=topic, topic_epoch=5)) == 5
    client.request("close_producer", producer_id=1)
    assert epoch(opened(client, EXCLUSIVE, topic=topic)) == 6


@BOTH
def test_the_epoch_does_not_go_back_with_one_that_waited(topic: str) -> None:
    box = Box()
    one, two, three, four = (box.client() for _ in range(4))
    assert epoch(opened(one, EXCLUSIVE, topic=topic)) == 0
    one.cnx.closed(box.now)
    opened(two, SHARED, topic=topic)
    opened(three, WAIT, topic=topic)
    opened(four, WAIT, topic=topic, topic_epoch=0)  # equal to the current epoch, which has not advanced yet
    two.request("close_producer", producer_id=1)
    assert epoch(three.take("producer_success")) == 1
    three.request("close_producer", producer_id=1)
    assert four.take("error").error == FENCED
    assert epoch(opened(two, EXCLUSIVE, topic=topic)) == 2


# Durability


@pytest.mark.parametrize("mode", ALONE)
def test_nobody_is_told_an_epoch_that_is_not_durable(mode: Any) -> None:
    box = Box()
    client = box.client()
    opened(client, SHARED)
    client.request("close_producer", producer_id=1)
    box.auto = False
    client.ask("producer", topic=TOPIC, producer_id=1, request_id=1, producer_access_mode=mode)
    assert client.names() == []
    assert epoch(opened(Box(deepcopy(box.disk)).client(), EXCLUSIVE)) == 0
    box.commit()
    assert epoch(client.take("producer_success")) == 0


def test_the_epoch_of_the_next_in_turn_is_durable_before_it_is_told() -> None:
    box = Box()
    one, two = box.client(), box.client()
    opened(one, EXCLUSIVE)
    opened(two, WAIT)
    box.auto = False
    one.cnx.closed(box.now)
    box.flush()
    assert two.names() == []
    box.commit()
    assert epoch(two.take("producer_success")) == 1


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_epoch_survives_a_crash(checkpoint: bool) -> None:
    box = Box()
    client = box.client()
    for _ in range(3):
        opened(client, EXCLUSIVE)
        client.request("close_producer", producer_id=1)
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
    after = box.restart()
    assert opened(after.client(), EXCLUSIVE, topic_epoch=1).error == FENCED
    assert epoch(opened(after.client(), EXCLUSIVE, topic_epoch=2)) == 2
    assert epoch(opened(after.restart().client(), SHARED)) == 2
    assert epoch(opened(after.restart().client(), EXCLUSIVE)) == 3


def test_the_epoch_survives_unloading_and_other_changes_of_the_topics_row() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=1, keepAliveIntervalSeconds=1000)
    client = box.client()
    opened(client, EXCLUSIVE)
    for i in range(3):
        client.send(i)  # schedules a deadline
    client.names()
    client.request("close_producer", producer_id=1)
    box.advance(200)
    client.names()
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    row = row_of(box)
    assert epoch(opened(client, EXCLUSIVE)) == 1
    assert {**row_of(box), "epoch": 0} == row


def test_a_topic_that_somebody_waits_for_stays_in_memory() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=60, keepAliveIntervalSeconds=1000)
    one, two = box.client(), box.client()
    opened(one, SHARED)
    opened(two, WAIT)
    box.advance(200)
    assert two.names() == []
    one.request("close_producer", producer_id=1)
    assert two.names() == ["producer_success"]


def test_the_epoch_of_a_topic_that_is_not_kept_goes_with_the_box() -> None:
    box = Box()
    assert epoch(opened(box.client(), EXCLUSIVE, topic=FLEETING)) == 0
    assert epoch(opened(box.restart().client(), EXCLUSIVE, topic=FLEETING)) == 0


def test_a_new_topic_of_the_same_name_starts_over() -> None:
    box = Box()
    client = box.client()
    opened(client, EXCLUSIVE)
    box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
    box.turn()
    assert epoch(opened(client, EXCLUSIVE)) == 0
