"""Policies of namespaces and topics with the Go client's admin package: values are returned as set.

A box answers 501 for a policy that it does not support yet. The test is then expected to fail, as long as the endpoint
table lists the policy as unsupported.
"""

import uuid
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.e2e.go_admin import GoAdmin, NotServed

RATE: Final = {"dispatchThrottlingRateInMsg": 7, "dispatchThrottlingRateInByte": 8, "ratePeriodInSecond": 9}
PUBLISH_RATE: Final = {"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": 8}
SUBSCRIBE_RATE: Final = {"subscribeThrottlingRatePerConsumer": 7, "ratePeriodInSecond": 9}
RETENTION: Final = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 20}
PERSISTENCE: Final = {
    "bookkeeperEnsemble": 1,
    "bookkeeperWriteQuorum": 1,
    "bookkeeperAckQuorum": 1,
    "managedLedgerMaxMarkDeleteRate": 2.5,
}
INACTIVE: Final = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 900,
    "deleteWhileInactive": True,
}
QUOTA: Final = {"limitSize": 1000, "limitTime": -1, "policy": "producer_exception"}
AUTO_TOPICS: Final = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
OFFLOAD: Final = {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 5}
GROUP: Final = {"bookkeeperAffinityGroupPrimary": "a", "bookkeeperAffinityGroupSecondary": "b"}

NOT_LOOKED_AT: Final = object()


@dataclass(frozen=True)
class Policy:
    """One policy and its three calls, as far as the client has them."""

    name: str
    value: Any
    unset: Any = NOT_LOOKED_AT
    """Value that the client returns before the policy is set, and after it is removed."""
    has: tuple[str, ...] = ("Set", "Get", "Remove")
    key: tuple[str, ...] = ()
    """Further arguments of Set, after the value, and of Remove."""
    applied: bool = False
    """Whether Get has a flag."""
    remove: str = ""
    told: Any = None
    """Result of Get, if it differs from the value."""

    def call(self, verb: str) -> str:
        return f"{verb}{self.remove or self.name}" if verb in ("Remove", "Clear", "Delete") else f"{verb}{self.name}"


_NO_REMOVE: Final = ("Set", "Get")
_ONLY_SET: Final = ("Set",)

OF_NAMESPACES: Final = (
    Policy("NamespaceMessageTTL", 77, -1),
    Policy("Retention", RETENTION, None),
    Policy("TopicAutoCreation", AUTO_TOPICS),
    Policy("SchemaValidationEnforced", True, False, _NO_REMOVE),
    Policy("SchemaAutoUpdateCompatibilityStrategy", "Forward", has=_NO_REMOVE),
    Policy("SchemaCompatibilityStrategy", "FORWARD", has=_NO_REMOVE),
    Policy("OffloadDeleteLag", 5000, -1, ("Set", "Get", "Clear")),
    Policy("OffloadThreshold", 5000, -1, _NO_REMOVE),
    Policy("OffloadThresholdInSeconds", 5000, -1, _NO_REMOVE),
    Policy("CompactionThreshold", 5000, -1, _NO_REMOVE),
    Policy("MaxConsumersPerSubscription", 5, -1),
    Policy("MaxConsumersPerTopic", 5, -1),
    Policy("MaxProducersPerTopic", 5, -1),
    Policy("MaxTopicsPerNamespace", 5, 0),
    Policy("NamespaceAntiAffinityGroup", "g", has=("Set", "Get", "Delete"), told='"g"'),
    Policy("DeduplicationStatus", True, has=_ONLY_SET),
    Policy("Persistence", PERSISTENCE, None),
    Policy("BookieAffinityGroup", GROUP, has=("Set", "Get", "Delete")),
    Policy("SubscriptionAuthMode", "Prefix", has=_ONLY_SET),
    Policy("EncryptionRequiredStatus", True, has=_ONLY_SET),
    Policy("ReplicatorDispatchRate", RATE, has=_NO_REMOVE),
    Policy("SubscriptionDispatchRate", RATE, has=_NO_REMOVE),
    Policy("SubscribeRate", SUBSCRIBE_RATE, has=_NO_REMOVE),
    Policy("DispatchRate", RATE, has=_NO_REMOVE),
    Policy("PublishRate", PUBLISH_RATE, has=_NO_REMOVE),
    Policy("IsAllowAutoUpdateSchema", False, True, _NO_REMOVE),
    Policy("InactiveTopicPolicies", INACTIVE),
    Policy("SubscriptionExpirationTime", 9, -1),
)

