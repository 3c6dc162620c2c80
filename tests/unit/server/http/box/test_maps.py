"""Maps of subscriptions: acknowledged, in-flight and delayed parts of the log, keys per consumer, and blocked keys."""

import random
from typing import Any

from pulsarbox.broker.dispatch.selectors.selector import RANGE_SIZE
from pulsarbox.broker.subscription import cursor_map
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.server.http.box import maps
from tests.unit.broker.core_driver import START
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

T = "persistent://public/default/t"
CURSOR = "/pulsarbox/v1/maps/cursor/public/default/t/s"
KEYS = "/pulsarbox/v1/maps/keys/public/default/t/s"
WHAT = ("acknowledged", "inFlight", "delayed", "waiting")


async def told(box: HttpBox, path: str) -> Any:
    got = await box.ask("GET", path)
    assert got.status == 200, got.text
    return got.value


def bars(found: Any) -> list[tuple[int, ...]]:
    return [tuple(each[what] for what in WHAT) for each in found["buckets"]]


async def test_each_entry_is_in_one_bucket(box: HttpBox) -> None:
    client = Client(box)
    consumer = client.subscribe(T, permits=6)
    ids = client.publish(T, 10)
    client.send(client.producer(T), 99, b"late", deliver_at_time=START + 60_000)
    client.ack(consumer, ids[0], ids[1], ids[4])
    found = await told(box, CURSOR + "?buckets=1000")
    assert bars(found) == [
        *[(1, 0, 0, 0)] * 2, *[(0, 1, 0, 0)] * 2, (1, 0, 0, 0), (0, 1, 0, 0), *[(0, 0, 0, 1)] * 4, (0, 0, 1, 0),
    ]  # fmt: skip
    assert (found["markDelete"], found["rangesTotal"]) == (f"{ids[1][0]}:{ids[1][1]}", 1)
    assert found["ranges"] == [[ids[4][0], ids[4][1], ids[4][1]]]
    assert (found["backlog"], found["entries"], found["ledgersTotal"]) == (8, 11, 1)
    found = await told(box, CURSOR + "?buckets=3")
    assert bars(found) == [(2, 2, 0, 0), (1, 1, 0, 2), (0, 0, 1, 2)]
    assert [each["entries"] for each in found["buckets"]] == [4, 4, 3]
    found = await told(box, CURSOR + "?span=backlog&buckets=1")
    assert (bars(found), found["buckets"][0]["entries"]) == ([(1, 3, 1, 4)], 9)


async def test_the_sums_are_those_of_the_cursor_whatever_was_acknowledged(monkeypatch: Any) -> None:
    monkeypatch.setattr(cursor_map, "SOME", 3)
    monkeypatch.setattr(maps, "AT_ONCE", 5)
    async with running_box() as box:
        client = Client(box)
        chance = random.Random(3)
        consumer = client.subscribe(T, permits=150)
        ids = client.publish(T, 200)
        client.ack(consumer, *chance.sample(ids[:150], 90))
        topic = box.broker.topics.find(parse_topic(T), box.shell.now())
        assert isinstance(topic, PersistentTopic)
        cursor = topic.subscriptions["s"].cursor
        for buckets in (1, 7, 64, 2000):
            for span in ("log", "backlog"):
                found = await told(box, f"{CURSOR}?buckets={buckets}&span={span}")
                sums = [sum(bar) for bar in zip(*bars(found), strict=True)]
                behind = sums[0] if span == "backlog" else sums[0] - cursor.mark_delete.entry_id - 1
                assert sums[1:] == [60, 0, 50]
                assert behind == cursor.ranges.entries
                assert sum(sums) == sum(each["entries"] for each in found["buckets"]) == found["entries"]
                assert not found["truncated"]


async def test_what_is_too_much_is_said_to_be(monkeypatch: Any) -> None:
    monkeypatch.setattr(cursor_map, "STEPS_MAX", 4)
    async with running_box() as box:
        client = Client(box)
        consumer = client.subscribe(T, permits=20)
        client.ack(consumer, *client.publish(T, 20)[1::2])
        assert (await told(box, CURSOR))["truncated"] is True


async def test_an_empty_log_is_an_empty_bar(box: HttpBox) -> None:
    Client(box).subscribe(T)
    found = await told(box, CURSOR)
    assert (found["buckets"], found["entries"]) == ([], 0)


async def test_what_there_is_no_map_of(box: HttpBox) -> None:
    assert (await box.ask("GET", CURSOR)).status == 404
    Client(box).subscribe(T)
    assert (await box.ask("GET", CURSOR.replace("/s", "/nobody"))).status == 404
    assert (await box.ask("GET", f"{CURSOR}?buckets=0")).status == 400
    got = await box.ask("GET", KEYS)
    assert got.status == 409
    assert "not of type Key_Shared" in got.reason


async def test_who_has_which_keys_and_what_stands_behind_what(box: HttpBox) -> None:
    client = Client(box)
    client.subscribe(T, permits=1, subType=3, consumer_name="one")
    other = Client(box)
    other.subscribe(T, permits=1, subType=3, consumer_name="two")
    producer = client.producer(T)
    for number in range(12):
        client.send(producer, number, b"x", partition_key="hot" if number % 3 else f"k{number}")
    found = await told(box, KEYS)
    assert [each["name"] for each in found["consumers"]] == ["one", "two"]
    assert abs(sum(each["share"] for each in found["consumers"]) - 1) < 0.01
    assert all(last < RANGE_SIZE for each in found["consumers"] for _, last in each["ranges"])
    hot = found["stuck"][0]
    assert hot["key"] == "hot"
    assert hot["waiting"] > 1, "what comes behind it is not read while nobody asks for more"
    assert hot["owner"] in ("one", "two")
    assert found["busiest"][0]["slot"] == hot["slot"]
    assert found["waiting"] == sum(each["waiting"] for each in found["stuck"])
    held = [each for each in found["stuck"] if each["behind"]]
    assert all(each["since"] == START and each["holder"] == each["owner"] for each in held)
    assert found["draining"] == []
