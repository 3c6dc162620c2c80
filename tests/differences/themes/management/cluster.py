"""Cluster-wide resources of the Admin API over HTTP: clusters, failure domains, isolation policies, bookies, bundles.

Every scenario deletes what it stored, since Pulsar keeps listing a deleted cluster that has anything left below it.
Migrations of clusters are only read: Pulsar can't delete them.
"""

from typing import Any, Final

from tests.differences.broker import Broker
from tests.differences.scenario import Steps, alone_scenario, scenario
from tests.differences.themes.management.rest import TENANT, N, asked

EAST: Final = f"clusters/{TENANT}-east"
WEST: Final = f"clusters/{TENANT}-west"
POLICY: Final[dict[str, Any]] = {
    "namespaces": [f"{TENANT}/.*"],
    "primary": ["b1.*"],
    "secondary": ["b2.*", "b3"],
    "auto_failover_policy": {
        "policy_type": "min_available",
        "parameters": {"min_limit": "1", "usage_threshold": "80"},
    },
    "unload_scope": "none",
}
"""Without an unload, since Pulsar unloads the namespaces that match, and waits for it."""


@alone_scenario
def clusters(broker: Broker) -> Steps:
    urls = {"serviceUrl": "http://east:8080", "brokerServiceUrl": "pulsar://east:6650"}
    info = {"adminRoles": [], "allowedClusters": ["standalone", f"{TENANT}-east"]}
    yield from asked(
        broker,
        ("GET", EAST),
        ("POST", EAST, urls),
        ("DELETE", EAST),
        ("PUT", EAST),
        ("PUT", EAST, urls | {"unknown": 1}),
        ("PUT", EAST, urls),
        ("GET", EAST),
        ("POST", EAST, {"serviceUrlTls": "https://east", "listenerName": "in", "brokerClientTlsEnabled": True}),
        ("GET", EAST),
        *(
            ("POST", EAST, {name: url})
            for name in ("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls", "proxyServiceUrl")
            for url in ("east:8080", "http s://x", "ftp://x", "pulsar+ssl://x:1", "")
        ),
        ("PUT", "clusters/bad%20name", urls),
        ("PUT", "clusters/standalone", urls),
        ("POST", f"tenants/{TENANT}", info),
        ("GET", f"tenants/{TENANT}"),
        ("DELETE", EAST),
        ("GET", f"tenants/{TENANT}"),
        ("POST", f"tenants/{TENANT}", info),
        ("DELETE", EAST),
        ("GET", EAST),
    )


@alone_scenario
def peers(broker: Broker) -> Steps:
    yield from asked(
        broker,
        ("GET", f"{EAST}/peers"),
        ("POST", f"{EAST}/peers", []),
        ("PUT", EAST, {}),
        ("PUT", WEST, {}),
        ("GET", f"{EAST}/peers"),
        ("POST", f"{EAST}/peers", [f"{TENANT}-east"]),
        ("POST", f"{EAST}/peers", [f"{TENANT}-none"]),
        ("POST", f"{EAST}/peers", [f"{TENANT}-west", "standalone"]),
        ("GET", f"{EAST}/peers"),
        ("GET", EAST),
        ("POST", f"{EAST}/peers", []),
        ("GET", f"{EAST}/peers"),
        ("POST", f"{EAST}/peers"),
        ("GET", f"{EAST}/peers"),
        ("GET", f"{EAST}/migrate"),
        ("DELETE", EAST),
        ("DELETE", WEST),
    )


@alone_scenario
def failure_domains(broker: Broker) -> Steps:
    domains = f"{EAST}/failureDomains"
    yield from asked(
        broker,
        ("GET", domains),
        ("GET", f"{domains}/a"),
        ("POST", f"{domains}/a", {"brokers": ["b1"]}),
        ("DELETE", f"{domains}/a"),
        ("PUT", EAST, {}),
        ("GET", f"{domains}/a"),
        ("POST", f"{domains}/a", {"brokers": ["b1", "b2"]}),
        ("POST", f"{domains}/b", {"brokers": ["b2", "b3"]}),
        ("POST", f"{domains}/b", {"brokers": ["b3"], "unknown": 1}),
        ("POST", f"{domains}/a", {"brokers": ["b1", "b4"]}),
        ("POST", f"{domains}/c", {}),
        ("GET", domains),
        ("GET", f"{domains}/b"),
        ("DELETE", f"{domains}/none"),
        *(("DELETE", f"{domains}/{name}") for name in "abc"),
        ("GET", domains),
        ("DELETE", EAST),
    )


