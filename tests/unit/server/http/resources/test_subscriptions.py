"""Subscriptions in the Admin API: statuses and texts recorded from Pulsar 4.2.4."""

from typing import Any

import pytest

from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import Got, HttpBox

T = "persistent://public/default/t"
PATH = "/persistent/public/default"
SUB = f"{PATH}/t/subscription"
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}
EARLIEST = {"ledgerId": -1, "entryId": -1}


async def backlog(box: HttpBox, name: str = "s", topic: str = "t") -> int:
    stats = (await box.get(f"{PATH}/{topic}/stats")).value
    number = stats["subscriptions"][name]["msgBacklog"]
    assert isinstance(number, int)
    return number


def done(got: Got) -> bool:
    return (got.status, got.text) == (204, "")


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (EARLIEST, 10),
        (EARLIEST | {"partitionIndex": -1}, 10),
        (LATEST, 0),
        (None, 0),
        (b'"latest"', 0),
        (b'"earliest"', 10),
        ("entry 5", 5),
        ("excluded 5", 4),
        ("entry 500", 0),
        ("ledger +1000", 0),
        ({"ledgerId": 0, "entryId": 0}, 10),
        ({}, 10),
    ],
)
@pytest.mark.parametrize("how", ["create", "reset"])
async def test_where_a_subscription_starts_and_where_it_is_set(box: HttpBox, body: Any, left: int, how: str) -> None:
    ledger = Client(box).publish(T, 10)[0][0]
    known = {
        "entry 5": {"ledgerId": ledger, "entryId": 5},
        "excluded 5": {"ledgerId": ledger, "entryId": 5, "excluded": True},
        "entry 500": {"ledgerId": ledger, "entryId": 500},
        "ledger +1000": {"ledgerId": ledger + 1000, "entryId": 0},
    }
    place = known.get(body, body) if isinstance(body, str) else body
    if how == "create":
        assert done(await box.put(f"{SUB}/s", place))
    else:
        await box.put(f"{SUB}/s", EARLIEST)
        got = await box.post(f"{SUB}/s/resetcursor", place)
        if body is None:
            assert got.status == 400
            return
        assert done(got)
    excluded_at_creation = body == "excluded 5" and how == "create"  # ignored, as in Pulsar
    assert await backlog(box) == left + excluded_at_creation


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ({"batchIndex": 2}, (1, 2)),
        ({"batchIndex": 2, "excluded": True}, (1, 3)),
        ({"batchIndex": 4, "excluded": True}, (2, 0)),
        ({"batchIndex": 9, "excluded": True}, (2, 0)),
        ({"batchIndex": 0}, (1, 0)),
        ({"batchIndex": 9}, (1, 0)),
    ],
)
@pytest.mark.parametrize("how", ["create", "reset"])
async def test_one_message_of_a_batch(box: HttpBox, place: dict[str, Any], first: tuple[int, int], how: str) -> None:
    client = Client(box)
    producer = client.producer(T)
    for i in range(3):
        client.send(producer, i * 5, batch=5)
    ledger = (await box.get(f"{PATH}/t/internalStats")).value["ledgers"][0]["ledgerId"]
    body = {"ledgerId": ledger, "entryId": 1} | place
    if how == "create" and "excluded" in place:
        return  # ignored, as in Pulsar
    if how == "reset":
        await box.put(f"{SUB}/s", EARLIEST)
        assert done(await box.post(f"{SUB}/s/resetcursor", body))
    else:
        assert done(await box.put(f"{SUB}/s", body))
    sub = (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]
    entry, index = first
    assert (sub["msgBacklog"], sub["backlogMessages"]) == (3 - entry, (3 - entry) * 5 - index)


async def test_creating_again_elsewhere_and_where_it_cannot_be(box: HttpBox) -> None:
    assert done(await box.put(f"{SUB}/s", EARLIEST | {"properties": {"a": "b"}}))
    assert (await box.get(f"{PATH}/t/subscriptions")).value == ["s"], "the topic came with it"
    got = await box.put(f"{SUB}/s", None)
    assert (got.status, got.reason) == (409, "Subscription already exists for topic")
    got = await box.put("/non-persistent/public/default/np/subscription/x")
    text = "Create subscription on non-persistent topic can only be done through client"
    assert (got.status, got.reason) == (400, text)
    assert (await box.put("/persistent/public/nope/t/subscription/x")).status == 404
    assert (await box.put(f"{SUB}/a%2Fb", EARLIEST)).status == 204
    assert (await box.get(f"{PATH}/t/subscriptions")).value == ["a/b", "s"]
    assert done(await box.delete(f"{SUB}/a%2Fb"))
    assert (await box.put(f"{SUB}/pulsar.dedup")).status == 412
    assert (await box.get(f"{SUB}/s/properties")).value == {"a": "b"}
    assert done(await box.put(f"{SUB}/s/properties", {"x": "y"}))
    assert (await box.get(f"{SUB}/s/properties")).value == {"x": "y"}
    for method in ("GET", "PUT"):
        got = await box.ask(method, f"/admin/v2{SUB}/nope/properties", {})
        assert (got.status, got.reason) == (404, f"Subscription nope not found for topic {T}")


