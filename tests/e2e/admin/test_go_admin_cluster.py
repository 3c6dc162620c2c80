"""The official Go client of the Admin API, on cluster-wide resources: clusters, isolation policies, resource quotas."""

import uuid

import pytest

from tests.e2e.conftest import Running
from tests.e2e.go_admin import GoAdmin


@pytest.fixture
def namespace(go: GoAdmin) -> str:
    """Return a new namespace."""
    tenant = f"go-{uuid.uuid4().hex[:8]}"
    go("Tenants.Create", {"Name": tenant, "adminRoles": ["boss"], "allowedClusters": ["standalone"]})
    go("Namespaces.CreateNamespace", f"{tenant}/shop")
    return f"{tenant}/shop"


def test_other_clusters(go: GoAdmin) -> None:
    name = f"go-{uuid.uuid4().hex[:8]}"
    go("Clusters.Create", {"Name": name, "serviceUrl": "http://elsewhere:8080"})
    go("Clusters.Update", {"Name": name, "serviceUrl": "http://elsewhere:8081"})
    assert name in go("Clusters.List")
    assert go("Clusters.Get", name)["serviceUrl"] == "http://elsewhere:8081"
    go("Clusters.UpdatePeerClusters", name, ["standalone"])
    assert go("Clusters.GetPeerClusters", name) == ["standalone"]
    domain = {"ClusterName": name, "DomainName": "rack", "brokers": ["localhost:8080"]}
    go("Clusters.CreateFailureDomain", domain)
    go("Clusters.UpdateFailureDomain", domain)
    assert go("Clusters.GetFailureDomain", name, "rack")["brokers"] == ["localhost:8080"]
    assert list(go("Clusters.ListFailureDomains", name)) == ["rack"]
    go("Clusters.DeleteFailureDomain", domain)
    go("Clusters.Delete", name)
    assert name not in go("Clusters.List")


def test_isolation_policies(go: GoAdmin) -> None:
    name = f"go-{uuid.uuid4().hex[:8]}"
    go("Clusters.Create", {"Name": name, "serviceUrl": "http://elsewhere:8080"})
    limits = {"min_limit": "1", "usage_threshold": "80"}
    policy = {
        "namespaces": ["go-none/.*"],
        "primary": ["b1.*"],
        "secondary": ["b2"],
        "auto_failover_policy": {"policy_type": "min_available", "parameters": limits},
    }
    go("NsIsolationPolicy.CreateNamespaceIsolationPolicy", name, "p", policy)
    assert go("NsIsolationPolicy.GetNamespaceIsolationPolicy", name, "p") == policy
    assert go("NsIsolationPolicy.GetNamespaceIsolationPolicies", name) == {"p": policy}
    [broker] = go("NsIsolationPolicy.GetBrokersWithNamespaceIsolationPolicy", name)
    assert broker["policyName"] == ""
    isolated = go("NsIsolationPolicy.GetBrokerWithNamespaceIsolationPolicy", name, "b1:8080")
    assert (isolated["policyName"], isolated["namespaceRegex"]) == ("p", ["go-none/.*"])
    go("NsIsolationPolicy.DeleteNamespaceIsolationPolicy", name, "p")
    go("Clusters.Delete", name)


def test_resource_quotas(go: GoAdmin, box: Running, namespace: str) -> None:
    bundle = "0x00000000_0x40000000"
    default = go("ResourceQuotas.GetDefaultResourceQuota")
    if box.is_ours:
        go("ResourceQuotas.SetDefaultResourceQuota", default | {"memory": 81})
        assert go("ResourceQuotas.GetDefaultResourceQuota")["memory"] == 81
        go("ResourceQuotas.SetDefaultResourceQuota", default)
    quota = default | {"msgRateIn": 5, "dynamic": False}
    go("ResourceQuotas.SetNamespaceBundleResourceQuota", namespace, bundle, quota)
    assert go("ResourceQuotas.GetNamespaceBundleResourceQuota", namespace, bundle) == quota
    go("ResourceQuotas.ResetNamespaceBundleResourceQuota", namespace, bundle)
    assert go("ResourceQuotas.GetNamespaceBundleResourceQuota", namespace, bundle) == default
