"""Faults on a connection: each action on commands and responses, and the traffic that it must not affect."""

from typing import Any

import pytest

from pulsarbox.broker.faults.faults import Counted
from pulsarbox.broker.faults.faulty_connection import FaultyCnx
from pulsarbox.broker.faults.rule import rule_of
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData, ServerError
from tests.unit.broker.playbook import TOPIC, Box, Client


def faulty(**settings: Any) -> Box:
    return Box(faultInjectionEnabled=True, **settings)


def add(box: Box, action: str, **rule: Any) -> Counted:
    assert box.broker.faults is not None
    return box.broker.faults.add(rule_of({"action": action, **rule}))


def receipts(client: Client) -> list[int]:
    """Return the sequence IDs of the received receipts."""
    found = []
    while client.inbox:
        found.append(client.take("send_receipt").sequence_id)
    return found


def send(client: Client, *sequence_ids: int, producer_id: int = 1) -> None:
    for sequence_id in sequence_ids:
        client.send(sequence_id, b"%d" % sequence_id, producer_id)


def stored(box: Box) -> list[bytes]:
    """Return the messages received by a new consumer."""
    reader = box.client()
    reader.subscribe("check", consumer_id=9)
    reader.flow(100, consumer_id=9)
    bodies = [payload.rpartition(b"p")[2][-1:] for data, payload in reader.inbox if payload]
    reader.inbox.clear()
    reader.cnx.closed(box.now)
    box.turn()
    return bodies


def test_without_the_setting_connections_are_plain() -> None:
    box = Box()
    assert box.broker.faults is None
    assert not isinstance(box.client().cnx, FaultyCnx)


def test_an_error_at_the_nth_message_and_only_there() -> None:
    box = faulty()
    client = box.client()
    client.producer()
    rule = add(box, "error", command="send", nth=2, error="PersistenceError")
    send(client, 0, 1, 2)
    assert client.take("send_receipt").sequence_id == 0
    refused = client.take("send_error")
    assert (refused.sequence_id, refused.error) == (1, ServerError.PersistenceError)
    assert receipts(client) == [2]
    assert stored(box) == [b"0", b"2"]
    assert (rule.matched, rule.fired) == (3, 1)


@pytest.mark.parametrize(
    ("field", "fields", "answer"),
    [
        ("lookupTopic", {"topic": TOPIC}, "lookupTopicResponse"),
        ("partitionMetadata", {"topic": TOPIC}, "partitionMetadataResponse"),
        ("producer", {"topic": TOPIC, "producer_id": 5}, "error"),
        ("subscribe", {"topic": TOPIC, "consumer_id": 5, "subscription": "s", "subType": 0}, "error"),
        ("getTopicsOfNamespace", {"namespace": "public/default"}, "error"),
        ("getSchema", {"topic": TOPIC}, "getSchemaResponse"),
        ("consumerStats", {"consumer_id": 1}, "consumerStatsResponse"),
        ("ack", {"consumer_id": 1, "ack_type": 0, "message_id": [MessageIdData(ledgerId=1, entryId=1)]}, "ackResponse"),
    ],
)
def test_an_error_comes_in_the_form_of_its_command(field: str, fields: dict[str, Any], answer: str) -> None:
    box = faulty()
    client = box.client()
    client.subscribe("mine")
    add(box, "error", error="ServiceNotReady")
    client.ask(field, request_id=77, **fields)
    told = client.take(answer)
    code = getattr(told, "error", None) or getattr(told, "error_code", None)
    assert (told.request_id, code) == (77, ServerError.ServiceNotReady)


def test_a_handshake_can_be_refused() -> None:
    box = faulty()
    rule = add(box, "error", command="connect", client="te*", error="AuthenticationError")
    client = box.client(connect=False)
    client.ask("connect", client_version="test", protocol_version=21)
    assert client.take("error").error == ServerError.AuthenticationError
    assert rule.fired == 1


def test_a_message_that_is_dropped_is_not_stored_and_one_whose_receipt_is_dropped_is() -> None:
    box = faulty()
    client = box.client()
    client.producer()
    add(box, "drop", command="send", nth=1)
    add(box, "drop", command="send", at="answer", nth=2)
    send(client, 0, 1, 2, 3)
    assert receipts(client) == [1, 3]
    assert stored(box) == [b"1", b"2", b"3"]


