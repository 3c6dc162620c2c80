"""Producers and publishing: ``broker.handlers.produce``, ``broker.topic`` and group commit."""

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import TOPIC, Box


def test_a_receipt_leaves_after_the_commit_and_not_before() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    box.auto = False
    client.send(0)
    client.send(1)
    assert client.names() == []
    assert box.commit()
    first, second = client.take("send_receipt"), client.take("send_receipt")
    assert (first.sequence_id, second.sequence_id) == (0, 1)
    assert second.message_id.entryId == first.message_id.entryId + 1


def test_nobody_sees_an_entry_before_its_commit() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    client.subscribe()
    client.flow(10)
    box.auto = False
    client.send(0)
    last = client.request("getLastMessageId", consumer_id=1)
    assert last.last_message_id.entryId == 2**64 - 1
    assert client.names() == []
    box.commit()
    assert client.names() == ["send_receipt", "message"]


def test_what_gathers_during_a_commit_goes_together_with_the_next() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    box.auto = False
    client.send(0)
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    client.send(1)
    client.send(2)
    assert box.broker.take_batch(box.now) is None
    box.engine.commit(batch)
    box.broker.committed(batch, box.now)
    box.commit()
    assert [client.take("send_receipt").sequence_id for _ in range(3)] == [0, 1, 2]


def test_a_failed_commit_refuses_its_messages_and_those_behind_it_and_closes_the_producer() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    client.send(0)
    client.take("send_receipt")
    box.auto = False
    client.send(1)
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    client.send(2)
    box.broker.committed(batch, box.now, PersistenceError("no space left"))
    box.flush()
    for sequence_id in (1, 2):
        error = client.take("send_error")
        assert (error.sequence_id, error.error) == (sequence_id, 2)
        assert "no space left" in error.message
    assert client.take("close_producer").producer_id == 1
    box.auto = True
    box.advance(1)
    client.producer(1)
    client.send(1)
    assert client.take("send_receipt").message_id.entryId == 1
    reader = box.restart().client()
    reader.subscribe()
    reader.flow(10)
    assert [entry for _, entry in reader.received()] == [0, 1]


def test_metadata_in_a_failed_commit_is_tried_again() -> None:
    box = Box(auto=False)
    box.commit()
    client = box.client()
    client.ask("producer", topic=TOPIC, producer_id=1, request_id=1)
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    box.broker.committed(batch, box.now, PersistenceError("broken"))
    box.flush()
    assert client.names() == []
    box.auto = True
    box.advance(1)
    assert client.names() == ["producer_success"]
    assert box.restart().broker.topics.exists(parse_topic(TOPIC))


def test_generated_names_differ_over_restarts() -> None:
    box = Box()
    client = box.client()
    names = {client.producer(i).producer_name for i in range(3)}
    again = box.restart().client()
    names |= {again.producer(i).producer_name for i in range(3)}
    assert len(names) == 6


def test_what_is_refused_without_a_commit_is_told_after_the_receipts_of_what_came_before() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    box.auto = False
    client.send(0)
    box.broker.commits.housekeeping.store_is_full("the disk is full", box.now)
    client.send(1)
    client.send(2)
    assert client.inbox == [], "clients give up the connection over an error, and send again what has no receipt"
    box.commit()
    assert client.take("send_receipt").sequence_id == 0
    assert client.take("send_error").sequence_id == 1
    assert client.names() == ["close_producer"]


def test_a_name_that_is_taken_is_refused_and_free_again_after_close() -> None:
    box = Box()
    one, two = box.client(), box.client()
    assert one.producer(1, producer_name="n").producer_name == "n"
    assert two.producer(1, producer_name="n") is None  # only after the owner has proved to be alive
    assert one.names() == ["ping"]
    one.ask("pong")
    assert two.take("error").error == 16
    assert one.producer(2, producer_name="n").error == 16  # the same connection needs no liveness check
    one.request("close_producer", producer_id=1)
    assert two.producer(1, producer_name="n").producer_name == "n"


def test_a_dead_connection_that_holds_a_name_is_closed() -> None:
    box = Box()
    one, two = box.client(), box.client()
    one.producer(1, producer_name="n")
    two.producer(1, producer_name="n")
    box.advance(4)
    assert two.names() == []
    box.advance(2)
    assert one.closed
    assert two.take("producer_success").producer_name == "n"


def test_two_that_want_the_name_of_a_dead_connection_get_one_of_it() -> None:
    box = Box()
    one, two, three = box.client(), box.client(), box.client()
    one.producer(1, producer_name="n")
    two.producer(1, producer_name="n")
    box.advance(1)
    three.producer(1, producer_name="n")
    box.advance(5)
    assert two.take("producer_success").producer_name == "n"
    assert two.names() == ["ping"]
    two.ask("pong")
    assert three.take("error").error == 16


def test_who_waits_for_a_name_may_go_meanwhile() -> None:
    box = Box()
    one, two, three = box.client(), box.client(), box.client()
    one.producer(1, producer_name="n")
    two.producer(1, producer_name="n")
    three.producer(1, producer_name="n")
    assert two.producer(1, producer_name="n").error == 6
    two.request("close_producer", producer_id=1)
    three.cnx.closed(box.now)
    assert two.take("error").message == "The producer was closed before it was open"
    box.advance(6)
    assert two.names() == three.names() == []
    assert not next(iter(box.broker.topics)).producers


