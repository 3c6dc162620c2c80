"""Segments of a topic for parallel readers, and positions in a topic."""

import json
import random
from typing import Any

import pytest

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.topic import visible_segments
from pulsarbox.config import Settings
from pulsarbox.errors import AuthorizationError
from pulsarbox.server.http.box import segments as route
from pulsarbox.server.http.framework.request import HttpRequest
from tests.unit.broker.core_driver import START
from tests.unit.broker.roles import guarded_box
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box
from tests.unit.server.http.resources.test_messages_hidden import ABORT, COMMIT, Scene

T = "persistent://public/default/t"
SEGMENTS = "/pulsarbox/v1/segments/public/default/t"
PLACES = "/pulsarbox/v1/places/public/default/t"


async def told(box: HttpBox, path: str) -> Any:
    got = await box.ask("GET", path)
    assert got.status == 200, got.text
    return got.value


async def every(box: HttpBox, query: str = "") -> list[dict[str, Any]]:
    """Return all segments, page by page."""
    found, begin = [], ""
    while True:
        some = await told(box, f"{SEGMENTS}?{query}{begin}")
        found += some["segments"]
        if some["next"] is None:
            return found
        begin = f"&from={some['next']}"


def entries(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the ledgers and entries that a reader would read."""
    return [
        (each["ledger"], entry)
        for each in found
        for entry in range(each["first"], each["last"] + 1)
        if not any(first <= entry <= last for first, last in each["hidden"])
    ]


@pytest.mark.settings(Settings(managedLedgerMaxEntriesPerLedger=5))
async def test_ranges_are_half_open_and_cut_through_ledgers(box: HttpBox) -> None:
    client = Client(box)
    client.subscribe(T)
    ids = client.publish(T, 12)
    whole = await told(box, SEGMENTS)
    assert entries(whole["segments"]) == ids
    assert [(each["messages"], each["last"] - each["first"] + 1) for each in whole["segments"]] == [
        (5, 5), (5, 5), (2, 2)
    ]  # fmt: skip
    stats = (await box.get("/persistent/public/default/t/internalStats")).value
    assert sum(each["bytes"] for each in whole["segments"]) == stats["totalSize"]
    assert whole["earliest"] == f"{ids[0][0]}:0" and whole["end"] == f"{ids[-1][0]}:{ids[-1][1] + 1}"
    assert (whole["before"], whole["total"], whole["compacted"], whole["next"]) == (0, 12, None, None)
    for low in range(12):
        for high in range(low, 12):
            query = f"?from={ids[low][0]}:{ids[low][1]}&to={ids[high][0]}:{ids[high][1]}"
            some = (await told(box, SEGMENTS + query))["segments"]
            assert entries(some) == ids[low:high]
            assert sum(each["messages"] for each in some) == high - low


@pytest.mark.settings(Settings(managedLedgerMaxEntriesPerLedger=5))
async def test_of_each_ledger_it_is_told_what_it_is_as_a_whole(box: HttpBox) -> None:
    client = Client(box)
    client.subscribe(T)
    ids = client.publish(T, 12)
    whole = (await told(box, SEGMENTS))["segments"]
    known = [(each["entries"], each["before"], each["after"]) for each in whole]
    assert known == [(5, 0, 5), (5, 5, 10), (2, 10, 12)]
    assert [each["closed"] for each in whole] == [START, START, 0]
    part = (await told(box, f"{SEGMENTS}?from={ids[6][0]}:{ids[6][1]}"))["segments"]
    assert (part[0]["first"], part[0]["entries"], part[0]["before"], part[0]["after"]) == (1, 5, 5, 10)
    await box.ask("POST", "/admin/v2/persistent/public/default/t/terminate")
    assert all(each["closed"] for each in (await told(box, SEGMENTS))["segments"])


async def test_what_was_aborted_is_hidden_and_an_open_transaction_is_the_end(box: HttpBox) -> None:
    scene = Scene(box)
    opened = scene.lay_out()
    found = await told(box, SEGMENTS)
    (one,) = found["segments"]
    assert (one["first"], one["last"], one["hidden"], one["messages"]) == (0, 3, [[1, 2]], 2)
    assert found["end"] == f"{one['ledger']}:4"
    scene.end(opened, COMMIT)
    (one,) = await every(box)
    assert (one["last"], one["hidden"], one["messages"]) == (5, [[1, 2]], 4)
    (one,) = await every(box, f"from={one['ledger']}:2&to={one['ledger']}:4")
    assert (one["first"], one["last"], one["hidden"], one["messages"]) == (2, 3, [[2, 2]], 1)


async def test_long_answers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_segments, "SEGMENTS_MAX", 2)
    monkeypatch.setattr(visible_segments, "RUNS_MAX", 3)
    monkeypatch.setattr(route, "AT_ONCE", 2)
    async with running_box(Settings(managedLedgerMaxEntriesPerLedger=7)) as box:
        scene, chance = Scene(box), random.Random(5)
        seen: list[int] = []
        for _ in range(60):
            if chance.random() < 0.5:
                seen.append(scene.sent)
                scene.plain()
            else:
                txn = scene.begin()
                scene.send(txn)
                scene.end(txn, ABORT)
        found = await every(box)
        ledgers = sorted({each["ledger"] for each in found})
        assert [7 * ledgers.index(ledger) + entry for ledger, entry in entries(found)] == seen
        assert sum(each["messages"] for each in found) == pytest.approx(len(seen), abs=len(found))


@pytest.mark.settings(Settings(managedLedgerMaxEntriesPerLedger=4))
async def test_places(box: HttpBox) -> None:
    client = Client(box)
    consumer = client.subscribe(T)
    ids = client.publish(T, 3) + client.publish(T, 3, publish_time=START + 5000)
    client.ack(consumer, ids[0], ids[1])
    found = await told(box, f"{PLACES}?subscription=s&time={START + 1}")
    assert found["subscription"] == "{}:{}".format(*ids[2])
    assert found["at"] == "{}:{}".format(*ids[3])
    found = await told(box, f"{PLACES}?time={START + 9000}")
    assert found["at"] == found["end"] == f"{ids[-1][0]}:{ids[-1][1] + 1}"
    assert (found["earliest"], found["before"], found["total"]) == (f"{ids[0][0]}:0", 0, 6)


async def test_batches_that_are_acknowledged_in_part(box: HttpBox) -> None:
    client = Client(box)
    consumer = client.subscribe(T)
    whole, part, other = client.publish(T, 3, batch=4)
    client.ack_in_batch(consumer, part, left=0b1010)
    found = await told(box, f"{PLACES}?subscription=s")
    assert found["batches"] == [{"ledger": part[0], "entry": part[1], "messages": 4, "left": "a"}]
    assert (found["batchesTotal"], found["subscription"]) == (1, "{}:{}".format(*whole))
    client.ack(consumer, whole)
    assert (await told(box, f"{PLACES}?subscription=s"))["subscription"] == "{}:{}:1".format(*part)
    client.ack(consumer, part)
    found = await told(box, f"{PLACES}?subscription=s")
    assert (found["batches"], found["subscription"]) == ([], "{}:{}".format(*other))


async def test_redelivered_entries(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(box)
    consumer = client.subscribe(T, permits=10)
    first, _, third = client.publish(T, 3)
    assert (await told(box, f"{PLACES}?subscription=s"))["redelivered"] == []
    client.redeliver(consumer, first)
    client.redeliver(consumer, first, third)
    rows = [{"ledger": at[0], "entry": at[1], "count": count} for at, count in ((first, 2), (third, 1))]
    found = await told(box, f"{PLACES}?subscription=s")
    assert (found["redelivered"], found["redeliveredTotal"]) == (rows, 2)
    monkeypatch.setattr(route, "REDELIVERED_MAX", 1)
    found = await told(box, f"{PLACES}?subscription=s")
    assert (found["redelivered"], found["redeliveredTotal"]) == (rows[:1], 2)
    found = await told(box, f"{PLACES}?subscription=s&after={first[0]}:{first[1]}")
    assert (found["redelivered"], found["redeliveredTotal"]) == (rows[1:], 2)
    client.ack(consumer, first)
    assert (await told(box, f"{PLACES}?subscription=s"))["redelivered"] == rows[1:]


async def test_places_of_many_topics() -> None:
    other, missing = "persistent://public/default/other", "persistent://public/default/missing"
    away = "persistent://public/nowhere/t"
    async with running_box() as box:
        client = Client(box)
        client.publish(T, 3)
        client.publish(other, 5)
        got = await box.ask("POST", "/pulsarbox/v1/places", {"topics": [other, missing, T, away]})
        assert got.value == {
            "places": [await told(box, PLACES.replace("/t", "/other")), None, await told(box, PLACES), None]
        }
        wrong: Any
        for wrong in ([], {}, {"topics": T}, {"topics": [1]}, {"topics": ["a/b"]}, {"topics": [f"non-{T}"]}):
            assert (await box.ask("POST", "/pulsarbox/v1/places", wrong)).status == 400, wrong
        got = await box.ask("POST", "/pulsarbox/v1/places", {"topics": [T] * 1001})
        assert got.status == 400 and "the maximum is 1000" in got.reason


async def test_segments_of_many_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    other, missing = "persistent://public/default/other", "persistent://public/default/missing"
    async with running_box(Settings(managedLedgerMaxEntriesPerLedger=4)) as box:
        client = Client(box)
        client.subscribe(T)  # otherwise full ledgers are trimmed
        ids = client.publish(T, 9)
        client.publish(other, 3)
        begin, end = "{}:{}".format(*ids[2]), "{}:{}".format(*ids[7])
        asked = [{"topic": other}, {"topic": missing}, {"topic": T, "from": begin, "to": end}]
        path = "/pulsarbox/v1/segments"
        got = await box.ask("POST", path, {"topics": asked})
        part = await told(box, f"{SEGMENTS}?from={begin}&to={end}")
        assert len(part["segments"]) == 2
        assert got.value == {"segments": [await told(box, SEGMENTS.replace("/t", "/other")), None, part]}

        monkeypatch.setattr(route, "SEGMENTS_MAX", 1)
        got = await box.ask("POST", path, {"topics": asked})
        cut = got.value["segments"][-1]
        assert (cut["segments"], cut["next"]) == ([], begin), "left for another answer"
        wrong: Any
        for wrong in (
            [],
            {},
            {"topics": T},
            {"topics": [T]},
            {"topics": [{}]},
            {"topics": [{"topic": T, "from": "x"}]},
        ):
            assert (await box.ask("POST", path, wrong)).status == 400, wrong
        got = await box.ask("POST", path, {"topics": [{"topic": f"non-{T}"}]})
        assert got.status == 400 and "Segments of a non-persistent topic" in got.reason


@pytest.mark.parametrize("what", ["places", "segments"])
def test_who_may_not_consume_from_one_of_many_topics_is_told_nothing(what: str) -> None:
    box = guarded_box()

    def ask(role: str, *topics: str) -> Any:
        named = list(topics) if what == "places" else [{"topic": each} for each in topics]
        handle: Any = route.many_places if what == "places" else route.many_segments
        body = json.dumps({"topics": named}).encode()
        return handle(HttpRequest(box.broker, box.now, {}, {}, body, "", principal=Principal(role, "token")))

    own, others = "persistent://shop/eu/orders", "persistent://shop/eu/bills"
    ask("topic-consumer", own)
    ask("consumer", own, others)
    with pytest.raises(AuthorizationError):
        ask("topic-consumer", own, others)
    with pytest.raises(AuthorizationError):
        ask("topic-producer", own)


async def test_what_cannot_be_asked(box: HttpBox) -> None:
    assert (await box.ask("GET", SEGMENTS)).status == 404
    await box.put("/persistent/public/default/parted/partitions", 2)
    assert (await box.ask("GET", "/pulsarbox/v1/segments/public/default/parted")).status == 405
    Client(box).publish(T, 1)
    for query in ("from=7", "to=1:2:3", "from=a:b", "to=%C2%B2:1", "from=-2:0"):
        got = await box.ask("GET", f"{SEGMENTS}?{query}")
        assert got.status == 400 and "12:345" in got.reason
    assert (await box.ask("GET", f"{PLACES}?time=soon")).status == 400
    assert (await box.ask("GET", f"{PLACES}?subscription=nobody")).status == 404
