"""Clusters of the Admin API, stored beside the box's own."""

import pytest

from pulsarbox.broker.cluster import bounded_rows
from pulsarbox.broker.cluster.clusters import Clusters
from pulsarbox.errors import Conflict, NotFound, PreconditionFailed
from tests.unit.broker.playbook import Box


@pytest.fixture
def clusters() -> Clusters:
    return Box().broker.clusters


def test_the_clusters_that_exist(clusters: Clusters) -> None:
    assert clusters.names() == ["standalone"]
    clusters.create("east", {"serviceUrl": "http://east:8080"})
    assert clusters.names() == ["east", "standalone"]
    assert "east" in clusters and "west" not in clusters
    assert clusters.unknown(["west", "east", "standalone", "north", "west"]) == ["north", "west"]
    assert clusters.get("east") == {"serviceUrl": "http://east:8080"}
    with pytest.raises(Conflict):
        clusters.create("east", {})
    with pytest.raises(NotFound):
        clusters.update("west", {})


def test_the_own_cluster_always_exists(clusters: Clusters) -> None:
    with pytest.raises(Conflict):
        clusters.create("standalone", {})
    with pytest.raises(PreconditionFailed):
        clusters.delete("standalone")
    clusters.update("standalone", {"serviceUrl": "http://proxy:8080"})
    assert clusters.get("standalone") == {"serviceUrl": "http://proxy:8080"}
    assert clusters.names() == ["standalone"]


def test_a_deleted_cluster_leaves_nothing(clusters: Clusters) -> None:
    clusters.create("east", {})
    clusters.create("east-2", {})
    for name in ("east", "east-2"):
        clusters.failure_domains.put(name, {"a": {}})
    clusters.migrations.put("east", {})
    clusters.isolation_policies.put("east", {"p": {}})
    with pytest.raises(PreconditionFailed, match="not empty"):
        clusters.delete("east")
    clusters.isolation_policies.put("east", {})
    clusters.delete("east")
    assert clusters.names() == ["east-2", "standalone"]
    assert clusters.failure_domains.names() == ["east-2"]
    assert clusters.migrations.names() == clusters.isolation_policies.names() == []
    with pytest.raises(NotFound):
        clusters.delete("east")


def test_clusters_are_limited(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_rows, "ROWS_MAX", 2)
    clusters.create("a", {})
    clusters.create("b", {})
    with pytest.raises(PreconditionFailed, match="Too many clusters"):
        clusters.create("c", {})
    clusters.update("b", {"serviceUrl": "http://b"})
    with pytest.raises(PreconditionFailed, match="too large"):
        clusters.update("b", {"serviceUrl": "x" * bounded_rows.ROW_BYTES_MAX})
    with pytest.raises(PreconditionFailed, match="too long"):
        clusters.failure_domains.put("x" * 600, {})


def test_everything_survives_a_restart() -> None:
    box = Box()
    clusters = box.broker.clusters
    clusters.create("east", {"serviceUrl": "http://east:8080"})
    clusters.update("standalone", {"serviceUrl": "http://proxy:8080"})
    clusters.failure_domains.put("east", {"a": {"brokers": ["b"]}})
    clusters.isolation_policies.put("east", {"p": {}})
    clusters.migrations.put("east", {"migrated": True})
    box.advance(0)
    restarted = box.restart().broker.clusters
    assert restarted.names() == ["east", "standalone"]
    assert restarted.get("standalone") == {"serviceUrl": "http://proxy:8080"}
    assert restarted.failure_domains.get("east") == {"a": {"brokers": ["b"]}}
    assert restarted.isolation_policies.get("east") == {"p": {}}
    assert restarted.migrations.get("east") == {"migrated": True}


def test_the_own_cluster_has_the_addresses_of_the_box(clusters: Clusters) -> None:
    assert clusters.get("standalone")["brokerServiceUrl"].startswith("pulsar://")
    assert clusters.own == "standalone"
