"""The Admin API with the Go client's admin package: its types accept the responses.

This file and test_go_admin_policies.py make every call that the package has, and check its result. A box may reject a
call with 501 only if its endpoint table says so.
"""

import base64
import json
import re
import time
import uuid
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.e2e.admin.test_go_admin_policies import policy_calls
from tests.e2e.clients import receive, until
from tests.e2e.conftest import Running
from tests.e2e.go_admin import GoAdmin, NotServed, Refused, calls

EARLIEST = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "partitionIndex": -1}
NOW_MS = 60_000
"""Largest difference between two clocks."""

FILES = ("test_go_admin", "test_go_admin_cluster", "test_go_admin_policies")
"""Modules that make the calls."""

# Endpoints that a box never supports: the response is always 501, and nothing else can be checked.
NEVER = ("Functions", "FunctionsWorker", "Sources", "Sinks", "Packages")


@pytest.fixture
def tenant(go: GoAdmin) -> str:
    name = f"go-{uuid.uuid4().hex[:8]}"
    go("Tenants.Create", {"Name": name, "adminRoles": ["boss"], "allowedClusters": ["standalone"]})
    return name


@pytest.fixture
def namespace(go: GoAdmin, tenant: str) -> str:
    go("Namespaces.CreateNamespace", f"{tenant}/shop")
    return f"{tenant}/shop"


@pytest.fixture
def orders(go: GoAdmin, namespace: str) -> str:
    """Return an unused topic."""
    name = f"persistent://{namespace}/orders"
    go("Topics.Create", name, 0)
    return name


def publish(client: pulsar.Client, topic: str, *payloads: bytes) -> list[pulsar.MessageId]:
    """Publish messages, each as an entry, and return their IDs."""
    producer = client.create_producer(topic, batching_enabled=False)
    ids = [producer.send(payload, properties={"n": str(number)}) for number, payload in enumerate(payloads)]
    producer.close()
    return ids


def publish_batch(client: pulsar.Client, topic: str, *payloads: bytes) -> list[pulsar.MessageId]:
    """Publish one batch, and return the IDs of its messages."""
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=10_000, batching_max_messages=len(payloads)
    )
    ids: list[pulsar.MessageId] = []
    for number, payload in enumerate(payloads):
        producer.send_async(payload, lambda _, given: ids.append(given), properties={"n": str(number)})
    producer.flush()
    producer.close()
    until(lambda: len(ids) == len(payloads))
    return ids


def served(call: Any) -> Any:
    """Return the result of a call. The test is expected to fail if the endpoint table defers the call to a later
    version.
    """
    try:
        return call()
    except NotServed as error:
        if error.endpoint.standing.startswith("later:"):
            pytest.xfail(error.endpoint.refusal)
        raise


def test_clusters(go: GoAdmin) -> None:
    assert go("Clusters.List") == ["standalone"]
    cluster = go("Clusters.Get", "standalone")
    assert cluster["serviceUrl"].startswith("http://")
    assert cluster["brokerServiceUrl"].startswith("pulsar://")
    assert go.refusal("Clusters.Get", "elsewhere")[0] == 404


def is_refused(go: GoAdmin, call: str, *args: Any) -> bool:
    """Return whether a call is not supported, which the endpoint table agrees with; or answered as without functions.

    A box answers reads truthfully: lists are empty, and no function, source or sink exists.
    """
    try:
        go(call, *args)
    except NotServed as refused:
        return refused.endpoint.standing.startswith("never:")
    except Refused as error:
        if error.code not in (400, 404):
            raise
    return False


def test_tenants(go: GoAdmin, tenant: str) -> None:
    again = {"Name": tenant, "adminRoles": ["boss"], "allowedClusters": ["standalone"]}
    assert go.refusal("Tenants.Create", again) == (409, "Tenant already exist")
    assert go("Tenants.Get", tenant) == {"adminRoles": ["boss"], "allowedClusters": ["standalone"]}
    assert tenant in go("Tenants.List")
    go("Tenants.Update", again | {"adminRoles": ["clerk"]})
    assert go("Tenants.Get", tenant)["adminRoles"] == ["clerk"]
    go("Tenants.Delete", tenant)
    assert go.refusal("Tenants.Get", tenant) == (404, "Tenant does not exist")
    assert tenant not in go("Tenants.List")


