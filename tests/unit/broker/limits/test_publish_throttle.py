"""Publish throttling delays the receipts of one producer only, and omits none."""

from typing import Any

import pytest

from tests.unit.broker.limits.publishing import NON_PERSISTENT, OTHER, TEN, flood, opened, producer_of, receipts
from tests.unit.broker.limits.rates import change, publish_rate, set_namespace, set_topic, topic_of
from tests.unit.broker.playbook import TOPIC, Box


@pytest.mark.parametrize("topic", [TOPIC, NON_PERSISTENT])
@pytest.mark.parametrize(
    "settings",
    [TEN, {"brokerPublisherThrottlingMaxMessageRate": 10}],
)
def test_receipts_leave_as_fast_as_the_rate(topic: str, settings: dict[str, Any]) -> None:
    box = Box(**settings)
    client = opened(box, topic)
    flood(client, 35)
    found = [len(receipts(client))]
    for _ in range(4):
        box.advance(1)
        found.append(len(receipts(client)))
    assert found == [10, 10, 10, 5, 0]
    assert client.cnx.held_bytes == 0


def test_they_come_in_order_and_each_once() -> None:
    box = Box(**TEN)
    client = opened(box)
    flood(client, 35)
    box.advance(5)
    assert receipts(client) == [(1, i) for i in range(35)]


def test_who_stays_below_the_rate_waits_for_nothing() -> None:
    box = Box(**TEN)
    client = opened(box)
    for i in range(30):
        flood(client, 1, first=i)
        assert receipts(client) == [(1, i)]
        box.advance(0.1)
    assert topic_of(box).limits.publish_limited == 0


def test_what_is_stored_is_seen_before_its_receipt_leaves() -> None:
    box = Box(**TEN)
    reader = box.client()
    reader.subscribe()
    reader.flow(1000)
    client = opened(box)
    flood(client, 30)
    assert len(receipts(client)) == 10
    assert len(reader.received()) == 30


def test_bytes_and_batches() -> None:
    box = Box()
    set_topic(box, "publishRate", publish_rate(10, 100_000))
    client = opened(box)
    flood(client, 4, batch=20)
    found = [len(receipts(client))]
    for _ in range(8):
        box.advance(1)
        found.append(len(receipts(client)))
    assert found == [1, 0, 1, 0, 1, 0, 1, 0, 0], "twenty messages take two periods"
    set_topic(box, "publishRate", publish_rate(-1, 1000))
    flood(client, 3, first=10, body=b"x" * 3000)
    assert len(receipts(client)) == 1
    box.advance(20)
    assert len(receipts(client)) == 2


def test_other_producers_of_the_connection_do_not_wait() -> None:
    box = Box()
    set_topic(box, "publishRate", publish_rate(10))
    client = opened(box)
    opened(box, OTHER, 2, client)
    flood(client, 2000)
    assert len(receipts(client)) == 10
    assert not client.cnx.overdrawn, "receipts that are held back are not those that wait for the disk"
    flood(client, 100, producer_id=2)
    assert receipts(client) == [(2, i) for i in range(100)]


def test_producers_of_a_topic_get_the_same_each() -> None:
    box = Box(**TEN)
    flooding, modest = opened(box), opened(box)
    flood(flooding, 500)
    flood(modest, 5)
    receipts(flooding)
    box.advance(1)
    assert (len(receipts(flooding)), len(receipts(modest))) == (5, 5)
    box.advance(1)
    assert len(receipts(flooding)) == 10


def test_the_box_a_topic_and_a_group_hold_at_once() -> None:
    box = Box(brokerPublisherThrottlingMaxMessageRate=12)
    box.broker.put_resource_group("g", {"publishRateInMsgs": 8}, box.now)
    set_topic(box, "publishRate", publish_rate(5))
    set_namespace(box, "resource_group_name", "g")
    box.broker.tenants.create_namespace("public/free", None)
    clients = [opened(box), opened(box, OTHER), opened(box, "persistent://public/free/t")]
    for client in clients:
        flood(client, 100)
    totals = [0, 0, 0]
    for _ in range(10):
        box.advance(1)
        counts = [len(receipts(client)) for client in clients]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
    assert totals[0] <= 55
    assert totals[0] + totals[1] <= 88
    assert 120 <= sum(totals) <= 132
    assert min(totals) >= 30


def test_precedence_and_changes_hold_at_once() -> None:
    box = Box(**TEN)
    client = opened(box)
    flood(client, 100)
    assert len(receipts(client)) == 10
    cluster = box.broker.settings.clusterName
    set_namespace(box, "publishMaxMessageRate", {cluster: publish_rate(20)})
    assert len(receipts(client)) == 10
    set_topic(box, "publishRate", publish_rate(20))
    assert len(receipts(client)) == 0, "the same again gives nothing away"
    box.advance(1)
    assert len(receipts(client)) == 20
    set_topic(box, "publishRate", None)
    set_namespace(box, "publishMaxMessageRate", None)
    change(box, "maxPublishRatePerTopicInMessages", "0")
    assert len(receipts(client)) == 60
    assert producer_of(client).held is None


