"""Replication clusters, allowed clusters and shadow topics: checked as in Pulsar 4.2.4, stored with a warning."""

from typing import Any, Final

import pytest

from pulsarbox.errors import WARNING_HEADER
from pulsarbox.names import parse_topic
from tests.unit.server.http.harness import HttpBox

N: Final = "/namespaces/public/n"
T: Final = "/persistent/public/n/t"
OWN: Final = "standalone"
TENANT: Final = "is not in the list of allowed clusters list for tenant [public]"
NOT_REPLICATED: Final = "stored, without effect: a box does not replicate messages to other clusters"


@pytest.fixture
def clusters(box: HttpBox) -> HttpBox:
    """A box with the clusters ``far``, which the tenant public allows, and ``other``."""
    box.broker.clusters.create("far", {})
    box.broker.clusters.create("other", {})
    box.broker.tenants.update("public", {"adminRoles": [], "allowedClusters": [OWN, "far"]})
    box.broker.tenants.create_namespace("public/n", None)
    box.broker.topics.create(parse_topic("public/n/t"), box.shell.now())
    box.shell.kick()
    return box


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 412, "ClusterIds should not be null or empty"),
        (b"null", 412, "ClusterIds should not be null or empty"),
        ([], 412, "ClusterIds should not be null or empty"),
        ({}, 400, "replication must be a list, not an object"),
        ([1], 400, "each of replication must be a string"),
        (["none"], 403, "Invalid cluster id: none"),
        ([OWN, "other"], 403, f"Cluster [other] {TENANT}"),
        ([str(number) for number in range(1001)], 400, "replication must have at most 1000 elements"),
    ],
)
async def test_clusters_that_a_namespace_cannot_replicate_to(
    clusters: HttpBox, body: Any, status: int, reason: str
) -> None:
    got = await clusters.post(f"{N}/replication", body)
    assert (got.status, got.reason[: len(reason)]) == (status, reason)
    assert (await clusters.get(f"{N}/replication")).value == [OWN]


async def test_the_clusters_of_a_namespace(clusters: HttpBox) -> None:
    got = await clusters.post(f"{N}/replication", [OWN])
    assert (got.status, got.text, WARNING_HEADER in got.headers) == (200, "", False)
    got = await clusters.post(f"{N}/replication", [OWN, "far", "far"])
    assert (got.status, got.headers[WARNING_HEADER]) == (200, f"replication-clusters: {NOT_REPLICATED}")
    assert (await clusters.get(f"{N}/replication")).value == ["far", OWN]
    assert (await clusters.get(N)).value["replication_clusters"] == ["far", OWN]
    assert (await clusters.get(f"{T}/replication")).text == ""
    assert (await clusters.get(f"{T}/replication?applied=true")).value == ["far", OWN]
    assert (await clusters.post("/namespaces/public/none/replication", [OWN])).status == 404


async def test_a_namespace_of_several_clusters_is_not_deleted(clusters: HttpBox) -> None:
    await clusters.delete(T)
    await clusters.post(f"{N}/replication", [OWN, "far"])
    refused = await clusters.delete(N)
    assert (refused.status, refused.reason[:44]) == (412, "Cannot delete the global namespace public/n.")
    await clusters.post(f"{N}/replication", ["far"])
    assert (await clusters.delete(N)).status == 204


async def test_allowed_clusters_contain_those_replicated_to(clusters: HttpBox) -> None:
    for body, status, reason in (
        (None, 400, "Clusters cannot be null"),
        (["none"], 403, f"Cluster [none] {TENANT}"),
        (["far"], 400, "Allowed clusters do not contain the replication cluster [standalone]. Please remove"),
        ([], 400, "Allowed clusters do not contain the replication cluster [standalone]. Please remove"),
    ):
        got = await clusters.post(f"{N}/allowedClusters", body)
        assert (got.status, got.reason[: len(reason)]) == (status, reason)
    assert (await clusters.get(f"{N}/allowedClusters")).value == []
    assert WARNING_HEADER not in (await clusters.post(f"{N}/allowedClusters", [OWN])).headers
    refused = await clusters.post(f"{N}/replication", [OWN, "far"])
    assert (refused.status, refused.reason) == (
        400,
        "Cluster [far] is not in the list of allowed clusters list for namespace [public/n]",
    )
    got = await clusters.post(f"{N}/allowedClusters", [OWN, "far"])
    assert (got.status, got.headers[WARNING_HEADER]) == (200, f"allowed-clusters: {NOT_REPLICATED}")
    assert (await clusters.post(f"{N}/replication", [OWN, "far"])).status == 200
    assert (await clusters.get(N)).value["allowed_clusters"] == ["far", OWN]


async def test_peers_do_not_replicate_to_each_other(clusters: HttpBox) -> None:
    clusters.broker.clusters.update("far", {"peerClusterNames": ["other"]})
    await clusters.post("/tenants/public", {"adminRoles": [], "allowedClusters": [OWN, "far", "other"]})
    got = await clusters.post(f"{N}/replication", ["far", "other"])
    assert (got.status, got.reason) == (
        409,
        "far's peer-clusters [other] can't be part of replication-clusters [far, other]",
    )