def test_an_error_after_the_message_was_stored() -> None:
    box = faulty()
    client = box.client()
    client.producer()
    add(box, "error", command="send", at="answer", error="TopicNotFound")
    send(client, 0)
    assert client.take("send_error").error == ServerError.TopicNotFound
    assert stored(box) == [b"0"]


def test_a_delayed_message_holds_back_its_producer_and_nobody_else() -> None:
    box = faulty()
    client = box.client()
    client.producer(1)
    client.producer(2)
    add(box, "delay", command="send", delay="2s", first=1)
    send(client, 0, 1)
    client.ask("close_producer", producer_id=1, request_id=9)
    send(client, 5, producer_id=2)
    assert receipts(client) == [5]
    box.advance(1.9)
    assert client.inbox == []
    box.advance(0.2)
    assert [client.take("send_receipt").sequence_id for _ in range(2)] == [0, 1]
    assert client.take("success").request_id == 9
    assert stored(box) == [b"5", b"0", b"1"]


def test_what_waits_behind_a_delay_may_be_delayed_in_its_turn() -> None:
    box = faulty()
    client = box.client()
    client.producer()
    add(box, "delay", command="send", delay=1000)
    send(client, 0, 1, 2)
    for expected in ([0], [1], [2]):
        box.advance(1.01)
        assert receipts(client) == expected


def test_a_delayed_receipt_holds_back_those_behind_it_but_not_their_disk() -> None:
    box = faulty()
    client = box.client()
    client.producer(1)
    client.producer(2)
    add(box, "delay", command="send", at="answer", delay="2s", first=1)
    send(client, 0, 1)
    send(client, 7, producer_id=2)
    assert receipts(client) == [7]
    assert stored(box) == [b"0", b"1", b"7"]
    box.advance(2.1)
    assert receipts(client) == [0, 1]


def test_no_receipt_leaves_before_its_disk_has_it() -> None:
    box = faulty()
    client = box.client()
    client.producer()
    add(box, "duplicate", command="send")
    add(box, "delay", command="send", at="answer", delay=1)
    box.auto = False
    send(client, 0)
    box.advance(10)
    assert client.inbox == []
    box.auto = True
    box.turn()
    assert receipts(client) == [0, 0]


def test_a_receipt_comes_twice() -> None:
    box = faulty()
    client = box.client()
    client.producer()
    add(box, "duplicate", command="send", every=2)
    send(client, 0, 1, 2)
    assert receipts(client) == [0, 1, 1, 2]
    assert stored(box) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("at", ["request", "answer"])
def test_a_connection_is_cut_before_or_after_the_message_is_stored(at: str) -> None:
    box = faulty()
    client, other = box.client(), box.client()
    client.producer()
    add(box, "disconnect", command="send", nth=2, at=at)
    send(client, 0, 1)
    assert client.closed and not other.closed
    assert receipts(client) == [0]
    assert stored(box) == ([b"0"] if at == "request" else [b"0", b"1"])


def test_acknowledgements_are_matched_by_subscription_and_lost() -> None:
    box = faulty()
    client = box.client()
    sent = client.publish(2)
    for number, name in enumerate(("a", "b"), start=1):
        client.subscribe(name, consumer_id=number)
        client.flow(10, consumer_id=number)
    client.inbox.clear()
    rule = add(box, "drop", command="ack", subscription="a", topic=TOPIC)
    assert client.ack(sent[0], consumer_id=1) is None
    assert client.ack(sent[0], consumer_id=2) is not None
    assert rule.fired == 1


def test_a_client_that_goes_takes_its_delays_along() -> None:
    box = faulty()
    client = box.client()
    client.producer()
    add(box, "delay", command="send", delay="1s", first=1)
    send(client, 0)
    client.cnx.closed(box.now)
    box.advance(2)
    assert stored(box) == []


def test_keep_alive_is_left_alone() -> None:
    box = faulty()
    client = box.client()
    add(box, "drop")
    client.ask("ping")
    assert client.names() == ["pong"]


def test_without_rules_all_is_as_ever_and_broken_commands_are_the_connections() -> None:
    box = faulty()
    client = box.client()
    sent = client.publish(3)
    assert len(sent) == 3
    add(box, "drop", topic="elsewhere")
    client.raw(b"\x00\x00\x00\x06\x00\x00\x00\x02\xff\xff")
    assert client.closed