def test_a_limit_that_comes_while_messages_are_on_their_way() -> None:
    box = Box(auto=False)
    box.commit()
    client = box.client()
    client.ask("producer", request_id=1, topic=TOPIC, producer_id=1)
    box.commit()
    flood(client, 30)
    box.broker.policies.set_topic(topic_of(box).name, "publishRate", publish_rate(10), box.now)
    flood(client, 30, first=30)
    box.commit()
    box.commit()
    assert len(receipts(client)) == 40, "thirty were before its time"
    box.advance(1)
    assert len(receipts(client)) == 10


# Closing, unloading and failures


@pytest.mark.parametrize("topic", [TOPIC, NON_PERSISTENT])
def test_a_producer_that_closes_gets_its_receipts_and_then_the_answer(topic: str) -> None:
    box = Box()
    set_topic(box, "publishRate", publish_rate(10), topic)
    client = opened(box, topic)
    flood(client, 35)
    client.ask("close_producer", producer_id=1, request_id=7)
    assert client.names() == ["send_receipt"] * 35 + ["success"]
    assert client.cnx.held_bytes == 0
    again = opened(box, topic)
    flood(again, 1)
    assert receipts(again) == [], "what it was too many is debt"
    box.advance(3)
    assert receipts(again) == [(1, 0)]


def test_a_close_while_messages_are_on_their_way_to_the_disk() -> None:
    box = Box(auto=False, **TEN)
    box.commit()
    client = box.client()
    client.ask("producer", request_id=1, topic=TOPIC, producer_id=1)
    box.commit()
    client.names()
    flood(client, 20)
    box.commit()
    flood(client, 20, first=20)
    client.ask("close_producer", producer_id=1, request_id=7)
    assert client.names() == ["send_receipt"] * 20
    box.commit()
    assert client.names() == ["send_receipt"] * 20 + ["success"]


def test_an_unload_leaves_no_receipt_out() -> None:
    box = Box(**TEN)
    client = opened(box)
    flood(client, 35)
    assert len(receipts(client)) == 10
    done: list[object] = []
    box.broker.topics.unload(topic_of(box), done.append, box.now)
    box.turn()
    assert client.names() == ["send_receipt"] * 25 + ["close_producer"]
    assert done


def test_a_stopping_box_leaves_no_receipt_out() -> None:
    box = Box(**TEN)
    client = opened(box)
    flood(client, 35)
    client.names()
    box.broker.drain(box.now)
    box.turn()
    assert client.names() == ["send_receipt"] * 25 + ["close_producer"]


def test_a_connection_that_is_lost_holds_up_nobody() -> None:
    box = Box(**TEN)
    lost, other = opened(box), opened(box)
    flood(lost, 25)
    flood(other, 5)
    lost.cnx.closed(box.now)
    box.advance(1)
    assert len(receipts(other)) == 0, "fifteen too many"
    box.advance(1)
    assert len(receipts(other)) == 5


def test_a_commit_that_fails_refuses_what_is_not_stored_and_nothing_else() -> None:
    box = Box(auto=False, **TEN)
    box.commit()
    client = box.client()
    client.ask("producer", request_id=1, topic=TOPIC, producer_id=1)
    box.commit()
    client.names()
    flood(client, 20)
    box.commit()
    assert client.names() == ["send_receipt"] * 10
    flood(client, 2, first=20)
    box.commit(OSError("no space"))
    assert client.names() == ["send_receipt"] * 10 + ["send_error"] * 2 + ["close_producer"]


def test_how_often_receipts_were_held_back() -> None:
    box = Box(**TEN)
    client = opened(box)
    flood(client, 15)
    assert topic_of(box).limits.publish_limited == 5
    box.advance(1)
    flood(client, 15, first=15)
    assert topic_of(box).limits.publish_limited == 15


def test_an_advance_of_the_clock_lets_receipts_go() -> None:
    box = Box(brokerClock="virtual", **TEN)
    client = opened(box)
    flood(client, 35)
    receipts(client)
    box.broker.advance_clock(1000, box.now)
    box.turn()
    assert len(receipts(client)) == 10


def test_duplicates_keep_their_place() -> None:
    box = Box(brokerDeduplicationEnabled=True, **TEN)
    client = opened(box)
    flood(client, 15, first=1)
    client.send(3)
    client.send(16)
    box.advance(2)
    assert [each for _, each in receipts(client)] == [*range(1, 16), 3, 16]
