"""Partitioned topics of both domains, with the statuses and texts of Pulsar."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import partitions_key
from tests.unit.server.http.harness import HttpBox, running_box

DOMAINS = pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
P = "/persistent/public/default/p"
AS_METADATA = {"Content-Type": "application/vnd.partitioned-topic-metadata+json"}


@DOMAINS
async def test_the_life_of_a_partitioned_topic(box: HttpBox, domain: str) -> None:
    path = f"/{domain}/public/default"
    made = await box.put(f"{path}/p/partitions", 2)
    assert (made.status, made.text) == (204, "")
    assert (await box.get(f"{path}/p/partitions")).value == {"partitions": 2, "deleted": False}
    assert (await box.get(f"{path}/partitioned")).value == [f"{domain}://public/default/p"]
    for again in (await box.put(f"{path}/p/partitions", 3), await box.put(f"{path}/p")):
        assert (again.status, again.reason) == (409, "This topic already exists")
    assert (await box.post(f"{path}/p/partitions", 3)).status == 204
    assert (await box.get(path)).value == [f"{domain}://public/default/p-partition-{i}" for i in range(3)]
    assert (await box.delete(f"{path}/p/partitions")).status == 204
    assert (await box.get(path)).value == (await box.get(f"{path}/partitioned")).value == []


@pytest.mark.parametrize("body", [2, "2", {"partitions": 2}, {"partitions": 2, "x": 1}, {"partitions": "2"}])
async def test_what_makes_and_grows_one(box: HttpBox, body: Any) -> None:
    assert (await box.put(f"{P}1/partitions", body)).status == 204
    assert (await box.ask("PUT", f"/admin/v2{P}2/partitions", body, headers=AS_METADATA)).status == 204
    await box.put(f"{P}3/partitions", 1)
    assert (await box.post(f"{P}3/partitions", body)).status == 204
    for i in (1, 2, 3):
        assert (await box.get(f"{P}{i}/partitions")).value["partitions"] == 2


async def test_properties_come_with_it(box: HttpBox) -> None:
    body = {"partitions": 1, "properties": {"k": "v"}}
    assert (await box.ask("PUT", f"/admin/v2{P}/partitions", body, headers=AS_METADATA)).status == 204
    assert (await box.get(f"{P}/partitions")).value == {"partitions": 1, "deleted": False, "properties": {"k": "v"}}
    await box.post(f"{P}/partitions", 2)
    assert (await box.get(f"{P}/partitions")).value["properties"] == {"k": "v"}


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("public/default/p", None, 400, "The body must be the number of partitions, not empty"),
        ("public/default/p", b"null", 406, "Number of partitions should be more than 0"),
        ("public/default/p", 0, 406, "Number of partitions should be more than 0"),
        ("public/default/p", -1, 406, "Number of partitions should be more than 0"),
        ("public/default/p", {"partitions": 0}, 406, "Number of partitions should be more than 0"),
        ("public/default/p", {}, 406, "Number of partitions should be more than 0"),
        ("public/default/p", 10**9, 406, "Number of partitions should be less than or equal to 10000"),
        ("public/default/p", "x", 400, "The number of partitions must be a whole number, not 'x'"),
        ("public/default/p", 1.5, 400, "The number of partitions must be a whole number, not a number"),
        ("public/default/p", True, 400, "The number of partitions must be a whole number, not a boolean"),
        ("public/default/p", [2], 400, "The number of partitions must be a whole number, not an array"),
        ("public/default/p", {"partitions": 1, "properties": 1}, 400, "Properties of a topic must be a JSON object"),
        ("public/default/p-partition-0", 2, 412, "Partitioned Topic Name should not contain '-partition-'"),
        ("public/default/t", 2, 409, "This topic already exists"),
        ("public/nope/p", 2, 404, "Namespace not found"),
    ],
)
async def test_what_makes_none(box: HttpBox, path: str, body: Any, status: int, reason: str) -> None:
    await box.put("/persistent/public/default/t")
    got = await box.put(f"/persistent/{path}/partitions", body)
    assert got.status == status
    assert got.reason.startswith(reason)
    assert (await box.get("/persistent/public/default")).value == ["persistent://public/default/t"]


async def test_growing(box: HttpBox) -> None:
    await box.put(f"{P}/partitions", 3)
    assert (await box.post(f"{P}/partitions", 3)).status == 204
    fewer = await box.post(f"{P}/partitions", 2)
    assert fewer.status == 422
    assert fewer.reason == "Desired partitions 2 can't be less than the current partitions 3."
    assert (await box.post(f"{P}/partitions")).status == 400
    missing = await box.post("/persistent/public/default/x/partitions", 2)
    assert missing.status == 409
    assert missing.reason == "Topic persistent://public/default/x is not the partitioned topic."
    one = await box.post(f"{P}-partition-0/partitions", 4)
    assert (one.status, one.reason) == (412, "Partitioned Topic Name should not contain '-partition-'")
    many = await box.post(f"{P}/partitions", 10_001)
    assert many.status == 422
    assert many.reason == "Desired partitions 10001 can't be greater than the maximum partitions per topic 10000."
    assert (await box.get(f"{P}/partitions")).value["partitions"] == 3


async def test_deleting_the_wrong_way(box: HttpBox) -> None:
    await box.put(f"{P}/partitions", 1)
    await box.put("/persistent/public/default/t")
    answers = [
        await box.delete(P),
        await box.delete("/persistent/public/default/t/partitions"),
        await box.delete("/persistent/public/default/x/partitions"),
    ]
    name = "persistent://public/default"
    assert [(got.status, got.reason) for got in answers] == [
        (
            409,
            f"{name}/p is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic.",
        ),
        (
            409,
            f"{name}/t is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.",
        ),
        (404, f"Topic {name}/x not found."),
    ]


async def test_a_partition_is_a_topic(box: HttpBox) -> None:
    await box.put(f"{P}/partitions", 2)
    assert (await box.get(f"{P}-partition-0/partitions")).value == {"partitions": 0, "deleted": False}
    taken, beyond = await box.put(f"{P}-partition-0"), await box.put(f"{P}-partition-7")
    assert (taken.status, taken.reason) == (409, "This topic already exists")
    assert beyond.status == 412
    assert (await box.delete(f"{P}-partition-0")).status == 204
    assert (await box.put(f"{P}-partition-0")).status == 204


@pytest.mark.parametrize(
    ("settings", "checking", "partitions"),
    [
        (Settings(), False, None),
        (Settings(), True, 0),
        (Settings(allowAutoTopicCreation=False), True, None),
        (Settings(allowAutoTopicCreationType="partitioned", defaultNumPartitions=3), True, 3),
        (Settings(allowAutoTopicCreationType="partitioned", defaultNumPartitions=3), False, None),
    ],
)
async def test_asking_for_a_missing_topic(settings: Settings, checking: bool, partitions: int | None) -> None:
    async with running_box(settings) as box:
        got = await box.get(f"{P}/partitions{'?checkAllowAutoCreation=true' if checking else ''}")
        if partitions is None:
            assert (got.status, got.reason) == (404, "Topic persistent://public/default/p not found")
        else:
            assert (got.status, got.value) == (200, {"partitions": partitions, "deleted": False})
        assert len(box.broker.topics.names("public/default")) == (partitions or 0)
        nowhere = await box.get("/persistent/public/nope/p/partitions?checkAllowAutoCreation=true")
        assert (nowhere.status, nowhere.reason) == (404, "Namespace not found")


@DOMAINS
async def test_growing_over_partitions_that_lie_about_needs_force(box: HttpBox, domain: str) -> None:
    path, now = f"/{domain}/public/default/p", box.shell.now()
    await box.put(f"{path}/partitions", 4)
    stray = box.broker.topics.open(parse_topic(f"{domain}://public/default/p-partition-3"), now)
    # No request can cause this state, because the box rejects such topics.
    row = {"partitions": 2, "properties": {}}
    box.broker.commits.put_row(partitions_key(f"{domain}://public/default/p"), row)
    box.broker.topics.delete(parse_topic(f"{domain}://public/default/p-partition-2"), now, force=True)
    box.broker.topics.open(parse_topic(f"{domain}://public/default/p-partition-3x"), now)
    refused = await box.post(f"{path}/partitions", 4)
    assert refused.status == 409
    assert refused.reason.startswith("Exist unexpected topic partition")
    assert refused.reason.endswith(f"maximum index 2) {stray.name} ")
    assert (await box.post(f"{path}/partitions?force=true", 4)).status == 204
    assert (await box.get(f"{path}/partitions")).value["partitions"] == 4
    assert box.broker.topics.find(stray.name, now) is stray