def test_namespaces(go: GoAdmin, box: Running, tenant: str) -> None:
    halves = {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}
    wanted = {"replication_clusters": ["standalone"], "bundles": halves}
    plain, given, eight, half = (f"{tenant}/{word}" for word in ("plain", "given", "eight", "half"))
    go("Namespaces.CreateNamespace", plain)
    go("Namespaces.CreateNsWithPolices", given, wanted)
    assert go("Namespaces.GetPolicies", plain)["bundles"]["numBundles"] == 4
    policies = go("Namespaces.GetPolicies", given)
    assert policies["bundles"] == halves
    assert policies["replication_clusters"] == ["standalone"]
    assert policies["deleted"] is False
    assert sorted(go("Namespaces.GetNamespaces", tenant)) == [given, plain]
    assert go.refusal("Namespaces.CreateNamespace", plain)[0] == 409
    assert go.refusal("Namespaces.GetPolicies", f"{tenant}/none")[0] == 404
    for namespace in (plain, given):
        go("Namespaces.DeleteNamespace", namespace)
    assert go("Namespaces.GetNamespaces", tenant) == []
    if not box.is_ours:  # the client sends null clusters, for which Pulsar returns 500
        return
    go("Namespaces.CreateNsWithNumBundles", eight, 8)
    go("Namespaces.CreateNsWithBundlesData", half, halves)
    assert go("Namespaces.GetPolicies", eight)["bundles"]["numBundles"] == 8
    assert go("Namespaces.GetPolicies", half)["bundles"] == halves
    assert go("Namespaces.GetNamespaceReplicationClusters", half) == ["standalone"]


def test_what_a_namespace_says_of_itself(go: GoAdmin, namespace: str) -> None:
    go("Namespaces.UpdateProperties", namespace, {"owner": "me", "colour": "ä"})
    assert go("Namespaces.GetProperties", namespace) == {"owner": "me", "colour": "ä"}
    go("Namespaces.RemoveProperties", namespace)
    assert go("Namespaces.GetProperties", namespace) == {}
    go("Namespaces.SetNamespaceReplicationClusters", namespace, ["standalone"])
    assert go("Namespaces.GetNamespaceReplicationClusters", namespace) == ["standalone"]
    assert go("Namespaces.GetTopics", namespace) == []
    go("Topics.Create", f"persistent://{namespace}/t", 0)
    assert go("Namespaces.GetTopics", namespace) == [f"persistent://{namespace}/t"]
    assert go.refusal("Namespaces.DeleteNamespace", namespace)[0] == 409


def test_permissions(go: GoAdmin, namespace: str, orders: str) -> None:
    go("Namespaces.GrantNamespacePermission", namespace, "clerk", ["produce", "consume"])
    assert sorted(go("Namespaces.GetNamespacePermissions", namespace)["clerk"]) == ["consume", "produce"]
    go("Topics.GrantPermission", orders, "guest", ["consume"])
    found = go("Topics.GetPermissions", orders)
    assert {role: sorted(actions) for role, actions in found.items()} == {
        "clerk": ["consume", "produce"],
        "guest": ["consume"],
    }
    go("Topics.RevokePermission", orders, "guest")
    go("Namespaces.RevokeNamespacePermission", namespace, "clerk")
    assert go("Topics.GetPermissions", orders) == go("Namespaces.GetNamespacePermissions", namespace) == {}
    go("Namespaces.GrantSubPermission", namespace, "billing", ["clerk", "guest"])
    assert {name: sorted(roles) for name, roles in go("Namespaces.GetSubPermissions", namespace).items()} == {
        "billing": ["clerk", "guest"]
    }
    go("Namespaces.RevokeSubPermission", namespace, "billing", "clerk")
    assert go("Namespaces.GetSubPermissions", namespace) == {"billing": ["guest"]}