def test_a_sign_of_life_on_time_is_enough_whenever_the_keep_alive_comes() -> None:
    box = Box(keepAliveIntervalSeconds=4)
    one, two = box.client(), box.client()
    one.producer(1, producer_name="n")
    box.advance(3)
    two.producer(1, producer_name="n")
    one.ask("pong")
    assert two.take("error").error == 16
    box.advance(4)
    one.ask("pong")
    box.advance(3)
    assert not one.closed


def test_without_liveness_checks_a_taken_name_is_refused_at_once() -> None:
    box = Box(connectionLivenessCheckTimeoutMillis=0)
    box.client().producer(1, producer_name="n")
    assert box.client().producer(1, producer_name="n").error == 16


@pytest.mark.parametrize("given", [False, True])
def test_who_comes_back_before_its_old_connection_is_noticed_to_be_dead_gets_its_name_then(given: bool) -> None:
    box = Box()
    one, two = box.client(), box.client()
    name = one.producer(1, user_provided_producer_name=given).producer_name
    assert two.producer(1, producer_name=name, user_provided_producer_name=given, epoch=1) is None
    box.advance(6)
    assert two.take("producer_success").producer_name == name


def test_an_empty_name_is_a_name_and_none_is_made_up() -> None:
    client = Box().client()
    assert client.producer(1, producer_name="").producer_name == ""
    assert client.producer(2, producer_name="").error == 16
    assert client.producer(3).producer_name


def test_what_is_sent_behind_a_close_is_refused_and_then_costs_the_connection() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    box.auto = False
    client.send(0)
    client.ask("close_producer", producer_id=1, request_id=8)
    client.ask("close_producer", producer_id=1, request_id=9)
    client.send(1)
    refused = client.take("send_error")
    assert (refused.sequence_id, refused.error, refused.message) == (1, 2, "Producer is closed")
    assert client.names() == []
    box.commit()
    assert client.take("send_receipt").sequence_id == 0
    assert [client.take("success").request_id for _ in range(2)] == [8, 9]
    client.send(2)
    assert client.closed


def test_close_is_answered_after_the_last_receipt() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    box.auto = False
    client.send(0)
    client.ask("close_producer", producer_id=1, request_id=9)
    assert client.names() == []
    box.commit()
    assert client.names() == ["send_receipt", "success"]


def test_closing_what_is_not_open_succeeds() -> None:
    client = Box().client()
    client.ask("close_producer", producer_id=1, request_id=1)
    client.ask("close_consumer", consumer_id=1, request_id=2)
    assert client.names() == ["success", "success"]


def test_a_producer_closed_while_it_opens_gets_its_answer() -> None:
    box = Box(auto=False)
    box.commit()
    client = box.client()
    client.ask("producer", topic=TOPIC, producer_id=1, request_id=1)
    client.ask("close_producer", producer_id=1, request_id=2)
    box.commit()
    assert sorted(client.names()) == ["error", "success"]
    assert not next(iter(box.broker.topics)).producers


def test_refusals() -> None:
    client = Box().client()
    assert client.producer(1, "persistent://nobody/default/t").error == 11
    assert client.producer(1, "persistent://public/nothing/t").error == 11
    assert client.producer(1, "queue://public/default/t").error == 17
    assert Box(allowAutoTopicCreation=False).client().producer(1).error == 11
    assert Box(enablePersistentTopics=False).client().producer(1).error == 22


def test_an_initial_subscription_is_there_from_the_first_message() -> None:
    client = Box().client()
    client.producer(1, initial_subscription_name="dlq")
    client.send(0)
    client.take("send_receipt")
    client.subscribe("dlq", initialPosition=0)
    client.flow(1)
    assert len(client.received()) == 1


def test_ledgers_roll_over_and_order_is_kept() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=10)
    client = box.client()
    client.subscribe()  # closed ledgers are trimmed if there is no subscription
    sent = client.publish(35)
    assert len({ledger for ledger, _ in sent}) == 4
    assert sent == sorted(sent)
    reader = box.restart().client()
    reader.subscribe()
    reader.flow(100)
    assert reader.received() == sent


def test_non_persistent_receipts_come_at_once_and_only_who_has_room_gets_the_message() -> None:
    box = Box(auto=False)
    box.commit()
    client = box.client()
    topic = "non-persistent://public/default/n"
    client.producer(1, topic)
    client.send(0)
    assert client.take("send_receipt").message_id.entryId == 0
    client.subscribe(topic=topic)
    client.send(1, b"dropped")
    client.flow(1)
    client.send(2, b"kept")
    client.send(3, b"dropped")
    assert client.names() == ["send_receipt", "message", "send_receipt", "send_receipt"]


def test_a_connection_with_too_many_unreceipted_messages_is_overdrawn_until_they_are_receipted() -> None:
    box = Box(maxPendingPublishRequestsPerConnection=3)
    client = box.client()
    client.producer(1)
    box.auto = False
    overdrawn = []
    for i in range(4):
        client.send(i)
        overdrawn.append(client.cnx.overdrawn)
    box.commit()
    overdrawn.append(client.cnx.overdrawn)
    assert overdrawn == [False, False, False, True, False]
