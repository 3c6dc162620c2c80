"""Policies that need several clusters, several brokers or an offloader: stored, shown and deleted without either."""

from typing import Any, Final

from tests.differences.broker import Broker
from tests.differences.scenario import Steps, scenario
from tests.differences.themes.management.policies import RATE, requests
from tests.differences.themes.management.rest import SUB, TENANT, N, Request, T, asked

S3: Final = {"managedLedgerOffloadDriver": "aws-s3", "managedLedgerOffloadBucket": "b"}
FILES: Final = {"managedLedgerOffloadDriver": "filesystem", "managedLedgerExtraConfigurations": {"a": "1", "b": 2}}
OFFLOADS: Final[tuple[Any, ...]] = (
    {},
    {"managedLedgerOffloadDriver": "x"},
    {"managedLedgerOffloadDriver": "aws-s3"},
    {"managedLedgerOffloadDriver": "azureblob", "s3ManagedLedgerOffloadBucket": "b"},
    {"managedLedgerOffloadDriver": "FILESYSTEM"},
    S3 | {"managedLedgerOffloadThresholdInBytes": 11, "managedLedgerOffloadedReadPriority": "BOOKKEEPER_FIRST"},
    S3 | {"managedLedgerOffloadMaxThreads": None, "managedLedgerOffloadMaxBlockSizeInBytes": "77"},
    FILES,
)
THRESHOLDS: Final = ("offloadThreshold", "offloadThresholdInSeconds", "offloadDeletionLagMs")
OWN: Final = "standalone"


@scenario
def offload_policies(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T), ("GET", f"{N}/offloadPolicies"), ("POST", f"{N}/offloadPolicies")]
    for value in OFFLOADS:
        made += [("POST", f"{N}/offloadPolicies", value), ("GET", f"{N}/offloadPolicies")]
    made += [("GET", f"{N}/{word}") for word in THRESHOLDS]
    made += [("GET", f"{T}/offloadPolicies"), ("GET", f"{T}/offloadPolicies?applied=true")]
    for value in OFFLOADS:
        made += [("POST", f"{T}/offloadPolicies", value), ("GET", f"{T}/offloadPolicies?applied=true")]
    made += [("DELETE", f"{T}/offloadPolicies"), ("GET", f"{T}/offloadPolicies")]
    made += [("GET", N), ("DELETE", f"{N}/removeOffloadPolicies"), ("GET", f"{N}/offloadPolicies"), ("GET", N)]
    yield from asked(broker, *made, raw=True)


@scenario
def offload_thresholds(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T)]
    for word in THRESHOLDS:
        made += [("GET", f"{N}/{word}"), ("PUT", f"{N}/{word}")]
        for value in (5, -7, "9", 1.5):
            made += [("PUT", f"{N}/{word}", value), ("GET", f"{N}/{word}")]
        made += [("GET", N)]
    made += [("GET", f"{T}/offloadPolicies?applied=true")]
    made += [("DELETE", f"{N}/offloadDeletionLagMs"), ("GET", f"{N}/offloadPolicies")]
    made += [("POST", f"{N}/offloadPolicies", S3), *(("GET", f"{N}/{word}") for word in THRESHOLDS)]
    made += [("PUT", f"{N}/offloadThreshold", 6), ("GET", f"{N}/offloadPolicies")]
    made += [("DELETE", f"{N}/removeOffloadPolicies"), *(("GET", f"{N}/{word}") for word in THRESHOLDS)]
    made += [("DELETE", f"{N}/removeOffloadPolicies"), ("DELETE", f"{N}/offloadDeletionLagMs")]
    yield from asked(broker, *made, raw=True)


@scenario
def offloads_of_topics(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T), ("PUT", f"persistent/{TENANT}/n/p/partitions", 2)]
    for at in (T, f"persistent/{TENANT}/n/p-partition-0", f"persistent/{TENANT}/n/none"):
        made += [("GET", f"{at}/offload"), ("PUT", f"{at}/offload"), ("PUT", f"{at}/offload", 5)]
        made += [("PUT", f"{at}/offload", {"ledgerId": 100_000, "entryId": 0}), ("GET", f"{at}/offload")]
    made += [("GET", f"{N}/scanOffloadedLedgers"), ("DELETE", f"persistent/{TENANT}/n/p/partitions")]
    yield from asked(broker, *made, raw=True)


@scenario
def replicator_rates(broker: Broker) -> Steps:
    word = "replicatorDispatchRate"
    values: tuple[Any, ...] = (RATE, {}, {"dispatchThrottlingRateInMsg": 5}, {"dispatchThrottlingRateInMsg": "x"})
    yield from asked(broker, ("PUT", T), *requests("replicator", word, *values), ("GET", N), raw=True)


@scenario
def entry_filters(broker: Broker) -> Steps:
    values: tuple[Any, ...] = (
        {},
        {"entryFilterNames": " , "},
        {"entryFilterNames": "abc"},
        {"entryFilterNames": "abc,def"},
    )
    yield from asked(broker, ("PUT", T), *requests("filters", "entryFilters", *values), ("GET", N), raw=True)


@scenario
def anti_affinity(broker: Broker) -> Steps:
    at = f"{N}/antiAffinity"
    made: list[Request] = [("GET", at), ("POST", at)]
    for value in ("g", "", 5, {"a": 1}, "x y"):
        made += [("POST", at, value), ("GET", at)]
    yield from asked(broker, *made, ("GET", N), ("DELETE", at), ("GET", at), ("DELETE", at), raw=True)