@pytest.mark.parametrize(
    "body",
    [b"{bad", b"[1]", {"ledgerId": "x"}, {"entryId": 2**70}, {"excluded": 1}, b'"middle"', b"7", {"properties": [1]}],
)
async def test_bodies_that_are_no_message_id(box: HttpBox, body: Any) -> None:
    await box.put(f"{PATH}/t")
    assert (await box.put(f"{SUB}/s", body)).status == 400


async def test_deleting(box: HttpBox) -> None:
    client = Client(box)
    client.subscribe(T, "busy")
    await box.put(f"{SUB}/idle")
    got = await box.delete(f"{SUB}/busy")
    assert (got.status, got.reason) == (412, "Subscription has active connected consumers")
    got = await box.delete(f"{SUB}/nope")
    assert (got.status, got.reason) == (404, f"Subscription nope not found for topic {T}")
    got = await box.delete(f"{PATH}/nope/subscription/nope")
    assert (got.status, got.reason) == (404, "Topic persistent://public/default/nope not found")
    assert done(await box.delete(f"{SUB}/idle"))
    client.names()
    assert done(await box.delete(f"{SUB}/busy?force=true"))
    client.settle()
    assert "close_consumer" in client.names()
    assert (await box.get(f"{PATH}/t/subscriptions")).value == []


@pytest.mark.parametrize(("count", "left"), [("3", 4), ("0", 7), ("-1", 7), ("100", 0)])
async def test_skipping(box: HttpBox, count: str, left: int) -> None:
    client = Client(box)
    positions = client.publish(T, 10)
    client.ack(client.subscribe(T, permits=10), *(positions[i] for i in (2, 3, 6)))
    assert done(await box.post(f"{SUB}/s/skip/{count}"))
    assert await backlog(box) == left


async def test_clearing(box: HttpBox) -> None:
    Client(box).publish(T, 10)
    await box.put(f"{SUB}/s", EARLIEST)
    assert done(await box.post(f"{SUB}/s/skip_all"))
    assert await backlog(box) == 0


@pytest.mark.parametrize(
    "operation",
    ["skip/1", "skip_all", "resetcursor/1", "expireMessages/1", "resetcursor", "expireMessages"],
)
async def test_what_is_missing(box: HttpBox, operation: str) -> None:
    await box.put(f"{PATH}/t")
    body = EARLIEST if operation.isalpha() else None
    got = await box.post(f"{SUB}/nope/{operation}", body)
    assert (got.status, got.reason) == (404, f"Subscription nope not found for topic {T}")
    got = await box.post(f"{PATH}/nope/subscription/nope/{operation}", body)
    assert (got.status, got.reason) == (404, "Topic persistent://public/default/nope not found")


@pytest.mark.parametrize("operation", ["skip/x", "resetcursor/x", "expireMessages/x", f"skip/{2**64}"])
async def test_what_is_no_number(box: HttpBox, operation: str) -> None:
    await box.put(f"{SUB}/s")
    assert (await box.post(f"{SUB}/s/{operation}")).status == 404


@pytest.mark.parametrize(("at", "left"), [("0", 10), ("-5", 10), ("1003", 7), ("1800000000000", 0)])
async def test_setting_a_cursor_by_time(box: HttpBox, at: str, left: int) -> None:
    client = Client(box)
    producer = client.producer(T)
    for i in range(10):
        client.send(producer, i, publish_time=1000 + i)
    await box.put(f"{SUB}/s")
    assert done(await box.post(f"{SUB}/s/resetcursor/{at}"))
    assert await backlog(box) == left


async def test_consumers_come_back_to_where_the_cursor_is_set(box: HttpBox) -> None:
    client = Client(box)
    client.publish(T, 3)
    client.subscribe(T, permits=10)
    client.names()
    assert done(await box.post(f"{SUB}/s/resetcursor/0"))
    client.settle()
    assert client.names() == ["close_consumer"]