@pytest.mark.parametrize(
    ("body", "status", "replication", "allowed"),
    [
        ({"replication_clusters": [OWN, "far"]}, 204, ["far", OWN], []),
        ({"replication_clusters": ["far"]}, 204, ["far"], []),
        ({"allowed_clusters": ["far"]}, 204, [OWN], ["far", OWN]),
        ({"allowed_clusters": [OWN, "far"], "replication_clusters": ["far"]}, 204, ["far"], ["far", OWN]),
        ({"allowed_clusters": [OWN], "replication_clusters": ["far"]}, 400, None, None),
        ({"replication_clusters": ["other"]}, 403, None, None),
        ({"allowed_clusters": ["none"]}, 403, None, None),
    ],
)
async def test_clusters_of_a_new_namespace(
    clusters: HttpBox, body: Any, status: int, replication: Any, allowed: Any
) -> None:
    got = await clusters.put("/namespaces/public/new", body)
    assert got.status == status
    if status == 204:
        policies = (await clusters.get("/namespaces/public/new")).value
        assert (policies["replication_clusters"], policies["allowed_clusters"]) == (replication, allowed)
        assert "does not replicate" in got.headers[WARNING_HEADER]


async def test_a_tenant_that_does_not_allow_the_box_has_no_namespaces(clusters: HttpBox) -> None:
    await clusters.put("/tenants/afar", {"adminRoles": [], "allowedClusters": ["far"]})
    got = await clusters.put("/namespaces/afar/n")
    assert (got.status, got.reason) == (
        403,
        "Cluster [standalone] is not in the list of allowed clusters list for tenant [afar]",
    )


# Topics


@pytest.mark.parametrize(
    ("query", "body", "status", "reason"),
    [
        ("", None, 412, "ClusterIds should not be null or empty"),
        ("", [], 412, "ClusterIds should not be null or empty"),
        ("", ["far"], 412, "Can not remove local cluster from the local topic-level replication clusters policy"),
        ("", [OWN, "none"], 403, "Invalid cluster id: none"),
        ("", [OWN, "other"], 403, f"Cluster [other] {TENANT}"),
        ("?isGlobal=true", [OWN], 412, "Please do not use the global topic level policy when namespace-level"),
    ],
)
async def test_clusters_that_a_topic_cannot_replicate_to(
    clusters: HttpBox, query: str, body: Any, status: int, reason: str
) -> None:
    got = await clusters.post(f"{T}/replication{query}", body)
    assert (got.status, got.reason[: len(reason)]) == (status, reason)


async def test_the_clusters_of_a_topic(clusters: HttpBox) -> None:
    assert WARNING_HEADER not in (await clusters.post(f"{T}/replication", [OWN])).headers
    got = await clusters.post(f"{T}/replication", [OWN, "far"])
    assert (got.status, got.headers[WARNING_HEADER]) == (204, f"replication-clusters: {NOT_REPLICATED}")
    assert (await clusters.get(f"{T}/replication")).value == ["far", OWN]
    assert (await clusters.get(f"{T}/replication?applied=true")).value == ["far", OWN]
    assert (await clusters.delete(f"{T}/replication")).status == 204
    assert (await clusters.get(f"{T}/replication?applied=true")).value == [OWN]
    await clusters.post(f"{N}/replication", [OWN, "far"])
    assert (await clusters.post(f"{T}/replication?isGlobal=true", ["far"])).status == 204
    assert (await clusters.post(f"{T}/replication?isGlobal=true", ["other"])).reason.startswith("The policies at the")
    assert (await clusters.get(f"{T}/replication?isGlobal=true")).value == ["far"]
    assert (await clusters.get(f"{T}-none/replication")).status == 404


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 412, "Cannot specify empty shadow topics, please use remove command instead."),
        ([], 412, "Cannot specify empty shadow topics, please use remove command instead."),
        (["none"], 412, "Shadow topic [none] not exists."),
        (["non-persistent://public/n/n"], 412, "Only persistent topic can be set as shadow topic"),
        (["a b://"], 403, "Invalid shadow topic name: a b://"),
        ({}, 400, "shadowTopics must be a list, not an object"),
    ],
)
async def test_topics_that_are_no_shadows(clusters: HttpBox, body: Any, status: int, reason: str) -> None:
    got = await clusters.put(f"{T}/shadowTopics", body)
    assert (got.status, got.reason) == (status, reason)


async def test_shadow_topics(clusters: HttpBox) -> None:
    await clusters.put("/persistent/public/n/p/partitions", 2)
    got = await clusters.put(f"{T}/shadowTopics", ["public/n/t", "persistent://public/n/p"])
    assert (got.status, got.headers[WARNING_HEADER]) == (
        204,
        "shadow-topics: stored, without effect: a box does not copy messages to other topics",
    )
    assert (await clusters.get(f"{T}/shadowTopics")).value == ["persistent://public/n/p", "public/n/t"]
    assert (await clusters.delete(f"{T}/shadowTopics")).status == 204
    assert (await clusters.get(f"{T}/shadowTopics")).text == ""
    await clusters.put("/non-persistent/public/n/n")
    refused = await clusters.put("/non-persistent/public/n/n/shadowTopics", ["public/n/t"])
    assert (refused.status, refused.reason) == (412, "Only persistent source topic is supported with shadow topics.")
