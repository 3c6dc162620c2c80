"""Policies in the Admin API from the policy table, beyond the responses recorded from Pulsar."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.protocol.policies.table import NAMES
from tests.unit.server.http.harness import HttpBox

RATE = {"dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": -1}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("POST", "namespaces/public/default/inactiveTopicPolicies", {"inactiveTopicDeleteMode": "x"}, 400, "inactive"),
        (
            "POST",
            "namespaces/public/default/subscriptionAuthMode",
            "x",
            400,
            "subscriptionAuthMode must be one of None",
        ),
        ("PUT", "namespaces/public/default/schemaCompatibilityStrategy", "x", 400, "schemaCompatibilityStrategy must"),
        (
            "PUT",
            "persistent/public/default/t/schemaCompatibilityStrategy",
            "x",
            400,
            "schemaCompatibilityStrategy must",
        ),
        ("POST", "namespaces/public/default/messageTTL", 1 << 31, 400, "messageTTL must be a whole number of at most"),
        ("POST", "namespaces/public/default/messageTTL", True, 400, "messageTTL must be a whole number, not a bool"),
        ("POST", "namespaces/public/default/retention", [1], 400, "retention must be an object such as"),
        ("POST", "namespaces/public/default/retention", b"{", 400, "The body is not JSON"),
        (
            "POST",
            "namespaces/public/default/persistence",
            {"managedLedgerMaxMarkDeleteRate": "x"},
            400,
            "managedLedger",
        ),
        (
            "POST",
            "namespaces/public/default/persistence",
            {"bookkeeperEnsemble": 2, "bookkeeperWriteQuorum": 3},
            400,
            "Bookkeeper Ensemble (2) >= WriteQuorum (3)",
        ),
        ("PUT", "resourcegroups/a%20b", {}, 412, "ResourceGroup name is not valid"),
        ("PUT", "resourcegroups/a", {"publishRateInMsgs": "x"}, 400, "publishRateInMsgs of a resource group must be"),
    ],
)
async def test_what_is_wrong_is_said(box: HttpBox, method: str, path: str, body: Any, status: int, reason: str) -> None:
    await box.put("/persistent/public/default/t")
    got = await box.ask(method, f"/admin/v2/{path}", body)
    assert got.status == status
    assert got.reason.startswith(reason)


@pytest.mark.settings(Settings(topicLevelPoliciesEnabled=False))
async def test_without_policies_of_topics_each_endpoint_says_so(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    for method, word in (("GET", "retention"), ("POST", "maxProducers"), ("DELETE", "s/dispatchRate")):
        got = await box.ask(method, f"/admin/v2/persistent/public/default/t/{word}", 3 if method == "POST" else None)
        assert (got.status, got.reason) == (
            405,
            "Topic level policies is disabled, to enable the topic level policy and retry.",
        )


@pytest.mark.settings(Settings(clusterName="here"))
async def test_a_rate_is_kept_by_the_name_of_the_cluster(box: HttpBox) -> None:
    await box.post("/namespaces/public/default/dispatchRate", RATE)
    kept = (await box.get("/namespaces/public/default")).value["topicDispatchRate"]
    assert list(kept) == ["here"]
    assert kept["here"]["dispatchThrottlingRateInMsg"] == 10
    assert (await box.get("/namespaces/public/default/dispatchRate")).value == kept["here"]
    await box.delete("/namespaces/public/default/dispatchRate")
    assert (await box.get("/namespaces/public/default")).value["topicDispatchRate"] == {}


async def test_what_a_namespace_shows_makes_another_one(box: HttpBox) -> None:
    await box.post("/namespaces/public/default/dispatchRate", RATE)
    await box.post("/namespaces/public/default/retention", {"retentionTimeInMinutes": 3, "retentionSizeInMB": 4})
    await box.post("/namespaces/public/default/backlogQuota", {"limitSize": 5, "policy": "producer_exception"})
    await box.post("/namespaces/public/default/encryptionRequired", True)
    await box.put("/resourcegroups/g", {})
    await box.post("/namespaces/public/default/resourcegroup/g")
    policies = (await box.get("/namespaces/public/default")).value
    assert (await box.put("/namespaces/public/copy", policies)).status == 204
    assert (await box.get("/namespaces/public/copy")).value == policies


async def test_the_policies_of_one_subscription_stand_apart(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    await box.post("/persistent/public/default/t/a%252Fb/dispatchRate", RATE)
    await box.post("/persistent/public/default/t/c/dispatchRate", {**RATE, "dispatchThrottlingRateInMsg": 20})
    got = (await box.get("/persistent/public/default/t/a%252Fb/dispatchRate")).value
    assert got["dispatchThrottlingRateInMsg"] == 10
    await box.delete("/persistent/public/default/t/a%252Fb/dispatchRate")
    assert (await box.get("/persistent/public/default/t/a%252Fb/dispatchRate")).text == ""
    got = (await box.get("/persistent/public/default/t/c/dispatchRate?applied=true")).value
    assert got["dispatchThrottlingRateInMsg"] == 20


async def test_a_topic_that_is_not_persistent_has_policies_too(box: HttpBox) -> None:
    await box.put("/non-persistent/public/default/t")
    assert (await box.post("/non-persistent/public/default/t/maxProducers", 3)).status == 204
    assert (await box.get("/non-persistent/public/default/t/maxProducers")).value == 3


async def test_policies_of_topics_go_with_their_namespace(box: HttpBox) -> None:
    for _ in range(2):
        await box.put("/namespaces/public/n")
        await box.put("/non-persistent/public/n/t")
        assert (await box.get("/non-persistent/public/n/t/maxProducers")).text == ""
        await box.post("/non-persistent/public/n/t/maxProducers", 3)
        box.broker.topics.unload(next(iter(box.broker.topics)), lambda now: None, box.shell.now())
        assert (await box.delete("/namespaces/public/n")).status == 204


async def test_levels_of_all_policies(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    await box.post("/namespaces/public/default/dispatchRate", RATE)
    await box.post("/persistent/public/default/t/dispatchRate", {"dispatchThrottlingRateInMsg": 0})
    await box.post("/persistent/public/default/t/maxConsumers?isGlobal=true", 7)
    await box.post("/persistent/public/default/t/backlogQuota", {"limitSize": 5, "policy": "producer_exception"})
    found = (await box.ask("GET", "/pulsarbox/v1/policies/persistent/public/default/t")).value
    assert {name: each["level"] for name, each in found.items() if each["level"] != "broker"} == {
        "dispatch-rate": "namespace",
        "replication-clusters": "namespace",
        "max-consumers": "topic",
        "backlog-quota:destination_storage": "topic",
    }
    assert found["max-consumers"]["value"] == 7
    assert {name.partition(":")[0] for name in found} == set(NAMES)
    of_namespace = (await box.ask("GET", "/pulsarbox/v1/policies/public/default")).value
    assert set(found) - set(of_namespace) == {"max-message-size", "shadow-topics"}
    assert (await box.ask("GET", "/pulsarbox/v1/policies/persistent/public/default/none")).status == 404
    assert (await box.ask("GET", "/pulsarbox/v1/policies/public/none")).status == 404


async def test_a_subscription_beyond_the_limit_is_not_made(box: HttpBox) -> None:
    await box.put("/persistent/public/default/p/partitions", 2)
    await box.post("/persistent/public/default/p/maxSubscriptionsPerTopic", 1)
    assert (await box.put("/persistent/public/default/p/subscription/a")).status == 204
    got = await box.put("/persistent/public/default/p/subscription/b")
    assert (got.status, got.reason) == (
        409,
        "Exceed the maximum number of subscriptions of the topic: persistent://public/default/p-partition-0",
    )
    assert (await box.get("/persistent/public/default/p/subscriptions")).value == ["a"]


async def test_a_group_stays_while_a_namespace_is_attached_and_goes_with_the_last(box: HttpBox) -> None:
    await box.put("/resourcegroups/g", {"publishRateInMsgs": 5})
    await box.post("/namespaces/public/default/resourcegroup/g")
    assert (await box.delete("/resourcegroups/g")).status == 412
    await box.delete("/namespaces/public/default")
    assert (await box.delete("/resourcegroups/g")).status == 204
    assert (await box.get("/resourcegroups")).value == []