async def test_expiring_by_time(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    now = box.shell.now().wall
    for i in range(10):
        client.send(producer, i, publish_time=now - 1000 * (10 - i) - 1)
    await box.put(f"{SUB}/s", EARLIEST)
    await box.put(f"{SUB}/other", EARLIEST)
    assert done(await box.post(f"{SUB}/s/expireMessages/3600"))
    assert await backlog(box) == 10
    assert done(await box.post(f"{SUB}/s/expireMessages/4"))
    assert await backlog(box) == 3
    stats = (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]
    assert (stats["totalMsgExpired"], stats["lastExpireTimestamp"]) == (7, now)
    assert done(await box.post(f"{PATH}/t/all_subscription/expireMessages/0"))
    assert (await backlog(box), await backlog(box, "other")) == (0, 0)
    got = await box.post(f"{SUB}/s/expireMessages/0")
    assert got.status == 409
    assert got.reason.startswith(f"Expire message by timestamp not issued on topic {T} for subscription s due to")


@pytest.mark.parametrize(
    ("entry", "more", "left"), [(3, {}, 6), (3, {"excluded": True}, 7), (-1, {}, 10), (9, {}, 0), (500, {}, None)]
)
async def test_expiring_through_a_message(box: HttpBox, entry: int, more: dict[str, Any], left: int | None) -> None:
    ledger = Client(box).publish(T, 10)[0][0]
    await box.put(f"{SUB}/s", EARLIEST)
    got = await box.post(f"{SUB}/s/expireMessages", {"ledgerId": ledger, "entryId": entry} | more)
    if left is None:
        assert got.status == 409
        assert got.reason.startswith("Expire message by position not issued on topic")
    else:
        assert done(got)
    assert await backlog(box) == (10 if left is None else left)


@pytest.mark.parametrize(
    ("more", "left"), [({"batchIndex": 1}, 8), ({"batchIndex": 4}, 5), ({"batchIndex": 0, "excluded": True}, 10)]
)
async def test_expiring_through_one_message_of_a_batch(box: HttpBox, more: dict[str, Any], left: int) -> None:
    client = Client(box)
    producer = client.producer(T)
    for i in range(3):
        client.send(producer, i * 5, batch=5)
    ledger = (await box.get(f"{PATH}/t/internalStats")).value["ledgers"][0]["ledgerId"]
    await box.put(f"{SUB}/s", EARLIEST)
    assert done(await box.post(f"{SUB}/s/expireMessages", {"ledgerId": ledger, "entryId": 1} | more))
    assert (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]["backlogMessages"] == left


async def test_partitioned_topics(box: HttpBox) -> None:
    await box.put(f"{PATH}/p/partitions", 2)
    client = Client(box)
    for i in range(2):
        client.publish(f"persistent://public/default/p-partition-{i}", 5, publish_time=1000)
    sub = f"{PATH}/p/subscription"
    assert done(await box.put(f"{sub}/s", EARLIEST))
    assert (await box.put(f"{sub}/s")).status == 409
    assert done(await box.put(f"{PATH}/p-partition-0/subscription/only0", EARLIEST))
    assert (await box.get(f"{PATH}/p/subscriptions")).value == ["only0", "s"]
    got = await box.post(f"{sub}/s/skip/1")
    assert (got.status, got.reason) == (405, "Skip messages on a partitioned topic is not allowed")
    got = await box.post(f"{sub}/only0/skip_all")
    text = "Subscription only0 not found for topic persistent://public/default/p"
    assert (got.status, got.reason) == (404, text)
    assert done(await box.post(f"{sub}/s/skip_all"))
    assert await backlog(box, "s", "p-partition-1") == 0
    assert done(await box.post(f"{sub}/s/resetcursor/1"))
    assert await backlog(box, "s", "p-partition-1") == 5
    got = await box.post(f"{sub}/nope/resetcursor/1")
    assert got.status == 404
    got = await box.post(f"{sub}/s/resetcursor", EARLIEST)
    assert (got.status, got.reason) == (405, "Reset-cursor at position is not allowed for partitioned-topic")
    got = await box.post(f"{sub}/s/expireMessages", EARLIEST)
    assert (got.status, got.reason) == (405, "Expire message at position is not supported for partitioned-topic")
    assert done(await box.post(f"{sub}/s/expireMessages/0"))
    assert await backlog(box, "s", "p-partition-0") == 0
    assert (await box.delete(f"{sub}/nope")).reason == "Subscription not found"
    assert done(await box.delete(f"{sub}/only0")), "where Pulsar looks at the first partition only, any will do"
    assert done(await box.delete(f"{sub}/s"))
    assert (await box.get(f"{PATH}/p/subscriptions")).value == []


async def test_a_topic_that_is_not_persistent_has_nothing_to_acknowledge(box: HttpBox) -> None:
    client = Client(box)
    client.subscribe("non-persistent://public/default/n")
    path = "/non-persistent/public/default/n"
    for operation in ("skip/1", "skip_all", "expireMessages/1", "resetcursor/1"):
        assert (await box.post(f"{path}/subscription/s/{operation}")).status == 405