@alone_scenario
def isolation_policies(broker: Broker) -> Steps:
    policies = f"{EAST}/namespaceIsolationPolicies"
    failover: dict[str, Any] = POLICY["auto_failover_policy"]
    invalid: tuple[dict[str, Any], ...] = (
        {"namespaces": []},
        {"primary": []},
        {"primary": None},
        {"primary": ["("]},
        {"secondary": None},
        {"auto_failover_policy": None},
        {"auto_failover_policy": failover | {"policy_type": "other"}},
        {"auto_failover_policy": failover | {"parameters": {"min_limit": "x", "usage_threshold": "1"}}},
        {"auto_failover_policy": failover | {"parameters": {"min_limit": "1"}}},
    )
    yield from asked(
        broker,
        *(("GET", f"{policies}{rest}") for rest in ("", "/p", "/brokers", "/brokers/b1")),
        ("POST", f"{policies}/p", POLICY),
        ("DELETE", f"{policies}/p"),
        ("PUT", EAST, {}),
        *(("GET", f"{policies}{rest}") for rest in ("", "/p", "/brokers", "/brokers/b1")),
        ("DELETE", f"{policies}/p"),
        ("GET", policies),
        ("POST", f"{policies}/p", POLICY),
        ("POST", f"{policies}/q", POLICY | {"primary": ["b2"]}),
        *(("POST", f"{policies}/r", POLICY | change) for change in invalid),
        ("GET", policies),
        ("GET", f"{policies}/q"),
        ("GET", f"{policies}/none"),
        ("GET", f"{policies}/brokers"),
        *(("GET", f"{policies}/brokers/{name}") for name in ("b1", "b2", "b3", "b4")),
        ("DELETE", EAST),
        *(("DELETE", f"{policies}/{name}") for name in "pq"),
        ("GET", policies),
        ("DELETE", EAST),
    )


@scenario
def bookies(broker: Broker) -> Steps:
    one, affinity = "bookies/racks-info/differences-1:3181", f"{N}/persistence/bookieAffinity"
    group = {"bookkeeperAffinityGroupPrimary": "a", "bookkeeperAffinityGroupSecondary": "b"}
    yield from asked(
        broker,
        ("GET", one),
        ("DELETE", one),
        ("POST", one, {"rack": "/r"}),
        ("POST", f"{one}?group=differences", {"rack": "/r", "hostname": "h"}),
        ("GET", one),
        ("POST", f"{one}?group=differences-2", {"rack": "r/s"}),
        ("POST", f"{one}?group=differences-2", {"rack": "/r/"}),
        ("GET", one),
        ("DELETE", one),
        ("GET", one),
        ("GET", affinity),
        ("POST", affinity, group),
        ("GET", affinity),
        ("POST", affinity, {"bookkeeperAffinityGroupPrimary": "a"}),
        ("GET", affinity),
        ("GET", N),
        ("DELETE", affinity),
        ("GET", affinity),
        *((method, f"namespaces/{TENANT}/none/persistence/bookieAffinity") for method in ("GET", "DELETE")),
    )


@scenario
def resource_quotas(broker: Broker) -> Steps:
    bundle = f"resource-quotas/{TENANT}/n/0x00000000_0x40000000"
    yield from asked(
        broker,
        ("GET", "resource-quotas"),
        ("GET", bundle),
        ("POST", bundle, {"msgRateIn": 5, "dynamic": False}),
        ("GET", bundle),
        ("POST", bundle, {"msgRateIn": -1, "unknown": 1}),
        ("GET", bundle),
        ("DELETE", bundle),
        ("DELETE", bundle),
        ("GET", bundle),
        *((method, f"resource-quotas/{TENANT}/n/0x0_0x1") for method in ("GET", "POST", "DELETE")),
        raw=True,
    )


@scenario
def bundles(broker: Broker) -> Steps:
    """Splits that are refused: one that is not makes Pulsar own the bundle, and open system topics of the namespace."""
    third = f"{N}/0x80000000_0xc0000000"
    yield from asked(
        broker,
        ("PUT", f"{third}/split?splitAlgorithmName=none"),
        ("PUT", f"{third}/split?splitAlgorithmName=specified_positions_divide"),
        ("PUT", f"{N}/none/split"),
        ("PUT", f"{N}/0x80000000_0xd0000000/split"),
        ("PUT", f"{N}/0x80000001_0xc0000000/split"),
        ("PUT", f"{N}/HOT/split"),
        ("PUT", f"namespaces/{TENANT}/none/0x00000000_0x40000000/split"),
        ("GET", f"{N}/bundles"),
        ("GET", f"{N}/none/topicHashPositions"),
        ("GET", f"{N}/0x80000000_0x90000000/topicHashPositions"),
    )


@scenario
def broker_internals(broker: Broker) -> Steps:
    yield from asked(
        broker,
        ("GET", f"broker-stats/broker-resource-availability/{TENANT}/n"),
        ("GET", "broker-stats/allocator-stats/none"),
        ("GET", "metadata/migration/status"),
        ("POST", "metadata/migration/start"),
        ("POST", "metadata/migration/start?target=zk:none"),
        ("GET", "namespaces/standalone/antiAffinity/g"),
        ("GET", f"namespaces/standalone/antiAffinity/%20?tenant={TENANT}"),
        ("GET", f"namespaces/{TENANT}-none/antiAffinity/g?tenant={TENANT}"),
        ("GET", f"namespaces/standalone/antiAffinity/g?tenant={TENANT}"),
        ("GET", f"namespaces/standalone/antiAffinity/g?tenant={TENANT}-none"),
        ("POST", f"{N}/migration", False),
    )