_TOPIC_RATE: Final = RATE | {"relativeToPublishRate": True}

OF_TOPICS: Final = (
    Policy("MessageTTL", 77, -1),
    Policy("MaxProducers", 5),
    Policy("MaxConsumers", 5),
    Policy("MaxUnackMessagesPerConsumer", 5),
    Policy("MaxUnackMessagesPerSubscription", 5),
    Policy("Persistence", PERSISTENCE),
    Policy("DelayedDelivery", {"active": True, "tickTime": 500}),
    Policy("DispatchRate", _TOPIC_RATE),
    Policy("PublishRate", PUBLISH_RATE),
    Policy("DeduplicationStatus", True),
    Policy("Retention", RETENTION, applied=True),
    Policy("CompactionThreshold", 5000, applied=True),
    Policy("InactiveTopicPolicies", INACTIVE, applied=True),
    Policy("ReplicationClusters", ["standalone"]),
    Policy("SubscribeRate", SUBSCRIBE_RATE),
    Policy("SubscriptionDispatchRate", _TOPIC_RATE),
    Policy("MaxConsumersPerSubscription", 5),
    Policy("MaxMessageSize", 5000),
    Policy("MaxSubscriptionsPerTopic", 5),
    Policy("SchemaValidationEnforced", True, has=_NO_REMOVE),  # brokers have no endpoint for its Remove: see below
    Policy("DeduplicationSnapshotInterval", 5),
    Policy("ReplicatorDispatchRate", _TOPIC_RATE),
    Policy("OffloadPolicies", OFFLOAD),
    Policy("AutoSubscriptionCreation", {"allowAutoSubscriptionCreation": True}),
    Policy("SchemaCompatibilityStrategy", "FORWARD"),
)

_QUOTAS: Final = ("SetBacklogQuota", "GetBacklogQuotaMap", "RemoveBacklogQuota")


def policy_calls() -> set[str]:
    """Return all calls that the tests of this file make through the tables."""
    made = {f"Namespaces.{policy.call(verb)}" for policy in OF_NAMESPACES for verb in policy.has}
    for resource in ("Topics", "TopicPolicies", "GlobalTopicPolicies"):
        made |= {f"{resource}.{policy.call(verb)}" for policy in OF_TOPICS for verb in policy.has}
        made |= {f"{resource}.{call}" for call in (*_QUOTAS, "RemoveSchemaValidationEnforced")}
    return made | {f"Namespaces.{call}" for call in _QUOTAS}


@pytest.fixture(scope="module")
def tenant(go: GoAdmin) -> str:
    name = f"go-{uuid.uuid4().hex[:8]}"
    go("Tenants.Create", {"Name": name, "adminRoles": [], "allowedClusters": ["standalone"]})
    return name


@pytest.fixture
def namespace(go: GoAdmin, tenant: str) -> str:
    """Return a namespace per test: a policy of one test could forbid operations of the next."""
    name = f"{tenant}/{uuid.uuid4().hex[:8]}"
    go("Namespaces.CreateNamespace", name)
    return name


@pytest.fixture
def topic(go: GoAdmin, namespace: str) -> str:
    name = f"persistent://{namespace}/t"
    go("Topics.Create", name, 0)
    return name


def refused_for_good(go: GoAdmin, call: str, *args: Any) -> bool:
    """Make a call, and return whether no box will ever support it. A call for a later version marks an expected
    failure.
    """
    try:
        go(call, *args)
    except NotServed as error:
        if error.endpoint.standing.startswith("later:"):
            pytest.xfail(error.endpoint.refusal)
        return True
    return False


