"""Topics of both domains, with the statuses and texts of Pulsar."""

from typing import Any
from urllib.parse import quote

import pytest

from pulsarbox.broker.handlers.produce import producer as produce
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandProducer
from tests.unit.server.http.harness import HttpBox, running_box

DOMAINS = pytest.mark.parametrize("domain", ["persistent", "non-persistent"])


@DOMAINS
async def test_the_life_of_a_topic(box: HttpBox, domain: str) -> None:
    path = f"/{domain}/public/default"
    made = await box.put(f"{path}/t", {"a": "b"})
    assert (made.status, made.text) == (204, "")
    again = await box.put(f"{path}/t")
    assert (again.status, again.reason) == (409, "This topic already exists")
    assert (await box.get(path)).value == [f"{domain}://public/default/t"]
    assert (await box.get(f"{path}/t/subscriptions")).value == []
    assert (await box.delete(f"{path}/t")).status == 204
    assert (await box.get(path)).value == []


@pytest.mark.parametrize("body", [None, b"null", b" ", {}, {"a": "b"}, {"a": 1}])
async def test_what_makes_a_topic(box: HttpBox, body: Any) -> None:
    assert (await box.put("/persistent/public/default/t", body)).status == 204


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("public/default/t", [1], 400, "Properties of a topic must be a JSON object with string values, not an array"),
        (
            "public/default/t",
            {"a": None},
            400,
            "Properties of a topic must be a JSON object with string values: 'a' has null",
        ),
        (
            "public/default/t",
            {"a": {}},
            400,
            "Properties of a topic must be a JSON object with string values: 'a' has an object",
        ),
        ("public/default/t", b"{bad", 400, "The body is not JSON"),
        ("public/default/x-partition-0", None, 412, "'x-partition-0' cannot be a partition of"),
        ("public/default/%20", None, 412, "Topic name is not valid"),
        ("public/default/a%2Fb", None, 412, "Topic name is not valid"),
        ("a%20b/c/d", None, 412, "Namespace name is not valid"),
        ("public/nope/t", None, 404, "Namespace not found"),
        ("nope/nope/t", None, 404, "Namespace not found"),
        ("public/default/%FF", None, 400, "The path is not UTF-8"),
    ],
)
async def test_what_makes_none(box: HttpBox, path: str, body: Any, status: int, reason: str) -> None:
    got = await box.put(f"/persistent/{path}", body)
    assert got.status == status
    assert got.reason.startswith(reason)
    assert list(box.broker.topics) == []


ODD_NAMES = [
    "a b",
    "€",
    "a%b",
    "a%2Fb",
    "a+b",
    "a?b",
    "a#b",
    "a,b",
    "a;b=c",
    "a&b",
    "..",
    "partitioned",
    "x-partition-x",
]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names(box: HttpBox, name: str) -> None:
    path = f"/persistent/public/default/{quote(name, safe='')}"
    full = f"persistent://public/default/{name}"
    assert (await box.put(path)).status == 204
    assert [str(topic.name) for topic in box.broker.topics] == [full]
    assert (await box.get("/persistent/public/default")).value == [full]
    assert (await box.get(f"{path}/partitions")).value["partitions"] == 0
    assert (await box.get(f"{path}/subscriptions")).value == []
    assert (await box.ask("GET", f"/lookup/v2/topic{path}")).status == 200
    assert (await box.delete(path)).status == 204
    assert list(box.broker.topics) == []


async def test_names_that_need_no_escape_may_come_without(box: HttpBox) -> None:
    await box.put("/persistent/public/default/ab;c=d,e:f@g")
    assert (await box.get("/persistent/public/default")).value == ["persistent://public/default/ab;c=d,e:f@g"]


async def test_missing_topics(box: HttpBox) -> None:
    for got in (
        await box.delete("/persistent/public/default/x"),
        await box.delete("/persistent/public/default/x?force=true"),
        await box.get("/persistent/public/default/x/subscriptions"),
    ):
        assert (got.status, got.reason) == (404, "Topic persistent://public/default/x not found")
    assert (await box.delete("/non-persistent/public/default/x")).status == 204
    got = await box.get("/persistent/public/nope")
    assert (got.status, got.reason) == (404, "Namespace does not exist")


async def test_a_topic_in_use_stays_unless_forced(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    topic = box.broker.topics.loaded(parse_topic("t"))
    assert topic is not None
    now = box.shell.now()
    cnx = box.broker.connected(box.broker.new_outbox(), "127.0.0.1:5000", now)
    produce(cnx, CommandProducer(topic="t", producer_id=1, request_id=1), now)
    got = await box.delete("/persistent/public/default/t")
    assert got.status == 412
    assert got.reason.endswith("has 1 connected producers/consumers: 0 consumers, 1 producers")
    assert (await box.delete("/persistent/public/default/t?force=true")).status == 204
    assert list(box.broker.topics) == []


async def test_a_topic_with_subscriptions_goes_with_them(box: HttpBox) -> None:
    await box.put("/persistent/public/default/p/partitions", 2)
    topic = box.broker.topics.find(parse_topic("p-partition-1"), box.shell.now())
    assert isinstance(topic, PersistentTopic)
    topic.subscribe("s", earliest=True, properties={}, now=box.shell.now())
    assert (await box.get("/persistent/public/default/p/subscriptions")).value == ["s"]
    assert (await box.get("/persistent/public/default/p-partition-0/subscriptions")).value == []
    assert (await box.delete("/persistent/public/default/p/partitions")).status == 204


async def test_the_topics_of_a_bundle(box: HttpBox) -> None:
    for name in ("alpha", "beta", "gamma"):  # crc32 0x14f3229c, 0xfdc04a9a, 0x0050cb87
        await box.put(f"/persistent/public/default/{name}")
    bundles = {"0x00000000_0x40000000": ["alpha", "gamma"], "0xc0000000_0xffffffff": ["beta"], "other": []}
    for bundle, names in bundles.items():
        got = await box.get(f"/persistent/public/default?bundle={bundle}")
        assert got.value == [f"persistent://public/default/{name}" for name in names]


async def test_many_topics_are_listed_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.broker.topic.registry.PAGE", 3)
    async with running_box() as box:
        await box.put("/persistent/public/default/p/partitions", 10)
        box.broker.topics.of_box(parse_topic("__change_events"), box.shell.now())
        await box.put("/non-persistent/public/default/n")
        stored = [f"persistent://public/default/p-partition-{i}" for i in range(10)]
        assert (await box.get("/persistent/public/default")).value == stored
        listed = (await box.get("/namespaces/public/default/topics?mode=ALL")).value
        assert listed == ["non-persistent://public/default/n", *stored]
        listed = (await box.get("/namespaces/public/default/topics?mode=PERSISTENT&includeSystemTopic=true")).value
        assert listed == ["persistent://public/default/__change_events", *stored]
