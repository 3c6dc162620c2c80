"""Namespace isolation policies, with the statuses and texts of Pulsar 4.2.4."""

from typing import Any

import pytest

from pulsarbox.errors import WARNING_HEADER
from tests.unit.server.http.harness import HttpBox

POLICIES = "/clusters/standalone/namespaceIsolationPolicies"
FAILOVER: dict[str, Any] = {
    "policy_type": "min_available",
    "parameters": {"min_limit": "1", "usage_threshold": "80"},
}
POLICY = {"namespaces": ["t/.*"], "primary": ["b1.*"], "secondary": ["b2.*"], "auto_failover_policy": FAILOVER}


async def test_a_cluster_without_policies(box: HttpBox) -> None:
    for rest in ("", "/p", "/brokers", "/brokers/b1"):
        missing = await box.get(POLICIES + rest)
        reason = "NamespaceIsolationPolicies for cluster standalone does not exist"
        assert (missing.status, missing.reason) == (404, reason)
    assert (await box.delete(f"{POLICIES}/p")).status == 204
    assert (await box.get(POLICIES)).value == {}


async def test_a_missing_cluster(box: HttpBox) -> None:
    for rest, status in (("", 404), ("/p", 412), ("/brokers", 412), ("/brokers/b1", 412)):
        missing = await box.get(f"/clusters/none/namespaceIsolationPolicies{rest}")
        assert (missing.status, missing.reason) == (status, "Cluster none does not exist.")
    assert (await box.post("/clusters/none/namespaceIsolationPolicies/p", POLICY)).status == 412
    assert (await box.delete("/clusters/none/namespaceIsolationPolicies/p")).status == 412


async def test_the_life_of_policies(box: HttpBox) -> None:
    done = await box.post(f"{POLICIES}/p", POLICY | {"unknown": 1, "unload_scope": "other"})
    assert (done.status, WARNING_HEADER in done.headers) == (204, True)
    other = POLICY | {"namespaces": ["u/.*"], "primary": ["box.*", "b2"], "unload_scope": "none"}
    numbers = {"min_limit": 1, "usage_threshold": 80}
    sent = other | {"auto_failover_policy": FAILOVER | {"parameters": numbers}}
    assert (await box.post(f"{POLICIES}/q", sent)).status == 204
    assert (await box.get(POLICIES)).value == {"p": POLICY, "q": other}
    assert (await box.get(f"{POLICIES}/q")).value == other
    missing = await box.get(f"{POLICIES}/none")
    reason = "Cannot find NamespaceIsolationPolicy none for cluster standalone"
    assert (missing.status, missing.reason) == (404, reason)
    assert (await box.delete(f"{POLICIES}/p")).status == 204
    assert (await box.get(POLICIES)).value == {"q": other}


async def test_policies_of_brokers(box: HttpBox) -> None:
    await box.post(f"{POLICIES}/p", POLICY)
    await box.post(f"{POLICIES}/q", POLICY | {"namespaces": ["u/.*"], "primary": ["box.*", "b2"]})
    own = {"brokerName": "box:8080", "policyName": "q", "primary": True, "namespaceRegex": ["u/.*"]}
    assert (await box.get(f"{POLICIES}/brokers")).value == [own]
    both = {"brokerName": "b2", "policyName": "q", "primary": True, "namespaceRegex": ["t/.*", "u/.*"]}
    assert (await box.get(f"{POLICIES}/brokers/b2")).value == both
    none = {"brokerName": "other", "primary": False, "namespaceRegex": []}
    assert (await box.get(f"{POLICIES}/brokers/other")).value == none


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"namespaces": []}, "namespaces must not be empty"),
        ({"primary": []}, "primary must not be empty"),
        ({"primary": None}, "primary must be a list of strings, not null"),
        ({"secondary": [1]}, "secondary must be a list of strings; one is a number"),
        ({"primary": ["("]}, "primary has the invalid regular expression '('"),
        ({"auto_failover_policy": None}, "auto_failover_policy must be an object"),
        ({"auto_failover_policy": FAILOVER | {"policy_type": "x"}}, "auto_failover_policy must be an object"),
        (
            {"auto_failover_policy": FAILOVER | {"parameters": {"min_limit": "1"}}},
            "auto_failover_policy needs the parameter usage_threshold, a whole number",
        ),
        (
            {"auto_failover_policy": FAILOVER | {"parameters": {"min_limit": "x", "usage_threshold": "1"}}},
            "auto_failover_policy needs the parameter min_limit, a whole number",
        ),
        ({"primary": ["b"] * 10 + [f"b{i}" for i in range(200)]}, "a cluster may have at most"),
        ({"namespaces": ["x" * 300]}, "namespaces has a regular expression of more than"),
    ],
)
async def test_invalid_policies(box: HttpBox, change: dict[str, Any], reason: str) -> None:
    refused = await box.post(f"{POLICIES}/p", POLICY | change)
    begin = f"Invalid format of input policy data. policy: p; {reason}"
    assert (refused.status, refused.reason[: len(begin)]) == (400, begin)
    assert (await box.get(POLICIES)).status == 404


async def test_a_cluster_with_policies_is_not_deleted(box: HttpBox) -> None:
    await box.put("/clusters/east", {})
    await box.post("/clusters/east/namespaceIsolationPolicies/p", POLICY)
    refused = await box.delete("/clusters/east")
    assert (refused.status, refused.reason) == (412, "Cluster not empty")
    await box.delete("/clusters/east/namespaceIsolationPolicies/p")
    assert (await box.delete("/clusters/east")).status == 204
