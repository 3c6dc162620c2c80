"""Request bodies by the Java type in the endpoint table: one that is valid, and some that are not."""

import json
from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.server.http.admin_endpoints import Endpoint

LAST: Final = "LAST"
"""Placeholder of the position of the topic's last message."""
OWN_TOPIC: Final = "persistent://{tenant}/{namespace}/{topic}"
_NOWHERE: Final = {"serviceUrl": "http://localhost:1", "brokerServiceUrl": "pulsar://localhost:2"}
_RECORD: Final = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}
_S3: Final = {
    "managedLedgerOffloadDriver": "aws-s3",
    "managedLedgerOffloadBucket": "b",
    "managedLedgerOffloadRegion": "eu-1",
    "managedLedgerOffloadServiceEndpoint": "http://localhost:1",
}

VALID: Final[dict[str, Any]] = {
    "AutoSubscriptionCreationOverride": {"allowAutoSubscriptionCreation": True},
    "AutoTopicCreationOverride": {
        "allowAutoTopicCreation": True,
        "topicType": "partitioned",
        "defaultNumPartitions": 3,
    },
    "BacklogQuota": {"limitSize": 1000000, "limitTime": 60, "policy": "producer_exception"},
    "BookieAffinityGroupData": {"bookkeeperAffinityGroupPrimary": "g1", "bookkeeperAffinityGroupSecondary": "g2"},
    "BookieInfo": {"rack": "/r1", "hostname": "h"},
    "Boolean": True,
    "ClusterData": _NOWHERE,
    "ClusterUrl": _NOWHERE,
    "DelayedDeliveryPolicies": {"active": True, "tickTime": 2000, "maxDeliveryDelayInMillis": 10000},
    "DispatchRate": {
        "dispatchThrottlingRateInMsg": 10,
        "dispatchThrottlingRateInByte": 1000,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    },
    "EntryFilters": {"entryFilterNames": "f"},
    "FailureDomain": {"brokers": ["{broker}"]},
    "InactiveTopicPolicies": {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 3600,
        "deleteWhileInactive": True,
    },
    "Integer": 5,
    "LinkedHashSet<String>": ["standalone"],
    "List<GrantTopicPermissionOptions>": [{"topic": OWN_TOPIC, "role": "r", "actions": ["produce"]}],
    "List<Long>": [1],
    "List<RevokeTopicPermissionOptions>": [{"topic": OWN_TOPIC, "role": "r"}],
    "List<String>": ["standalone"],
    "Map<String, String>": {"a": "b"},
    "MessageId": LAST,
    "NamespaceIsolationData": {
        "namespaces": ["{tenant}/none.*"],
        "primary": ["b1.*"],
        "secondary": ["b2.*"],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
        },
    },
    "OffloadPolicies": _S3,
    "PackageMetadata": {"description": "d", "contact": "c"},
    "PartitionedTopicMetadata": 3,
    "PersistencePolicies": {
        "bookkeeperEnsemble": 1,
        "bookkeeperWriteQuorum": 1,
        "bookkeeperAckQuorum": 1,
        "managedLedgerMaxMarkDeleteRate": 1.0,
    },
    "Policies": {},
    "PostSchemaPayload": {"type": "AVRO", "schema": json.dumps(_RECORD), "properties": {"a": "b"}},
    "PublishRate": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": 1000},
    "ResetCursorData": LAST,
    "ResourceGroup": {
        "publishRateInMsgs": 10,
        "publishRateInBytes": 100,
        "dispatchRateInMsgs": 10,
        "dispatchRateInBytes": 100,
    },
    "ResourceQuota": {
        "msgRateIn": 40.0,
        "msgRateOut": 120.0,
        "bandwidthIn": 100000.0,
        "bandwidthOut": 300000.0,
        "memory": 80.0,
        "dynamic": True,
    },
    "RetentionPolicies": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5},
    "SchemaAutoUpdateCompatibilityStrategy": "Backward",
    "SchemaCompatibilityStrategy": "BACKWARD",
    "Set<AuthAction>": ["produce", "consume"],
    "Set<String>": ["r"],
    "Set<SubscriptionType>": ["Exclusive", "Shared"],
    "String": "g",
    "SubscribeRate": {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30},
    "SubscriptionAuthMode": "Prefix",
    "TenantInfo": {"adminRoles": ["a"], "allowedClusters": ["standalone"]},
    "boolean": True,
    "int": 5,
    "long": 1000,
}
OF_OPERATIONS: Final[dict[str, Any]] = {
    "createSubscription": "latest",
    "scaleTransactionCoordinators": 0,
    "setDispatcherPauseOnAckStatePersistent": None,
    "testCompatibility": VALID["PostSchemaPayload"],
}
"""Operations whose body is not the one of its type."""


def valid(endpoint: Endpoint) -> str | None:
    """Return the JSON text of a valid body; None if the endpoint takes none."""
    value = OF_OPERATIONS.get(endpoint.operation, VALID.get(endpoint.body))
    return None if value is None else json.dumps(value)


def malformed(endpoint: Endpoint) -> Iterator[tuple[str, str | None]]:
    """Return malformed bodies with the name of each; nothing for an endpoint without a body."""
    right = VALID.get(endpoint.body)
    if right is None:
        return
    yield "no body", None
    yield "broken JSON", '{"a'
    yield "another type", json.dumps(_another(right))
    if isinstance(right, dict):
        yield "an unknown field", json.dumps(right | {"nonsense": 1})


def _another(value: Any) -> Any:
    """Return a value of a type that does not fit."""
    if isinstance(value, dict) or value == LAST:
        return []
    return {} if isinstance(value, list) else "nothing"
