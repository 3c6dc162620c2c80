"""Namespaces, with the statuses and texts of Pulsar."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from tests.unit.server.http.harness import HttpBox


async def test_the_life_of_a_namespace(box: HttpBox) -> None:
    assert (await box.put("/namespaces/public/n")).status == 204
    again = await box.put("/namespaces/public/n")
    assert (again.status, again.reason) == (409, "Namespace already exists")
    assert (await box.get("/namespaces/public")).value == ["public/default", "public/n"]
    assert (await box.delete("/namespaces/public/n")).status == 204
    assert (await box.get("/namespaces/public")).value == ["public/default"]


async def test_the_policies_of_a_plain_namespace(box: HttpBox) -> None:
    policies = (await box.get("/namespaces/public/default")).value
    assert policies["replication_clusters"] == ["standalone"]
    assert policies["bundles"]["boundaries"] == [
        "0x00000000",
        "0x40000000",
        "0x80000000",
        "0xc0000000",
        "0xffffffff",
    ]
    assert policies["schema_compatibility_strategy"] == "UNDEFINED"
    assert (await box.put("/namespaces/public/copy", policies)).status == 204
    assert (await box.get("/namespaces/public/copy")).value == policies


@pytest.mark.parametrize(
    ("body", "bundles"),
    [
        (None, 4),
        (b"null", 4),
        ({}, 4),
        ({"nofield": 1}, 4),
        ({"bundles": {"numBundles": 2}}, 2),
        ({"bundles": {"numBundles": 0}}, 4),
        ({"bundles": {"numBundles": -1}}, 4),
        ({"bundles": None, "retention_policies": None, "deleted": False, "topicDispatchRate": {}}, 4),
        ({"subscription_auth_mode": "", "schema_compatibility_strategy": "", "antiAffinityGroup": ""}, 4),
    ],
)
async def test_what_makes_a_namespace(box: HttpBox, body: Any, bundles: int) -> None:
    assert (await box.put("/namespaces/public/n", body)).status == 204
    assert (await box.get("/namespaces/public/n")).value["bundles"]["numBundles"] == bundles


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("public/n", b"{bad", 400, "The body is not JSON"),
        ("public/n", [], 400, "The body must be a JSON object, not an array"),
        ("public/n", {"bundles": 3}, 400, "bundles must be an object"),
        ("public/n", {"bundles": {"numBundles": "x"}}, 400, "numBundles must be a whole number"),
        ("public/n", {"bundles": {"numBundles": 100_000}}, 412, "Invalid number of bundles: 100000"),
        ("public/n", {"replication_clusters": ["r"]}, 403, "Cluster [r] is not in the list of allowed clusters"),
        ("public/n", {"replication_clusters": "r"}, 400, "replication_clusters must be a list"),
        ("public/n", {"properties": {"a": {}}}, 400, "properties must be a JSON object with string values"),
        ("public/n", {"auth_policies": [1]}, 400, "auth_policies must be an object"),
        ("public/n", {"deleted": True}, 501, "deleted is not a policy to create a namespace with"),
        ("public/n", {"retention_policies": {"retentionSizeInMB": 3}}, 400, "Invalid retention policy: Setting a"),
        ("public/n", {"message_ttl_in_seconds": -3}, 412, "Invalid value for message TTL"),
        ("public/n", {"max_producers_per_topic": "x"}, 400, 'max_producers_per_topic must be a whole number, not "x"'),
        ("public/n", {"topicDispatchRate": 3}, 400, "topicDispatchRate must be an object with a member for each"),
        ("public/n", {"topicDispatchRate": {"r": []}}, 400, "topicDispatchRate of r must be an object such as"),
        ("public/n", {"backlog_quota_map": [1]}, 400, "backlog_quota_map must be an object, not an array"),
        (
            "public/n",
            {"backlog_quota_map": {"x": {"policy": "producer_exception"}}},
            400,
            "backlog_quota_map: unknown type x",
        ),
        ("public/n", {"resource_group_name": 3}, 400, "resource_group_name must be a string, not a number"),
        ("public/n%20x", None, 412, "Namespace name is not valid"),
        ("nope/n", None, 404, "Tenant does not exist"),
    ],
)
async def test_what_makes_none(box: HttpBox, path: str, body: Any, status: int, reason: str) -> None:
    got = await box.put(f"/namespaces/{path}", body)
    assert got.status == status
    assert got.reason.startswith(reason)
    assert (await box.get("/namespaces/public")).value == ["public/default"]


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "nope", 404, "Tenant not found"),
        ("GET", "a%20b", 412, "Tenant name is not valid"),
        ("GET", "public/nope", 404, "Namespace does not exist"),
        ("GET", "public/nope/topics", 404, "Namespace does not exist"),
        ("GET", "public/default/topics?mode=all", 404, "Unknown mode 'all'"),
        ("DELETE", "public/nope", 404, "Namespace public/nope does not exist."),
        ("DELETE", "a%20b/c", 412, "Namespace name is not valid"),
        ("DELETE", "public/nope?force=true", 405, "Broker doesn't allow forced deletion of namespaces"),
    ],
)
async def test_refusals(box: HttpBox, method: str, path: str, status: int, reason: str) -> None:
    got = await box.ask(method, f"/admin/v2/namespaces/{path}")
    assert got.status == status
    assert got.reason.startswith(reason)


@pytest.mark.settings(Settings(forceDeleteNamespaceAllowed=True))
async def test_a_namespace_with_topics_stays_unless_forced(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    await box.put("/non-persistent/public/default/p/partitions", 2)
    got = await box.delete("/namespaces/public/default")
    assert (got.status, got.reason) == (409, "Cannot delete non empty namespace")
    assert (await box.delete("/namespaces/public/default?force=true")).status == 204
    assert (await box.get("/namespaces/public")).value == []
    assert list(box.broker.topics) == []


async def test_the_topics_of_a_namespace(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    box.broker.topics.of_box(parse_topic("__change_events"), box.shell.now())
    await box.put("/persistent/public/default/p/partitions", 2)
    await box.put("/non-persistent/public/default/n")
    kept = [f"persistent://public/default/{name}" for name in ("p-partition-0", "p-partition-1", "t")]
    lost = ["non-persistent://public/default/n"]
    asked = {
        "": kept,
        "?mode=PERSISTENT": kept,
        "?mode=NON_PERSISTENT": lost,
        "?mode=ALL": lost + kept,
        "?includeSystemTopic=true": ["persistent://public/default/__change_events", *kept],
    }
    for query, names in asked.items():
        assert (await box.get(f"/namespaces/public/default/topics{query}")).value == names


@pytest.mark.parametrize("policy", ["replication", "allowedClusters"])
async def test_there_is_one_cluster_to_be_in(box: HttpBox, policy: str) -> None:
    path = f"/namespaces/public/default/{policy}"
    assert (await box.get(path)).value == (["standalone"] if policy == "replication" else [])
    done = await box.post(path, ["standalone"])
    assert (done.status, done.text) == (200, "")
    assert (await box.get(path)).value == ["standalone"]
    wrong: tuple[Any, ...] = (["x"], ["standalone", "x"], [], "standalone", [1], {})
    refused = [(await box.post(path, body)).status for body in wrong]
    assert refused == [403, 403, 412 if policy == "replication" else 400, 400, 400, 400]
    assert (await box.get(path)).value == ["standalone"]
    missing = await box.get(f"/namespaces/public/none/{policy}")
    assert (missing.status, missing.reason) == (404, "Namespace does not exist")
