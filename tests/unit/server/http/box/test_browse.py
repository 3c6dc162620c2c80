"""Pages of stored messages: both directions, any start position, filters, bounded work, and no side effects."""

import json
import random
from base64 import b64decode
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.topic import message_browser
from pulsarbox.broker.topic.message_browser import WalkLimits
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import EntryDamaged, PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.plugins.compression.wire import compress
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.PulsarApi_pb2 import SingleMessageMetadata
from pulsarbox.server.http.box import browse
from pulsarbox.server.http.framework.authorization import RULES
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import Permission
from tests.unit.broker.core_driver import START
from tests.unit.broker.roles import TOPIC as GUARDED_TOPIC
from tests.unit.broker.roles import client_of, guarded_box
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

T = "persistent://public/default/t"
PATH = "/pulsarbox/v1/browse/public/default/t"


async def page(box: HttpBox, path: str = PATH, **query: Any) -> Any:
    text = "&".join(f"{name.removesuffix('_')}={quote(str(value))}" for name, value in query.items())
    got = await box.ask("GET", f"{path}?{text}")
    assert got.status == 200, got.text
    return got.value


def texts(found: Any) -> list[str]:
    return [b64decode(each["payload"]).decode() for each in found["messages"]]


def batch(*payloads: bytes) -> bytes:
    return encode_batch((SingleMessageMetadata(partition_key=f"k{at}"), each) for at, each in enumerate(payloads))


async def walked(box: HttpBox, begin: str, *, forward: bool, path: str = PATH, **more: Any) -> list[str]:
    """Return all pages from a position to the end, oldest first."""
    found: list[str] = []
    place: str | None = begin
    direction = "forward" if forward else "backward"
    for _ in range(1000):
        one = await page(box, path, from_=place, direction=direction, **more)
        found = found + texts(one) if forward else texts(one) + found
        place = one["next"] if forward else one["previous"]
        if one["ended"] or place is None:
            return found
    raise AssertionError("it does not end")


async def test_a_message_with_all_that_is_known_of_it(box: HttpBox) -> None:
    client = Client(box)
    more: dict[str, Any] = {"partition_key": "k", "properties": [{"key": "n", "value": "ü"}], "event_time": 5}
    client.send(client.producer(T), 7, b'{"a":[1]}', ordering_key=b"o", **more)
    (found,) = (await page(box))["messages"]
    assert found.pop("id").count(":") == 3
    assert found == {
        "partition": -1, "publishTime": START, "appendTime": START, "eventTime": 5, "deliverAt": None, "key": "k",
        "keyIsBase64": False, "orderingKey": "bw==", "properties": {"n": "ü"}, "size": 9, "producer": "p",
        "sequenceId": 7, "schemaVersion": None, "batchIndex": None, "batchSize": None, "codec": None,
        "encrypted": False, "tombstone": False, "marker": False, "chunk": None, "payload": "eyJhIjpbMV19",
        "truncated": False, "decoded": {"a": [1]}, "closed": None, "damaged": None,
    }  # fmt: skip
    cut = (await page(box, maxPayload=3))["messages"][0]
    assert (cut["payload"], cut["truncated"], cut["size"]) == ("eyJh", True, 9)


async def test_a_large_payload_is_read_in_parts(box: HttpBox) -> None:
    client = Client(box)
    client.send(client.producer(T), 0, b"0123456789")
    parts = [(await page(box, maxPayload=4, payloadFrom=begin))["messages"][0] for begin in (0, 4, 8, 12)]
    assert [(b64decode(part["payload"]), part["truncated"]) for part in parts] == [
        *((b"0123", True), (b"4567", True), (b"89", False), (b"", False))
    ]


async def test_pages_both_ways_meet(box: HttpBox) -> None:
    Client(box).publish(T, 10)
    every = [f"m{number}" for number in range(10)]
    first = await page(box, from_="earliest", limit=4)
    assert (texts(first), first["previous"], first["ended"]) == (every[:4], None, False)
    second = await page(box, from_=first["next"], direction="forward", limit=4)
    assert texts(second) == every[4:8]
    assert texts(await page(box, from_=second["previous"], direction="backward", limit=2)) == every[2:4]
    newest = await page(box, limit=3)
    assert (texts(newest), newest["ended"]) == (every[7:], False)
    assert texts(await page(box, from_=newest["previous"], direction="backward", limit=3)) == every[4:7]
    end = await page(box, from_=newest["next"], direction="forward")
    assert (texts(end), end["ended"]) == ([], True)
    Client(box).publish(T, 1)
    assert texts(await page(box, from_=end["next"], direction="forward")) == ["m0"], "it goes on with what came"
    for limit in (1, 3, 10, 11):
        assert await walked(box, "earliest", forward=True, limit=limit) == [*every, "m0"]
        assert await walked(box, "latest", forward=False, limit=limit) == [*every, "m0"]