def test_topics_and_their_properties(go: GoAdmin, namespace: str, orders: str) -> None:
    assert go.refusal("Topics.Create", orders, 0)[0] == 409
    more = f"persistent://{namespace}/a b%c"
    go("Topics.CreateWithProperties", more, 0, {"k": "v"})
    go("Topics.UpdateProperties", more, {"l": "w"})
    assert go("Topics.GetProperties", more) == {"k": "v", "l": "w"}
    go("Topics.RemoveProperty", more, "k")
    assert go("Topics.GetProperties", more) == {"l": "w"}
    partitioned, plain = go("Topics.List", namespace)
    assert (partitioned or [], sorted(plain)) == ([], sorted([orders, more]))
    go("Topics.Delete", more, False, True)
    assert go.refusal("Topics.GetStats", more)[0] == 404
    assert go("Topics.List", namespace)[1] == [orders]


def test_partitions(go: GoAdmin, client: pulsar.Client, namespace: str) -> None:
    topic = f"persistent://{namespace}/divided"
    go("Topics.Create", topic, 2)
    assert go("Topics.GetMetadata", topic) == {"partitions": 2}
    go("Topics.Update", topic, 3)
    assert go("Topics.GetMetadata", topic) == {"partitions": 3}
    go("Subscriptions.Create", topic, "billing", EARLIEST)
    publish(client, topic, *(b"%d" % number for number in range(6)))
    partitioned, plain = go("Topics.List", namespace)
    assert partitioned == [topic]
    assert sorted(plain) == [f"{topic}-partition-{number}" for number in range(3)]
    stats = go("Topics.GetPartitionedStats", topic, True)
    assert stats["metadata"] == {"partitions": 3}
    assert stats["subscriptions"]["billing"]["msgBacklog"] == 6
    assert sum(part["msgInCounter"] for part in stats["partitions"].values()) == 6
    short = go("Topics.GetPartitionedStatsWithOption", topic, False, {"get_precise_backlog": True})
    assert short["partitions"] in ({}, None)
    assert short["storageSize"] == stats["storageSize"] > 0
    go("Topics.Delete", topic, True, False)
    assert go.refusal("Topics.GetPartitionedStats", topic, True)[0] == 404


