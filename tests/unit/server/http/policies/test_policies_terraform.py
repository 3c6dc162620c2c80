"""A box accepts the requests of Terraform's provider for Pulsar, resource ``pulsar_namespace``.

The sequences of paths and bodies are those of ``terraform-provider-pulsar`` and the Go client that it uses. It fails on
the first request that is refused.
"""

from typing import Any, Final, NamedTuple

import pytest

from tests.unit.server.http.harness import HttpBox

TENANT: Final = "terraform"
N: Final = f"/namespaces/{TENANT}/n"
RATE: Final = {
    "dispatchThrottlingRateInMsg": 50,
    "dispatchThrottlingRateInByte": 2048,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 50,
}
PERSISTENCE: Final = {
    "bookkeeperEnsemble": 2,
    "bookkeeperWriteQuorum": 2,
    "bookkeeperAckQuorum": 2,
    "managedLedgerMaxMarkDeleteRate": 0.0,
}
INACTIVE: Final = {
    "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
    "maxInactiveDurationSeconds": 60,
    "deleteWhileInactive": True,
}
QUOTA: Final = {"limitSize": 10_000_000_000, "limitTime": -1, "policy": "consumer_backlog_eviction"}
AGE_QUOTA: Final = {"limitSize": -1, "limitTime": 10_000, "policy": "producer_request_hold"}
RETENTION: Final = {"retentionTimeInMinutes": 1600, "retentionSizeInMB": 20_000}


class Asked(NamedTuple):
    """One request, with the parsed answer that the provider expects; ``...`` for any."""

    method: str
    path: str
    body: Any = None
    answer: Any = ...


LIMITS: Final = {
    "maxConsumersPerTopic": 50,
    "maxConsumersPerSubscription": 50,
    "maxProducersPerTopic": 51,
    "messageTTL": 86400,
}
CREATE: Final = (Asked("PUT", N),)
UPDATE: Final = (
    Asked("POST", f"{N}/antiAffinity", "anti-aff"),
    Asked("POST", f"{N}/isAllowAutoUpdateSchema", True),
    *(Asked("POST", f"{N}/{word}", value) for word, value in LIMITS.items()),
    Asked("PUT", f"{N}/offloadThreshold", 1024),
    Asked("POST", f"{N}/replication", ["standalone"]),
    Asked("PUT", f"{N}/schemaCompatibilityStrategy", "FORWARD"),
    Asked("PUT", f"{N}/schemaAutoUpdateCompatibilityStrategy", "Forward"),
    Asked("POST", f"{N}/schemaValidationEnforced", True),
    Asked("POST", f"{N}/subscriptionExpirationTime", 1440),
    Asked("POST", f"{N}/retention", RETENTION),
    Asked("POST", f"{N}/inactiveTopicPolicies", INACTIVE),
    Asked("POST", f"{N}/backlogQuota?backlogQuotaType=destination_storage", QUOTA),
    Asked("POST", f"{N}/backlogQuota?backlogQuotaType=message_age", AGE_QUOTA),
    Asked("POST", f"{N}/dispatchRate", RATE),
    Asked("POST", f"{N}/subscriptionDispatchRate", RATE),
    Asked("POST", f"{N}/persistence", PERSISTENCE),
    Asked("POST", f"{N}/deduplication", True),
    Asked("POST", f"{N}/permissions/some-role", ["produce", "consume"]),
    Asked("POST", f"{N}/autoTopicCreation", {"allowAutoTopicCreation": True, "topicType": "non-partitioned"}),
)
"""A resource with every block. A later apply sends the same requests."""