async def test_an_empty_topic(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    for begin in ("earliest", "latest"):
        for direction in ("forward", "backward"):
            found = await page(box, from_=begin, direction=direction)
            assert (found["messages"], found["ended"], found["previous"]) == ([], True, None)


async def test_batches_are_taken_apart_and_paged_within(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_browser, "READ_ENTRIES", 2)
    async with running_box() as box:
        client = Client(box)
        producer = client.producer(T)
        every = []
        for number in range(7):
            inside = [b"%d.%d" % (number, at) for at in range(1 + number % 3)]
            every += [each.decode() for each in inside]
            packed = compress(2, batch(*inside))
            more = {"compression": 2, "uncompressed_size": len(batch(*inside))}
            client.send(producer, number * 10, packed, batch=len(inside), **more)
        for limit in (1, 2, 5, 100):
            assert await walked(box, "earliest", forward=True, limit=limit) == every
            assert await walked(box, "latest", forward=False, limit=limit) == every
        found = (await page(box, from_="earliest"))["messages"][2]
        assert (found["batchIndex"], found["batchSize"], found["codec"]) == (1, 2, "ZLIB")
        assert (found["key"], found["sequenceId"], found["size"]) == ("k1", 11, 3)
        assert texts(await page(box, from_=found["id"], direction="forward", limit=2)) == every[2:4]
        assert texts(await page(box, from_=found["id"], direction="backward", limit=2)) == every[1:3]


async def test_from_a_time_and_from_an_id_that_is_not_there(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    for number in range(6):
        client.send(producer, number, b"m%d" % number, publish_time=START + number * 1000)
    assert texts(await page(box, from_=START + 2500, direction="forward")) == ["m3", "m4", "m5"]
    assert texts(await page(box, from_=START + 2500, direction="backward")) == ["m0", "m1", "m2"]
    assert texts(await page(box, from_=START + 2500, limit=1)) == ["m3"], "a time is where it begins"
    assert texts(await page(box, from_="0:5")) == [f"m{number}" for number in range(6)]
    assert texts(await page(box, from_="999999:0", direction="backward", limit=1)) == ["m5"]
    assert texts(await page(box, from_="0:5", direction="backward")) == []


@pytest.mark.parametrize(
    "query",
    [
        "from=x", "from=1:2:3:4:5", "from=1:-7", "from=--1:2", "from=m.zz", "from=m.W1tdXQ==", "direction=up",
        "limit=0", "maxPayload=9999999", "payloadFrom=-1", "filter=a%20b",
    ],
)  # fmt: skip
async def test_what_cannot_be_asked(box: HttpBox, query: str) -> None:
    await box.put("/persistent/public/default/t")
    got = await box.ask("GET", f"{PATH}?{query}")
    assert got.status in (400, 422)
    assert query.partition("=")[0] in got.reason


async def test_what_is_not_there(box: HttpBox) -> None:
    assert (await box.ask("GET", PATH)).status == 404
    await box.put("/persistent/public/default/t")
    assert (await box.ask("GET", f"{PATH}?subscription=none")).status == 404
    assert not (await box.get("/persistent/public/default/t/subscriptions")).value


async def test_a_filter_is_asked_of_decoded_fields_and_its_work_is_bounded(
    monkeypatch: pytest.MonkeyPatch, box: HttpBox
) -> None:
    client = Client(box)
    producer = client.producer(T)
    for number in range(60):
        client.send(producer, number, json.dumps({"n": number, "s": [{"t": number % 7}]}).encode())
    wanted = "json.n >= 50 and json.s[0].t == 2"
    found = await page(box, from_="earliest", filter=wanted)
    assert [each["decoded"]["n"] for each in found["messages"]] == [51, 58]
    assert (found["ended"], found["lookedAt"]) == (True, 60)
    monkeypatch.setattr(browse, "WalkLimits", lambda rows: WalkLimits(rows, entries=10))
    found = await page(box, from_="earliest", filter=wanted)
    assert (found["messages"], found["ended"], found["lookedAt"]) == ([], False, 10)
    assert len(await walked(box, "earliest", forward=True, filter=wanted)) == 2
    assert len(await walked(box, "latest", forward=False, filter=wanted)) == 2


async def test_every_bound_ends_a_page_that_goes_on(monkeypatch: pytest.MonkeyPatch, box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    for number in range(30):
        client.send(producer, number, b"%03d" % number + bytes(1000))
    every = [f"{number:03}" for number in range(30)]
    for bounds in ({"read": 4000}, {"opened": 4000}, {"shown": 4000}, {"entries": 3}):
        monkeypatch.setattr(browse, "WalkLimits", lambda rows, bounds=bounds: WalkLimits(rows, **bounds))
        found = await page(box, from_="earliest")
        assert (len(found["messages"]) < 30, found["ended"]) == (True, False)
        assert [each[:3] for each in await walked(box, "earliest", forward=True)] == every
        assert [each[:3] for each in await walked(box, "latest", forward=False)] == every


async def test_what_cannot_be_opened_says_why(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    client.send(producer, 0, b"secret", encryption_keys=[{"key": "k", "value": b"v"}])
    client.send(producer, 1, b"junk", compression=2, uncompressed_size=100)
    client.send(producer, 2, compress(2, bytes(100)), compression=2, uncompressed_size=1 << 30)
    client.send(producer, 3, b"half", uuid="u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=8)
    client.send(producer, 4, b"", null_value=True)
    secret, junk, bomb, chunk, null = (await page(box, from_="earliest"))["messages"]
    assert (secret["encrypted"], secret["payload"], secret["closed"]) == (True, None, "it is encrypted")
    assert (junk["payload"], junk["codec"]) == (None, "ZLIB")
    assert "cannot decompress" in junk["closed"]
    assert "1073741824 bytes exceeds the limit" in bomb["closed"]
    assert chunk["chunk"] == {"uuid": "u", "index": 0, "count": 2}
    assert (null["tombstone"], null["size"]) == (True, 0)


@pytest.mark.parametrize(
    "payload", [b"[" * 900 + b"]" * 900, b"[" * 100_000, b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff\xfe", b"1" * 5000]
)
async def test_whatever_a_payload_says_there_is_an_answer(box: HttpBox, payload: bytes) -> None:
    client = Client(box)
    client.send(client.producer(T), 0, payload)
    (found,) = (await page(box, maxPayload=1 << 20))["messages"]
    assert b64decode(found["payload"]) == payload
    assert (await page(box, filter="json.a == 1"))["messages"] == []


async def test_the_state_of_each_message_on_a_subscription(box: HttpBox) -> None:
    client = Client(box)
    ids = client.publish(T, 5)
    client.send(client.producer(T), 9, b"late", deliver_at_time=START + 60_000)
    consumer = client.subscribe(T, permits=3, consumer_name="mine")
    client.ack(consumer, ids[1])
    found = (await page(box, from_="earliest", subscription="s"))["messages"]
    assert [each["state"] for each in found] == [
        "inFlight", "acknowledged", "inFlight", "waiting", "waiting", "delayed",
    ]  # fmt: skip
    assert [each["consumer"] for each in found[:3]] == ["mine", None, "mine"]
    assert all(each["redeliveries"] == 0 for each in found)
    backlog = (await box.get("/persistent/public/default/t/stats")).value["subscriptions"]["s"]
    assert (backlog["msgBacklog"], backlog["unackedMessages"]) == (5, 2), "looking changes nothing"


@pytest.mark.parametrize(("acknowledged", "first"), [((), 0), ((0, 1), 2), ((0, 2), 1), (range(5), None)])
async def test_a_page_begins_at_the_first_unacknowledged_message(
    box: HttpBox, acknowledged: Sequence[int], first: int | None
) -> None:
    client = Client(box)
    ids = client.publish(T, 5)
    consumer = client.subscribe(T, permits=5)
    for at in acknowledged:
        client.ack(consumer, ids[at])
    found = await page(box, from_="unacknowledged", subscription="s", direction="forward")
    assert texts(found) == [f"m{at}" for at in range(5 if first is None else first, 5)]
    got = await box.ask("GET", f"{PATH}?from=unacknowledged")
    assert (got.status, got.reason) == (400, "from: unacknowledged requires a subscription")


async def test_damaged_entries_are_one_row_and_the_page_goes_on(monkeypatch: pytest.MonkeyPatch, box: HttpBox) -> None:
    client = Client(box)
    ids = client.publish(T, 6)
    topic = box.broker.topics.find(parse_topic(T), box.shell.now())
    assert isinstance(topic, PersistentTopic)
    real = type(topic.reader).read_run

    def read_run(self: Any, first: Any, last: int, size: int, answer: Any) -> None:
        bad = ids[2]
        if first.entry_id == bad[1]:
            answer([], EntryDamaged(bad[0], bad[1], bad[1] + 1, "flipped"), box.shell.now())
        elif first.entry_id < bad[1] <= last:
            real(self, first, bad[1] - 1, size, answer)
        elif first.entry_id == bad[1] + 1:
            answer([], EntryDamaged(bad[0], bad[1] + 1, bad[1] + 1, "flipped"), box.shell.now())
        else:
            real(self, first, last, size, answer)

    monkeypatch.setattr(type(topic.reader), "read_run", read_run)
    for begin in ("earliest", "latest"):
        found = (await page(box, from_=begin))["messages"]
        seen = [b64decode(each["payload"]).decode() for each in found if not each.get("damaged")]
        assert seen == ["m0", "m1", "m4", "m5"]
        assert sum(each["entries"] for each in found if each.get("damaged")) == 2


async def test_partitions_are_merged_by_publish_time(monkeypatch: pytest.MonkeyPatch, box: HttpBox) -> None:
    await box.put("/persistent/public/default/t/partitions", 3)
    client = Client(box)
    producers = [client.producer(f"{T}-partition-{number}") for number in range(3)]
    chance = random.Random(4)
    for number in range(40):
        part = chance.randrange(3)
        client.send(producers[part], number, b"%02d" % number, publish_time=START + number)
    every = [f"{number:02}" for number in range(40)]
    for limit in (1, 7, 40, 100):
        assert await walked(box, "earliest", forward=True, limit=limit) == every
        assert await walked(box, "latest", forward=False, limit=limit) == every
    middle = await page(box, from_=START + 20, direction="forward", limit=5)
    assert texts(middle) == every[20:25]
    assert texts(await page(box, from_=middle["previous"], direction="backward", limit=5)) == every[15:20]
    one = await page(box, f"{PATH}-partition-1", from_="earliest", limit=2)
    assert [each["partition"] for each in one["messages"]] == [1, 1]
    assert texts(await page(box, from_=one["messages"][1]["id"], direction="forward", limit=1)) == texts(one)[1:]


@pytest.mark.parametrize(
    ("role", "subscription", "outcome"),
    [
        ("root", "kept", None),
        ("admin", "kept", None),
        ("consumer", "kept", None),
        ("topic-consumer", "kept", "kept"),
        ("topic-consumer", "free", None),
        ("topic-consumer", "", None),
        ("topic-consumer", "nowhere", "nowhere not found"),
        ("producer", "free", "producer"),
        ("other-admin", "free", "other-admin"),
        ("viewer", "free", "viewer"),
    ],
)
def test_what_has_become_of_messages_on_a_subscription_is_told_to_those_who_may_use_it(
    role: str, subscription: str, outcome: str | None
) -> None:
    box = guarded_box()
    client = client_of(box, "root")
    for number, name in enumerate(("kept", "free"), 1):
        client.subscribe(name, number, GUARDED_TOPIC)
    client.publish(1, GUARDED_TOPIC)
    box.turn()
    box.broker.permissions.grant_subscription("shop/eu", "kept", ["consumer"], box.now)
    box.turn()
    variables = {"tenant": "shop", "namespace": "eu", "topic": "orders"}
    query = {"subscription": subscription, "direction": "forward"}
    call = HttpRequest(box.broker, box.now, variables, query, b"", "", principal=Principal(role, "token"))

    def asked() -> Any:
        RULES[Permission.TOPIC_CONSUMER](box.broker.authorization, call)
        given: list[HttpResponse] = []
        browse.browse(call).on_complete(given.append)
        box.turn()
        return json.loads(given[0].body)

    if outcome is None:
        (message,) = asked()["messages"]
        assert ("state" in message) == bool(subscription)
    else:
        with pytest.raises(PulsarBoxError, match=outcome):
            asked()