def test_statistics(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    consumer = client.subscribe(orders, "billing", consumer_name="till", properties={"shelf": "1"})
    producer = client.create_producer(orders, producer_name="web", properties={"page": "cart"})
    for _ in range(3):
        producer.send(b"twelve bytes")
    for _ in range(3):
        consumer.acknowledge(receive(consumer))
    stats = go("Topics.GetStatsWithOption", orders, {"get_precise_backlog": True, "subscription_backlog_size": True})
    assert (stats["msgInCounter"], stats["storageSize"] > 36) == (3, True)
    assert stats["deduplicationStatus"] == "Disabled"
    [publisher] = stats["publishers"]
    assert (publisher["producerName"], publisher["accessMode"]) == ("web", "Shared")
    assert publisher["metadata"] == {"page": "cart"}
    assert publisher["clientVersion"].startswith("Pulsar-CPP")
    billing = stats["subscriptions"]["billing"]
    assert (billing["type"], billing["isDurable"], billing["msgOutCounter"]) == ("Exclusive", True, 3)
    assert billing["activeConsumerName"] == "till"
    [reader] = billing["consumers"]
    assert (reader["consumerName"], reader["metadata"]) == ("till", {"shelf": "1"})
    assert re.match(r"/?127\.0\.0\.1:\d+", reader["address"])
    assert re.match(r"\d{4}-\d\d-\d\dT", reader["connectedSince"])
    now = time.time() * 1000
    for name in ("topicCreationTimeStamp", "lastPublishTimestamp"):
        assert abs(stats[name] - now) < NOW_MS, (name, stats[name])
    assert abs(billing["lastConsumedTimestamp"] - now) < NOW_MS
    assert go("Topics.GetStats", orders)["msgInCounter"] == 3


def test_what_the_store_holds(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    go("Subscriptions.Create", orders, "billing", EARLIEST)
    ids = publish(client, orders, b"one", b"two", b"three")
    stats = go("Topics.GetInternalStats", orders)
    last = f"{ids[-1].ledger_id()}:{ids[-1].entry_id()}"
    assert stats["lastConfirmedEntry"] == last
    assert (stats["numberOfEntries"], stats["currentLedgerEntries"]) == (3, 3)
    assert stats["state"] == "LedgerOpened"
    assert stats["totalSize"] == stats["currentLedgerSize"] > len(b"onetwothree")
    assert [ledger["ledgerId"] for ledger in stats["ledgers"]] == [ids[0].ledger_id()]
    cursor = stats["cursors"]["billing"]
    assert cursor["markDeletePosition"] == f"{ids[0].ledger_id()}:-1"
    assert (cursor["state"], cursor["individuallyDeletedMessages"]) == ("Open", "[]")
    info = go("Topics.GetInternalInfo", orders)
    assert [ledger["ledgerId"] for ledger in info["ledgers"]] == [ids[0].ledger_id()]
    assert info["cursors"]["billing"]["markDelete"] == {"ledgerId": ids[0].ledger_id(), "entryId": -1}
    assert re.match(r"\d{4}-\d\d-\d\dT", info["creationDate"])


def test_where_a_topic_is(go: GoAdmin, box: Running, orders: str) -> None:
    found = go("Topics.Lookup", orders)
    assert found["brokerUrl"].rpartition(":")[2] == box.url.rpartition(":")[2]
    assert found["httpUrl"].rpartition(":")[2] == box.web_url.rpartition(":")[2]
    assert re.fullmatch(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}", go("Topics.GetBundleRange", orders))


def test_message_ids(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    publish(client, orders, b"one")
    time.sleep(0.05)  # so that the second has another millisecond
    between = int(time.time() * 1000)
    ids = publish(client, orders, b"two", b"three")
    last = {"ledgerId": ids[1].ledger_id(), "entryId": ids[1].entry_id(), "partitionIndex": -1}
    assert go("Topics.GetLastMessageID", orders) == last
    assert go("Topics.GetMessageID", orders, between) == last | {"entryId": ids[0].entry_id()}
    assert go("Topics.GetMessageID", orders, 0) == EARLIEST


def test_unload_and_forced_deletion(go: GoAdmin, client: pulsar.Client, namespace: str, orders: str) -> None:
    consumer = client.subscribe(orders, "billing")
    publish(client, orders, b"one")
    go("Topics.Unload", orders)
    go("Namespaces.Unload", namespace)
    bundle = go("Topics.GetBundleRange", orders)
    go("Namespaces.UnloadNamespaceBundle", namespace, bundle)
    assert receive(consumer).data() == b"one"
    until(lambda: go("Topics.GetStats", orders)["subscriptions"]["billing"]["consumers"])
    assert go.refusal("Topics.Delete", orders, False, True)[0] == 412
    consumer.close()
    go("Topics.Delete", orders, True, True)
    assert [names or [] for names in go("Topics.List", namespace)] == [[], []]


def test_ended_topics(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    ids = publish(client, orders, b"last")
    ended = served(lambda: go("Topics.Terminate", orders))
    assert (ended["ledgerId"], ended["entryId"]) == (ids[0].ledger_id(), ids[0].entry_id())
    with pytest.raises(pulsar.PulsarException):
        client.create_producer(orders)


def test_subscriptions(go: GoAdmin, orders: str) -> None:
    odd = "a/b c%d"  # no plus: the client does not escape it, and brokers decode it as a space
    for name, place in (("first", EARLIEST), ("last", LATEST), (odd, EARLIEST)):
        go("Subscriptions.Create", orders, name, place)
    assert sorted(go("Subscriptions.List", orders)) == sorted(["first", "last", odd])
    assert go.refusal("Subscriptions.Create", orders, "first", EARLIEST)[0] == 409
    go("Subscriptions.Delete", orders, odd)
    go("Subscriptions.Delete", orders, "last")
    assert go("Subscriptions.List", orders) == ["first"]
    assert go.refusal("Subscriptions.Delete", orders, "last")[0] == 404


def test_subscriptions_in_use(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    client.subscribe(orders, "used")
    assert go.refusal("Subscriptions.Delete", orders, "used")[0] == 412
    go("Subscriptions.ForceDelete", orders, "used")
    assert go.refusal("Subscriptions.SkipMessages", orders, "none", 1)[0] == 404


def backlog(go: GoAdmin, topic: str, subscription: str = "billing") -> int:
    stats = go("Topics.GetStatsWithOption", topic, {"get_precise_backlog": True})
    found = stats["subscriptions"][subscription]["msgBacklog"]
    assert isinstance(found, int)
    return found


def test_cursors(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    for name in ("billing", "other"):
        go("Subscriptions.Create", orders, name, EARLIEST)
    ids = publish(client, orders, *(b"%d" % number for number in range(5)))
    go("Subscriptions.SkipMessages", orders, "billing", 2)
    assert backlog(go, orders) == 3
    place = {"ledgerId": ids[3].ledger_id(), "entryId": ids[3].entry_id(), "partitionIndex": -1}
    go("Subscriptions.ResetCursorToMessageID", orders, "billing", place)
    assert backlog(go, orders) == 2
    go("Subscriptions.ResetCursorToTimestamp", orders, "billing", int(time.time() * 1000) - 3_600_000)
    assert backlog(go, orders) == 5
    go("Subscriptions.ClearBacklog", orders, "billing")
    assert (backlog(go, orders), backlog(go, orders, "other")) == (0, 5)
    assert go.refusal("Subscriptions.ExpireMessages", orders, "billing", 1)[0] == 409


def test_expiry(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    for name in ("billing", "other"):
        go("Subscriptions.Create", orders, name, EARLIEST)
    publish(client, orders, *(b"%d" % number for number in range(5)))
    go("Subscriptions.ExpireMessages", orders, "billing", 3600)
    assert backlog(go, orders) == 5
    time.sleep(1.1)  # a second is the smallest age
    go("Subscriptions.ExpireMessages", orders, "billing", 1)
    until(lambda: backlog(go, orders) == 0)
    assert backlog(go, orders, "other") == 5
    publish(client, orders, b"more")  # otherwise the first has nothing to expire, which is rejected
    time.sleep(1.1)
    go("Subscriptions.ExpireAllMessages", orders, 1)
    until(lambda: backlog(go, orders, "other") == backlog(go, orders) == 0)


def test_messages(go: GoAdmin, client: pulsar.Client, orders: str) -> None:
    go("Subscriptions.Create", orders, "billing", EARLIEST)
    ids = publish(client, orders, b"one", b"two")
    batch = publish_batch(client, orders, b"three", b"four")
    assert {each.entry_id() for each in batch} == {2}
    peeked = go("Subscriptions.PeekMessages", orders, "billing", 4)
    assert [each["payload"] for each in peeked] == ["one", "two", "three", "four"]
    assert [each["id"] for each in peeked] == [
        f"{ids[0].ledger_id()}:0:-1:-1",
        f"{ids[0].ledger_id()}:1:-1:-1",
        f"{ids[0].ledger_id()}:2:-1:0",
        f"{ids[0].ledger_id()}:2:-1:1",
    ]
    assert [each["properties"].get("n") for each in peeked[:2]] == ["0", "1"]
    assert peeked[3]["properties"]["n"] == "1"
    ledger = ids[0].ledger_id()
    assert go("Subscriptions.GetMessageByID", orders, ledger, 1)["payload"] == "two"
    assert [each["payload"] for each in go("Subscriptions.GetMessagesByID", orders, ledger, 2)] == ["three", "four"]
    assert backlog(go, orders) == 3  # entries, as in Pulsar
    assert go.refusal("Subscriptions.PeekMessages", orders, "billing", 5)[0] == 404


def test_all_topics_of_a_namespace(go: GoAdmin, client: pulsar.Client, namespace: str) -> None:
    topics = [f"persistent://{namespace}/t{number}" for number in range(2)]
    for topic in topics:
        for name in ("billing", "other"):
            go("Topics.Create", topic, 0) if name == "billing" else None
            go("Subscriptions.Create", topic, name, EARLIEST)
        publish(client, topic, b"one", b"two")
    bundle = go("Topics.GetBundleRange", topics[0])
    go("Namespaces.ClearNamespaceBundleBacklogForSubscription", namespace, bundle, "billing")
    assert (backlog(go, topics[0]), backlog(go, topics[0], "other")) == (0, 2)
    go("Namespaces.ClearNamespaceBundleBacklog", namespace, bundle)
    assert backlog(go, topics[0], "other") == 0
    go("Namespaces.ClearNamespaceBacklogForSubscription", namespace, "billing")
    assert [backlog(go, topic) for topic in topics] == [0, 0]
    go("Namespaces.ClearNamespaceBacklog", namespace)
    assert [backlog(go, topic, "other") for topic in topics] == [0, 0]
    go("Namespaces.UnsubscribeNamespaceBundle", namespace, bundle, "other")
    assert go("Subscriptions.List", topics[0]) == ["billing"]
    go("Namespaces.UnsubscribeNamespace", namespace, "billing")
    assert "billing" not in [name for topic in topics for name in go("Subscriptions.List", topic)]


def test_bundles(go: GoAdmin, box: Running, namespace: str) -> None:
    if box.is_ours:  # Pulsar 4.2.4 cannot delete the namespace afterwards
        go("Namespaces.SplitNamespaceBundle", namespace, "0x40000000_0x80000000", True)
        assert go("Namespaces.GetPolicies", namespace)["bundles"]["numBundles"] == 5
    try:
        served(lambda: go("Namespaces.DeleteNamespaceBundle", namespace, "0x00000000_0x40000000"))
    except Refused as error:  # no topic of it was used yet
        assert error.code == 412  # noqa: PT017


def test_broker_stats(go: GoAdmin, client: pulsar.Client, box: Running, namespace: str, orders: str) -> None:
    client.subscribe(orders, "billing")
    topics = json.loads(go("BrokerStats.GetTopics"))
    bundle = go("Topics.GetBundleRange", orders)
    if box.is_ours:  # Pulsar reports the state of a minute ago
        assert "billing" in topics[namespace][bundle]["persistent"][orders]["subscriptions"]
    metrics = go("BrokerStats.GetMetrics")
    assert any("brk_ml_count" in each["metrics"] for each in metrics)
    report = go("BrokerStats.GetLoadReport")
    assert report["persistentTopicsEnabled"] is True
    assert report["cpu"]["limit"] > 0 < report["memory"]["usage"]
    if box.is_ours:
        assert report["numTopics"] > 0 < report["numConsumers"]
        assert go("BrokerStats.GetMBeans") == []
    assert go("BrokerStats.GetAllocatorStats", "default")["numDirectArenas"] >= 0


def test_brokers(go: GoAdmin, box: Running, namespace: str, orders: str) -> None:
    [broker] = go("Brokers.GetListActiveBrokers")
    assert broker.rpartition(":")[2] == box.web_url.rpartition(":")[2]
    assert go("Brokers.GetActiveBrokers", "standalone") == [broker]
    assert go("Brokers.GetLeaderBroker")["brokerId"] == broker
    go("Topics.GetStats", orders)
    owned = go("Brokers.GetOwnedNamespaces", "standalone", broker)
    status = owned[f"{namespace}/{go('Topics.GetBundleRange', orders)}"]
    assert status == {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    go("Brokers.HealthCheck")
    go("Brokers.HealthCheckWithTopicVersion", "V2")
    assert go("Brokers.GetInternalConfigurationData")["ledgersRootPath"]


def test_dynamic_configuration(go: GoAdmin) -> None:
    names = go("Brokers.GetDynamicConfigurationNames")
    setting = "allowAutoTopicCreation"
    assert setting in names
    assert go("Brokers.GetRuntimeConfigurations")[setting] == "true"
    go("Brokers.UpdateDynamicConfiguration", setting, "true")
    try:
        assert go("Brokers.GetAllDynamicConfigurations")[setting] == "true"
    finally:
        go("Brokers.DeleteDynamicConfiguration", setting)
    assert setting not in go("Brokers.GetAllDynamicConfigurations")
    assert go.refusal("Brokers.UpdateDynamicConfiguration", "nonsense", "1")[0] == 412


RECORD = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}
WIDER = RECORD | {"fields": [{"name": "n", "type": "int"}, {"name": "m", "type": ["null", "int"], "default": None}]}


def test_schemas(go: GoAdmin, orders: str) -> None:
    first = {"type": "AVRO", "schema": json.dumps(RECORD), "properties": {"a": "b"}}
    second = {"type": "AVRO", "schema": json.dumps(WIDER), "properties": {}}
    assert go.refusal("Schemas.GetSchemaInfo", orders)[0] == 404
    go("Schemas.CreateSchemaByPayload", orders, first)
    go("Schemas.CreateSchemaBySchemaInfo", orders, {"name": "orders", **second, "schema": base64_of(WIDER)})
    told = go("Schemas.GetSchemaInfoWithVersion", orders)
    assert told["version"] == 1
    assert told["schemaInfo"] == go("Schemas.GetSchemaInfo", orders)
    assert (told["schemaInfo"]["name"], told["schemaInfo"]["type"]) == ("orders", "AVRO")
    assert told["schemaInfo"]["schema"] == base64_of(WIDER)
    old = go("Schemas.GetSchemaInfoByVersion", orders, 0)
    assert (old["schema"], old["properties"]) == (base64_of(RECORD), {"a": "b"})
    assert [each["version"] for each in go("Schemas.GetAllSchemas", orders)] == [0, 1]
    go("Schemas.DeleteSchema", orders)
    assert go.refusal("Schemas.GetSchemaInfo", orders)[0] == 404
    go("Schemas.CreateSchemaByPayload", orders, first)
    go("Schemas.ForceDeleteSchema", orders)
    assert go.refusal("Schemas.GetSchemaInfo", orders)[0] == 404


def base64_of(schema: dict[str, Any]) -> str:
    """Return the JSON form of Go's bytes."""
    return base64.b64encode(json.dumps(schema).encode()).decode()


def test_versions_of_schemas(go: GoAdmin, orders: str) -> None:
    payload = {"type": "AVRO", "schema": json.dumps(RECORD), "properties": {}}
    info = {"name": "orders", **payload, "schema": base64_of(RECORD)}
    go("Schemas.CreateSchemaByPayload", orders, payload)
    assert served(lambda: go("Schemas.GetVersionByPayload", orders, payload)) == 0
    assert go("Schemas.GetVersionBySchemaInfo", orders, info) == 0


def test_compatibility_of_schemas(go: GoAdmin, orders: str) -> None:
    payload = {"type": "AVRO", "schema": json.dumps(RECORD), "properties": {}}
    info = {"name": "orders", **payload, "schema": base64_of(RECORD)}
    go("Schemas.CreateSchemaByPayload", orders, payload)
    assert (
        served(lambda: go("Schemas.TestCompatibilityWithPostSchemaPayload", orders, payload))["compatibility"] is True
    )
    assert go("Schemas.TestCompatibilityWithSchemaInfo", orders, info)["compatibility"] is True


def test_compaction(go: GoAdmin, orders: str) -> None:
    served(lambda: go("Topics.Compact", orders))
    assert go("Topics.CompactStatus", orders)["status"] in ("RUNNING", "SUCCESS")


def test_offload(go: GoAdmin, orders: str) -> None:
    assert served(lambda: go("Topics.OffloadStatus", orders))["status"] == "NOT_RUN"
    go("Topics.Offload", orders, {"ledgerId": 1, "entryId": 1, "partitionIndex": -1})


# Available calls

SAMPLES: dict[str, Any] = {
    "string": "x",
    "int": 1,
    "int64": 1,
    "bool": True,
    "map[string]string": {},
    "utils.FunctionState": {"key": "k", "stringValue": "v"},
    **{
        f"*utils.{kind}Config": {"tenant": "x", "namespace": "y", "name": "z"}
        for kind in ("Function", "Sink", "Source")
    },
}
"""Arguments, by type, of calls that are rejected regardless of their content; other types get an empty object."""
PACKAGE = "function://public/default/x@1"


@pytest.mark.usefixtures("ours")
def test_what_is_never_there_is_refused_with_its_reason(go: GoAdmin, box: Running, tmp_path: Path) -> None:
    (go.folder / "x").write_bytes(b"a package")
    made = refused = 0
    for call, takes in calls().items():
        if call.partition(".")[0] in NEVER:
            args = [SAMPLES.get(kind, {}) for kind in takes]
            if call.startswith("Packages."):
                args = ["function", "public/default"] if call == "Packages.List" else [PACKAGE, *args[1:]]
            refused += is_refused(go, call, *args)
            made += 1
    assert made > 50
    assert refused > 20


def test_every_call_of_the_client_is_made(go: GoAdmin) -> None:
    """Each call is in a test of this file, in a test of policies, or in the list of calls that are never supported."""
    known = set(calls())
    sources = "".join(Path(__file__).with_name(f"{name}.py").read_text("utf-8") for name in FILES)
    made = {name for name in known if f'"{name}"' in sources or name.partition(".")[0] in NEVER}
    assert sorted(known - made - policy_calls()) == []
    assert sorted(policy_calls() - known) == []