READ: Final = (
    Asked("GET", f"/namespaces/{TENANT}", answer=[f"{TENANT}/n"]),
    Asked("GET", f"{N}/antiAffinity", answer="anti-aff"),
    Asked("GET", f"{N}/isAllowAutoUpdateSchema", answer=True),
    Asked("GET", N),
    Asked("GET", f"{N}/offloadThreshold", answer=1024),
    Asked("GET", f"{N}/replication", answer=["standalone"]),
    Asked("GET", f"{N}/schemaValidationEnforced", answer=True),
    Asked("GET", f"{N}/schemaAutoUpdateCompatibilityStrategy", answer="Forward"),
    Asked("GET", f"{N}/schemaCompatibilityStrategy", answer="FORWARD"),
    Asked("GET", f"{N}/subscriptionExpirationTime", answer=1440),
    Asked("GET", f"{N}/persistence", answer=PERSISTENCE),
    Asked("GET", f"{N}/retention", answer=RETENTION),
    Asked("GET", f"{N}/inactiveTopicPolicies", answer=INACTIVE),
    Asked("GET", f"{N}/backlogQuotaMap"),
    Asked("GET", f"{N}/dispatchRate", answer=RATE),
    Asked("GET", f"{N}/subscriptionDispatchRate", answer=RATE),
    Asked("GET", f"{N}/permissions", answer={"some-role": ["produce", "consume"]}),
    Asked("GET", f"{N}/autoTopicCreation", answer={"allowAutoTopicCreation": True, "topicType": "non-partitioned"}),
)
"""A refresh, which follows each create and update."""

REDUCE: Final = (
    Asked("POST", f"{N}/isAllowAutoUpdateSchema", False),
    *(Asked("DELETE", f"{N}/{word}") for word in LIMITS),
    Asked("PUT", f"{N}/offloadThreshold", 0),
    Asked("POST", f"{N}/schemaValidationEnforced", False),
    Asked("DELETE", f"{N}/subscriptionExpirationTime"),
    Asked("DELETE", f"{N}/backlogQuota?backlogQuotaType=message_age"),
    Asked("DELETE", f"{N}/backlogQuota?backlogQuotaType=destination_storage"),
    Asked("DELETE", f"{N}/retention"),
    Asked("DELETE", f"{N}/inactiveTopicPolicies"),
    Asked("DELETE", f"{N}/permissions/some-role"),
    Asked("DELETE", f"{N}/autoTopicCreation"),
)
"""An update to a resource with an empty ``namespace_config`` and no other block."""

DELETE: Final = (Asked("DELETE", N),)


async def replay(box: HttpBox, *requests: Asked) -> list[tuple[str, Any, Any]]:
    """Send requests; return those with a status of 400 or more, and those with another answer."""
    wrong = []
    for each in requests:
        got = await box.ask(each.method, f"/admin/v2{each.path}", each.body)
        found = got.value if got.text and got.status < 400 else got.text
        if got.status >= 400 or each.answer not in (..., found):
            wrong.append((f"{each.method} {each.path}", got.status, found))
    return wrong


@pytest.fixture
def tenant(box: HttpBox) -> HttpBox:
    """A box with the tenant of the resource."""
    box.broker.tenants.create(TENANT, {"allowedClusters": ["standalone"]})
    box.shell.kick()
    return box


async def test_a_namespace_is_created_read_reduced_and_deleted(tenant: HttpBox) -> None:
    assert await replay(tenant, *CREATE, *UPDATE, *READ) == []
    assert await replay(tenant, *UPDATE, *READ) == [], "a second apply"
    reads = (each._replace(answer=...) for each in READ)
    assert await replay(tenant, *REDUCE, *reads, *DELETE) == []


async def test_the_object_with_all_policies_has_what_the_provider_reads(tenant: HttpBox) -> None:
    await replay(tenant, *CREATE, *UPDATE)
    policies = (await tenant.get(N)).value
    assert {name: policies[name] for name in policies if name.startswith("max_") or "ttl" in name} == {
        "max_consumers_per_topic": 50,
        "max_consumers_per_subscription": 50,
        "max_producers_per_topic": 51,
        "message_ttl_in_seconds": 86400,
    }
    await replay(tenant, *REDUCE)
    policies = (await tenant.get(N)).value
    assert not any(name.startswith("max_") or "ttl" in name for name in policies), "unset members are left out"


async def test_a_namespace_without_any_block_is_imported(tenant: HttpBox) -> None:
    reads = (each._replace(answer=...) for each in READ if "schemaAuto" not in each.path)
    assert await replay(tenant, *CREATE, *reads) == []