def holds(told: Any, wanted: Any) -> bool:
    """Return whether a response contains the expected values; further fields of Go's types must be empty."""
    if isinstance(wanted, dict) and isinstance(told, dict):
        return all(holds(told.get(key), value) for key, value in wanted.items())
    return bool(told == wanted)


def play(go: GoAdmin, resource: str, policy: Policy, where: str, scoped: bool = False) -> None:
    """Set a policy, read it, remove it."""
    flags = (False,) if scoped or policy.applied else ()
    if refused_for_good(go, f"{resource}.{policy.call('Set')}", where, policy.value, *policy.key):
        return
    wanted = policy.value if policy.told is None else policy.told
    if "Get" in policy.has:
        told = go.until(lambda told: holds(told, wanted), f"{resource}.{policy.call('Get')}", where, *flags)
        assert holds(told, wanted), told
    for verb in policy.has[2:]:
        go(f"{resource}.{policy.call(verb)}", where)
        gone = go.until(lambda told: not holds(told, wanted), f"{resource}.{policy.call('Get')}", where, *flags)
        if policy.unset is not NOT_LOOKED_AT and not scoped:
            assert gone == policy.unset
        assert not holds(gone, wanted)


@pytest.mark.parametrize("policy", OF_NAMESPACES, ids=lambda policy: policy.name)
def test_of_a_namespace(go: GoAdmin, namespace: str, policy: Policy) -> None:
    play(go, "Namespaces", policy, namespace)


@pytest.mark.parametrize("policy", OF_TOPICS, ids=lambda policy: policy.name)
def test_of_a_topic(go: GoAdmin, topic: str, policy: Policy) -> None:
    play(go, "Topics", policy, topic)


@pytest.mark.parametrize("resource", ["TopicPolicies", "GlobalTopicPolicies"])
@pytest.mark.parametrize("policy", OF_TOPICS, ids=lambda policy: policy.name)
def test_of_a_topic_by_scope(go: GoAdmin, topic: str, policy: Policy, resource: str) -> None:
    if (resource, policy.name) == ("GlobalTopicPolicies", "ReplicationClusters"):
        pytest.skip("of several clusters")
    play(go, resource, policy, topic, scoped=True)


@pytest.mark.parametrize("resource", ["Topics", "TopicPolicies", "GlobalTopicPolicies"])
def test_what_no_broker_has(go: GoAdmin, topic: str, resource: str) -> None:
    assert go.refusal(f"{resource}.RemoveSchemaValidationEnforced", topic)[0] == 405


def test_what_applies_to_a_topic(go: GoAdmin, topic: str, namespace: str) -> None:
    if refused_for_good(go, "Namespaces.SetSchemaCompatibilityStrategy", namespace, "FORWARD"):
        return
    assert not refused_for_good(go, "Topics.GetSchemaCompatibilityStrategyApplied", topic, True)
    assert go("Topics.GetSchemaCompatibilityStrategyApplied", topic, True) == "FORWARD"


def test_groups_of_namespaces(go: GoAdmin, tenant: str, namespace: str) -> None:
    if refused_for_good(go, "Namespaces.SetNamespaceAntiAffinityGroup", namespace, "g"):
        return
    code, reason = go.refusal("Namespaces.GetAntiAffinityNamespaces", tenant, "standalone", "g")
    assert (code, reason) == (400, "Tenant should not be null")  # the client's name differs from the broker's


@pytest.mark.parametrize("resource", ["Namespaces", "Topics", "TopicPolicies", "GlobalTopicPolicies"])
def test_backlog_quotas(go: GoAdmin, namespace: str, topic: str, resource: str) -> None:
    where = namespace if resource == "Namespaces" else topic
    kind = "destination_storage"
    if refused_for_good(go, f"{resource}.SetBacklogQuota", where, QUOTA, kind):
        return
    get, flag = f"{resource}.GetBacklogQuotaMap", [] if resource == "Namespaces" else [False]
    assert go.until(lambda told: holds(told, {kind: QUOTA}), get, where, *flag) == {kind: QUOTA}
    go(f"{resource}.RemoveBacklogQuota", where, *([] if resource == "Namespaces" else [kind]))
    assert go.until(lambda told: not told, get, where, *flag) in ({}, None)