@scenario
def clusters_of_namespaces(broker: Broker) -> Steps:
    made: list[Request] = []
    for word in ("replication", "allowedClusters"):
        at = f"{N}/{word}"
        made += [("GET", at), ("POST", at, []), ("POST", at, {}), ("POST", at, ["none"]), ("POST", at, [OWN, "none"])]
        made += [("POST", at, [OWN, OWN]), ("GET", at), ("POST", f"namespaces/{TENANT}/none/{word}", [OWN])]
    made += [("POST", f"{N}/replication", [OWN]), ("GET", N)]
    yield from asked(broker, *made, raw=True)


@scenario
def clusters_beside_its_own(broker: Broker) -> Steps:
    far, cluster = f"{TENANT}-far", ("PUT", f"clusters/{TENANT}-far", {"serviceUrl": "http://127.0.0.1:1"})
    replication, allowed, new = f"{N}/replication", f"{N}/allowedClusters", f"namespaces/{TENANT}/m"
    tenant = ("POST", f"tenants/{TENANT}", {"allowedClusters": [OWN, far], "adminRoles": []})
    made: list[Request] = [cluster, ("POST", replication, [OWN, far]), ("POST", allowed, [OWN, far]), tenant]
    for value in ([OWN], [far], [OWN, far]):
        made += [("POST", allowed, value), ("POST", replication, value), ("GET", replication), ("GET", allowed)]
    made += [("GET", N), ("POST", replication, [far]), ("POST", allowed, [OWN]), ("GET", N), ("DELETE", N)]
    for body in (
        {"replication_clusters": [OWN, far]},
        {"allowed_clusters": [far]},
        {"allowed_clusters": [OWN, far], "replication_clusters": [far]},
        {"allowed_clusters": [OWN], "replication_clusters": [far]},
    ):
        made += [("PUT", new, body), ("GET", new), ("DELETE", new)]
        made += [("POST", f"{new}/{word}", [OWN]) for word in ("replication", "allowedClusters")] + [("DELETE", new)]
    made += [("POST", f"{N}/{word}", [OWN]) for word in ("replication", "allowedClusters")]
    yield from asked(broker, *made, ("DELETE", f"clusters/{far}"))


@scenario
def clusters_of_topics(broker: Broker) -> Steps:
    at = f"{T}/replication"
    made: list[Request] = [("PUT", T), ("GET", at), ("GET", f"{at}?applied=true")]
    for value in ([], ["none"], [OWN, "none"], [OWN], [OWN, OWN]):
        made += [("POST", at, value), ("GET", at), ("POST", f"{at}?isGlobal=true", value)]
    made += [("DELETE", at), ("GET", at), ("DELETE", f"{at}?isGlobal=true"), ("GET", f"{T}-none/replication")]
    yield from asked(broker, *made, raw=True)


@scenario
def shadow_topics(broker: Broker) -> Steps:
    at, shadow = f"{T}/shadowTopics", f"{TENANT}/n/shadow"
    made: list[Request] = [("PUT", T), ("PUT", f"persistent/{shadow}"), ("GET", at)]
    for value in ([], ["none"], [f"persistent://{shadow}"], [shadow], [f"non-persistent://{shadow}"], ["a b://"]):
        made += [("PUT", at, value), ("GET", at)]
    made += [("PUT", f"{T}-none/shadowTopics", [shadow]), ("DELETE", at), ("GET", at)]
    yield from asked(broker, *made, raw=True)


@scenario
def replicated_subscriptions(broker: Broker) -> Steps:
    parted = f"persistent/{TENANT}/n/p"
    made: list[Request] = [("PUT", T), ("PUT", f"{parted}/partitions", 2), ("PUT", f"{SUB}/s")]
    made += [("PUT", f"{parted}/subscription/s"), ("PUT", f"{SUB}/r?replicated=true")]
    for at in (f"{SUB}/s", f"{SUB}/r", f"{SUB}/none", f"{parted}/subscription/s", f"{parted}/subscription/none"):
        word = f"{at}/replicatedSubscriptionStatus"
        made += [("GET", word), ("POST", word), ("POST", word, True), ("GET", word), ("POST", word, "x")]
    made += [("GET", f"{T}/stats"), ("POST", f"{SUB}/s/replicatedSubscriptionStatus", False), ("GET", f"{T}/stats")]
    made += [("GET", f"{T}-none/subscription/s/replicatedSubscriptionStatus")]
    yield from asked(broker, *made)


@scenario
def namespaces_created_with_them(broker: Broker) -> Steps:
    at = f"namespaces/{TENANT}/m"
    made: list[Request] = []
    for body in (
        {"offload_threshold": 5},
        {"offload_threshold_in_seconds": 7, "offload_deletion_lag_ms": 9},
        {"offload_policies": {"managedLedgerOffloadDriver": "x", "managedLedgerOffloadThresholdInBytes": 3}},
        {"offload_threshold": 5, "offload_policies": {}},
        {"replicatorDispatchRate": {OWN: {"dispatchThrottlingRateInMsg": 5}}},
        {"clusterDispatchRate": {OWN: {"dispatchThrottlingRateInMsg": 5}}, "latency_stats_sample_rate": {OWN: 5}},
        {"entryFilters": {"entryFilterNames": "abc"}},
        {"replication_clusters": [OWN], "allowed_clusters": [OWN]},
        {"allowed_clusters": [OWN]},
        {"replication_clusters": ["none"]},
        {"replication_clusters": ["none"], "allowed_clusters": [OWN]},
    ):
        made += [("PUT", at, body), ("GET", at), ("GET", f"{at}/offloadPolicies"), ("GET", f"{at}/offloadThreshold")]
        made += [("PUT", f"{at}/offloadThresholdInSeconds", 8), ("GET", at)]
        made += [("DELETE", f"{at}/removeOffloadPolicies"), ("GET", at), ("DELETE", at)]
    yield from asked(broker, *made, raw=True)
