"""Previews of seeks, compared with the backlog after the real seek."""

import random
from typing import Any

import pytest

from pulsarbox.broker.backlog import seek_preview as counting
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.server.http.box import seek_preview
from tests.unit.broker.core_driver import START
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

T = "persistent://public/default/t"
PREVIEW = "/pulsarbox/v1/seek-preview/public/default/t/s"
RESET = "/persistent/public/default/t/subscription/s/resetcursor"


async def told(box: HttpBox, query: str, path: str = PREVIEW) -> tuple[int, int, int, int]:
    got = await box.ask("GET", f"{path}?{query}")
    assert got.status == 200, got.text
    return got.value["before"], got.value["after"], got.value["redelivered"], got.value["skipped"]


def topic_of(box: HttpBox) -> PersistentTopic:
    found = box.broker.topics.find(parse_topic(T), box.shell.now())
    assert isinstance(found, PersistentTopic)
    return found


def ledger_of(box: HttpBox) -> int:
    return next(iter(topic_of(box).ledger.ledgers))


def place(position: tuple[int, int], index: int = -1) -> str:
    return f"ledgerId={position[0]}&entryId={position[1]}&batchIndex={index}"


async def test_messages_that_come_back_and_messages_that_are_skipped(box: HttpBox) -> None:
    client = Client(box)
    consumer = client.subscribe(T, permits=10)
    ids = client.publish(T, 10)
    client.ack(consumer, ids[0], ids[1], ids[4], ids[5], ids[8])
    assert await told(box, place(ids[2])) == (5, 8, 3, 0)
    assert await told(box, place((-1, -1))) == (5, 10, 5, 0)
    assert await told(box, "") == (5, 10, 5, 0)
    assert await told(box, place((2**63 - 1, 2**63 - 1))) == (5, 0, 0, 5)
    assert await told(box, place(ids[5])) == (5, 5, 2, 2)  # inside a range: 5 and 8 come back, 2 and 3 are skipped
    assert await told(box, place(ids[7])) == (5, 3, 1, 3)


async def test_a_position_in_a_batch(box: HttpBox) -> None:
    client = Client(box)
    consumer = client.subscribe(T, permits=10)
    client.send(client.producer(T), 0, batch=4)
    client.send(client.producer(T), 1, batch=4)
    ledger = ledger_of(box)
    client.ack_in_batch(consumer, (ledger, 1), 0b1001)
    assert await told(box, place((ledger, 0), 3)) == (6, 5, 2, 3)
    assert await told(box, place((ledger, 1), 2)) == (6, 2, 1, 5)
    client.ack(consumer, (ledger, 0))
    assert await told(box, place((ledger, 0), 3)) == (2, 5, 3, 0)
    assert await told(box, place((ledger, 0), 9)) == (2, 8, 6, 0)  # beyond the batch: the whole batch


@pytest.mark.parametrize("seed", range(3))
async def test_the_preview_is_what_the_seek_does(seed: int, box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SOME", 3)
    monkeypatch.setattr(seek_preview, "AT_ONCE", 2)
    chance = random.Random(seed)
    client = Client(box)
    consumer = client.subscribe(T, permits=400)
    producer = client.producer(T)
    for number in range(60):
        client.send(producer, number, batch=chance.choice((0, 4)), publish_time=START + 1000 * number)
    ledger = ledger_of(box)
    for entry in chance.sample(range(60), 25):
        client.ack(consumer, (ledger, entry))
    at = chance.randrange(60)
    targets: list[tuple[str, str, Any]] = [
        (place((ledger, at)), RESET, {"ledgerId": ledger, "entryId": at}),
        (place((ledger, at), 2), RESET, {"ledgerId": ledger, "entryId": at, "batchIndex": 2}),
        (f"timestamp={START + 1000 * at}", f"{RESET}/{START + 1000 * at}", None),
    ]
    query, path, body = chance.choice(targets)
    before, after, redelivered, skipped = await told(box, query)
    assert before - skipped + redelivered == after
    cursor = topic_of(box).subscriptions["s"].cursor
    assert before == cursor.backlog_messages
    assert (await box.post(path, body)).status == 204
    assert cursor.backlog_messages == after


async def test_partitions_are_summed(box: HttpBox) -> None:
    await box.put("/persistent/public/default/p/partitions", 2)
    await box.put("/persistent/public/default/p/subscription/s")
    client = Client(box)
    client.publish(f"{T[:-1]}p-partition-0", 3, publish_time=START)
    ids = client.publish(f"{T[:-1]}p-partition-1", 4, publish_time=START + 5000)
    whole, part = PREVIEW.replace("/t/", "/p/"), PREVIEW.replace("/t/", "/p-partition-1/")
    assert await told(box, f"timestamp={START + 1000}", whole) == (7, 4, 0, 3)
    assert await told(box, place(ids[1]), part) == (4, 3, 0, 1)
    refused = await box.ask("GET", f"{whole}?{place(ids[1])}")
    assert (refused.status, "name the partition" in refused.text) == (400, True)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (PREVIEW, 404),
        (PREVIEW.replace("/t/", "/none/"), 404),
        (PREVIEW.replace("/default/", "/nowhere/"), 404),
        (f"{PREVIEW}?timestamp=x", 400),
        (f"{PREVIEW}?ledgerId=-7", 400),
    ],
)
async def test_what_has_no_preview(path: str, status: int, box: HttpBox) -> None:
    Client(box).publish(T, 1)
    if status == 400:
        await box.put("/persistent/public/default/t/subscription/s")
    assert (await box.ask("GET", path)).status == status
