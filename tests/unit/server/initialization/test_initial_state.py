"""Declarations applied to a box in process: every policy, round trips of exports, and conflicts."""

import asyncio
import logging
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.common.yaml_text import to_yaml
from pulsarbox.config import ConfigError, Settings
from pulsarbox.declaration.admin_calls import AdminReply, Exchange
from pulsarbox.declaration.declaration import Declaration
from pulsarbox.declaration.declaration_parser import parse_declaration
from pulsarbox.declaration.declared_policy import ROWS_BY_NAME, rows_at
from pulsarbox.declaration.exported_document import document_of
from pulsarbox.declaration.places import InvalidDeclaration
from pulsarbox.declaration.plan import Step
from pulsarbox.declaration.planner import planned
from pulsarbox.declaration.present_state import all_present, present_of
from pulsarbox.declaration.pruning import pruned_steps
from pulsarbox.declaration.step_execution import carried_out
from pulsarbox.names import parse_topic
from pulsarbox.protocol.policies.policy_values import QUOTA_TYPES
from pulsarbox.server.http import HttpServer
from pulsarbox.server.initialization.initial_state import InitialState, _answered
from tests.tools import campaigns
from tests.unit.server.http.harness import InstantShell

T = TypeVar("T")

RATE: Final = {"dispatchThrottlingRateInMsg": 7, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 2}
VALUES: Final[dict[str, Any]] = {
    "allowed-clusters": ["mars", "standalone", "venus"],
    "anti-affinity-group": "group A",
    "allowed-topic-property-keys-for-metrics": ["a", "b"],
    "auto-subscription-creation": {"allowAutoSubscriptionCreation": False},
    "auto-topic-creation": {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
    "backlog-quota:destination_storage": {"limitSize": 1 << 20, "policy": "producer_exception", "excludeDelayed": True},
    "backlog-quota:message_age": {"limitTime": 60, "policy": "consumer_backlog_eviction"},
    "compaction-threshold": 1000,
    "compression-at-rest": "zlib",
    "deduplication": True,
    "deduplication-snapshot-interval": 30,
    "delayed-delivery": {"tickTime": 500, "active": True, "maxDeliveryDelayInMillis": 5000},
    "dispatch-rate": RATE,
    "dispatcher-pause-on-ack-state-persistent": True,
    "encryption-required": True,
    "inactive-topic-policies": {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 90,
        "deleteWhileInactive": True,
    },
    "is-allow-auto-update-schema": False,
    "max-consumers": 4,
    "max-consumers-per-subscription": 5,
    "max-message-size": 1 << 20,
    "max-producers": 0,
    "max-subscriptions-per-topic": 8,
    "max-topics-per-namespace": 900,
    "max-unacked-messages-per-consumer": 11,
    "max-unacked-messages-per-subscription": 12,
    "message-ttl": 600,
    "offload-policies": {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 1048576},
    "persistence": {"bookkeeperEnsemble": 2, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 1},
    "publish-rate": {"publishThrottlingRateInMsg": 9},
    "replication-clusters": ["mars", "standalone"],
    "replicator-dispatch-rate": RATE,
    "resource-group": "batch",
    "retention": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 64},
    "schema-auto-update-compatibility-strategy": "Full",
    "schema-compatibility-strategy": "FORWARD",
    "schema-validation-enforced": True,
    "shadow-topics": ["persistent://public/default/shadow"],
    "subscribe-rate": {"subscribeThrottlingRatePerConsumer": 3},
    "subscription-auth-mode": "Prefix",
    "subscription-dispatch-rate": RATE,
    "subscription-expiration-time": 40,
    "subscription-types-enabled": ["Failover", "Shared"],
}
"""A value of every policy."""
CLUSTERS: Final[dict[str, Any]] = {
    "clusters": {
        "mars": {"serviceUrl": "http://mars:8080", "brokerServiceUrl": "pulsar://mars:6650"},
        "aaa": {"listenerName": "x", "tlsAllowInsecureConnection": True},
        "venus": None,
    },
    "tenants": {"public": {"allowed-clusters": ["mars", "standalone", "venus"]}},
}
"""Clusters that the values refer to. One of them sorts before the box's own cluster."""
SHADOW: Final = "public/default/shadow"


def policies(names: Any, *, topic: bool, persistent: bool = True) -> dict[str, Any]:
    """Return a section of policies, with the quotas under one name."""
    there = {row.name for row, _ in rows_at(topic=topic)} - (set() if persistent else {"shadow-topics"})
    found = {name: VALUES[name] for name in names if name in there and ":" not in name}
    quotas = {kind: VALUES[f"backlog-quota:{kind}"] for kind in QUOTA_TYPES if f"backlog-quota:{kind}" in names}
    return found | ({"backlog-quota": quotas} if quotas else {})


class ShellBox:
    """A core behind the Admin API, without sockets."""

    def __init__(self, **settings: Any) -> None:
        self.http = HttpServer(InstantShell(Settings(**settings)))

    async def steps(self, text: str, *, prune: bool = False) -> list[Step]:
        declaration = read(text)
        state = await _answered(self.http, present_of(declaration, everything=prune))
        return [*planned(declaration, state).steps, *(pruned_steps(declaration, state) if prune else [])]

    async def apply(self, text: str, *, prune: bool = False) -> list[str]:
        done: list[str] = []
        steps = await self.steps(text, prune=prune)
        await _answered(self.http, carried_out(steps, lambda step: done.append(str(step))))
        return done

    async def export(self) -> str:
        return to_yaml(document_of(await _answered(self.http, all_present())))


def read(text: str) -> Declaration:
    return parse_declaration(text, "f", lambda name: name)


async def is_stable(text: str) -> str:
    """Apply a declaration and check that nothing is left to do, and that its export makes an equal box."""
    first, second = ShellBox(), ShellBox()
    await first.apply(text)
    assert await first.steps(text) == []
    exported = await first.export()
    assert await first.steps(exported, prune=True) == [], "an export declares all that there is"
    await second.apply(exported)
    assert await second.export() == exported
    assert await second.steps(text) == []
    return exported


ALONE = sorted(VALUES)[::6]
"""Policies that `make test` declares alone; a campaign does so with each."""


def test_every_policy_has_a_value_here() -> None:
    assert set(VALUES) == set(ROWS_BY_NAME)


@pytest.mark.parametrize("name", campaigns.chosen(sorted(VALUES), ALONE.__contains__))
async def test_every_policy_is_applied_compared_exported_and_removed(name: str) -> None:
    document: dict[str, Any] = {"resource-groups": {"batch": {"publishRateInMsgs": 5}}, **CLUSTERS}
    document["namespaces"] = {"public/space": {"policies": policies([name], topic=False)}}
    document["topics"] = {
        "public/space/t": {"policies": policies([name], topic=True)},
        "non-persistent://public/space/n": {
            "partitions": 2,
            "policies": policies([name], topic=True, persistent=False),
        },
        SHADOW: None,
    }
    exported = await is_stable(to_yaml(document))
    assert f"{name.partition(':')[0]}:" in exported
    box = ShellBox()
    await box.apply(exported)
    bare = "namespaces: {public/space: }\ntopics: {public/space/t: , non-persistent://public/space/n: {partitions: 2}}"
    removed = await box.apply(bare, prune=True)
    assert removed and all(each.startswith(f"unset {name} of ") for each in removed)
    assert await box.steps(bare, prune=True) == []


async def test_all_policies_together() -> None:
    document: dict[str, Any] = {"resource-groups": {"batch": {"dispatchRateInBytes": 5}}, **CLUSTERS}
    document["namespaces"] = {"public/space": {"policies": policies(VALUES, topic=False)}}
    document["topics"] = {"public/space/t": {"policies": policies(VALUES, topic=True), "subscriptions": {"s": None}}}
    document["topics"][SHADOW] = None
    await is_stable(to_yaml(document))


EVERYTHING: Final = """
tenants: {acme: {admin-roles: [ops]}}
namespaces:
  acme/orders:
    properties: {owner: "a b"}
    permissions: {ann: [produce, functions], bob: [consume]}
    subscription-permissions: {"odd /%name": [bob]}
topics:
  acme/orders/odd %+?#name:
    properties: {k: "v"}
    permissions: {carl: [consume]}
    subscriptions:
      odd /%+name: {position: earliest, properties: {x: "1"}, dispatch-rate: dispatchThrottlingRateInMsg=4}
  acme/orders/parted:
    partitions: 3
    properties: {k: v}
    schema: {type: JSON, definition: {type: record, name: A, fields: [{name: a, type: string}]}, properties: {p: q}}
    subscriptions: {s: {dead-letter: 2}, t: {properties: {a: b}, dead-letter: {maxRedeliverCount: 0,
      deadLetterTopic: acme/orders/letters, initialSubscriptionName: ''}}}
  acme/orders/pairs: {schema: {type: KEY_VALUE, definition: {key: '', value: {type: string}}}}
  acme/orders/plain: {schema: {type: STRING}}
  non-persistent://acme/orders/ticks: {permissions: {ann: [produce]}}
"""


async def test_clusters_are_created_compared_by_declared_members_and_exported() -> None:
    text = """
clusters:
  mars: {serviceUrl: "http://mars:8080", peerClusterNames: [venus]}
  aaa: {tlsAllowInsecureConnection: true}
  venus:
tenants: {acme: {allowed-clusters: [mars, standalone]}, plain: }
namespaces:
  acme/orders: {policies: {replicator-dispatch-rate: dispatchThrottlingRateInMsg=5}}
  plain/orders: {policies: {replication-clusters: [standalone]}}
topics: {acme/orders/t: {policies: {replication-clusters: [mars, standalone]}}}
"""
    exported = yaml.safe_load(await is_stable(text))
    assert list(exported["clusters"]) == ["aaa", "mars", "venus"]
    assert exported["tenants"]["plain"] == {"admin-roles": []}
    box = ShellBox()
    await box.apply(text)
    (step,) = await box.steps("clusters: {mars: {authenticationParameters: abc}}")
    assert "abc" not in f"{step.present} {step.declared}"
    await box.apply("clusters: {mars: {authenticationParameters: abc}}")
    assert "abc" not in await box.export(), "a declaration has no secrets"
    assert await box.apply("clusters: {mars: {serviceUrl: null, listenerName: x}, aaa: {}}") == [
        "set data of cluster mars"
    ]
    state = await _answered(box.http, all_present())
    assert state.cluster_data["mars"].items() >= {"listenerName": "x", "authenticationParameters": "abc"}.items()
    assert "serviceUrl" not in state.cluster_data["mars"]
    assert state.tenants["plain"]["allowedClusters"] == ["standalone"]


async def test_an_export_of_a_namespace_has_the_clusters_of_its_tenant() -> None:
    box = ShellBox()
    await box.apply("{clusters: {aaa: , mars: }, tenants: {a: {allowed-clusters: [mars]}}, namespaces: {public/x: }}")
    assert (await _answered(box.http, all_present(["public/x"]))).cluster_data == {}
    assert list((await _answered(box.http, all_present(["public/x", "a/x"]))).cluster_data) == ["mars"]


def of_clusters(allowed: list[str] | None, replicated: list[str] | None) -> str:
    given = {"allowed-clusters": allowed, "replication-clusters": replicated}
    return to_yaml({**CLUSTERS, "namespaces": {"public/space": {"policies": given}}})


@pytest.mark.parametrize("before", [None, ["standalone"], ["standalone", "venus"]])
@pytest.mark.parametrize("after", [None, ["standalone"], ["mars", "standalone"], ["mars", "standalone", "venus"]])
async def test_allowed_and_replication_clusters_change_in_an_order_that_brokers_accept(before: Any, after: Any) -> None:
    box = ShellBox()
    await box.apply(of_clusters(before, before))
    await box.apply(of_clusters(after, after))
    assert await box.steps(of_clusters(after, after)) == []


async def test_replication_clusters_that_are_not_allowed_are_refused_before_a_change() -> None:
    box = ShellBox()
    await box.apply(of_clusters(["mars", "standalone"], ["mars", "standalone"]))
    for wrong in (of_clusters(["standalone", "venus"], ["mars", "standalone"]), of_clusters(None, ["mars"])):
        with pytest.raises(InvalidDeclaration, match="namespace public/space replicates to mars: add it to allowed"):
            await box.steps(wrong)
    bare = "namespaces: {public/space: {policies: {replication-clusters: [standalone, mars]}}}"
    assert await box.steps(bare, prune=True) == [], "allowed clusters that replication needs are not pruned"


async def test_the_own_cluster_is_known_without_the_right_to_ask_for_it() -> None:
    box = ShellBox()
    text = to_yaml({**CLUSTERS, "namespaces": {"public/space": {"policies": policies(VALUES, topic=False)}}})
    await box.apply(f"{text}\nresource-groups: {{batch: }}")
    found = await _answered(box.http, rejecting(all_present(["public/space"]), "/admin/v2/brokers/"))
    assert found.cluster() == "standalone"


async def test_everything_else_is_stable() -> None:
    exported = await is_stable(EVERYTHING)
    assert "letters" in exported and "dead-letters" in exported


async def test_an_export_of_a_namespace_has_what_it_needs() -> None:
    first, second = ShellBox(), ShellBox()
    await first.apply(f"{EVERYTHING}\nresource-groups: {{batch: publishRateInMsgs=5, other: publishRateInMsgs=5}}")
    await first.apply("namespaces: {acme/orders: {policies: {resource-group: batch}}, acme/other: }")
    state = await _answered(first.http, all_present(["acme/orders"]))
    exported = to_yaml(document_of(state))
    assert "other" not in exported
    await second.apply(exported)
    assert to_yaml(document_of(await _answered(second.http, all_present(["acme/orders"])))) == exported


def without_own(exchange: Exchange[T]) -> Exchange[T]:
    """Answer the calls that only a box knows as another broker does."""
    reply: AdminReply | None = None
    try:
        while True:
            call = next(exchange) if reply is None else exchange.send(reply)
            is_own = call.target.startswith("/pulsarbox/")
            reply = AdminReply(404, None, "HTTP 404 Not Found") if is_own else (yield call)
    except StopIteration as ended:
        found: T = ended.value
        return found


def rejecting(exchange: Exchange[T], path: str) -> Exchange[T]:
    """Answer the calls below a path as a broker does that authorizes them for superusers only."""
    reply: AdminReply | None = None
    try:
        while True:
            call = next(exchange) if reply is None else exchange.send(reply)
            reply = AdminReply(403, None, "no") if call.target.startswith(path) else (yield call)
    except StopIteration as ended:
        found: T = ended.value
        return found


async def test_policies_are_compared_with_a_broker_that_shows_them_one_by_one() -> None:
    box = ShellBox()
    names = {name for name in VALUES if not ROWS_BY_NAME[name].own}
    topics = {"public/default/t": {"policies": policies(names, topic=True)}, SHADOW: None}
    text = to_yaml({**CLUSTERS, "topics": topics})
    await box.apply(text)
    state = await _answered(box.http, without_own(present_of(read(text))))
    assert planned(read(text), state).steps == []
    assert state.topics[parse_topic("t")].policies.keys() >= {"retention", "backlog-quota:message_age"}
    await box.apply("topics: {t: {policies: {retention: null, publish-rate: publishThrottlingRateInMsg=3}}}")
    state = await _answered(box.http, without_own(present_of(read(text))))
    assert [str(each) for each in planned(read(text), state).steps] == [
        "set retention of topic persistent://public/default/t",
        "set publish-rate of topic persistent://public/default/t",
    ]


names: Final = st.sampled_from(["a", "b-2", "C_3", "d.4"])
texts: Final = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
properties: Final = st.dictionaries(texts, texts, max_size=2)
grants: Final = st.dictionaries(
    texts.filter(str.strip), st.lists(st.sampled_from(["produce", "consume"]), min_size=1), max_size=2
)
chosen: Final = st.sets(st.sampled_from(sorted(set(VALUES) - {"max-subscriptions-per-topic"})), max_size=5)
subscriptions: Final = st.dictionaries(
    texts.filter(lambda name: name.strip() and "/" not in name),
    st.fixed_dictionaries(
        {"position": st.sampled_from(["earliest", "latest"])},
        optional={"properties": properties, "dead-letter": st.integers(0, 9)},
    ),
    max_size=2,
)
persistent: Final = st.fixed_dictionaries(
    {"partitions": st.integers(0, 3)},
    optional={
        "properties": properties,
        "permissions": grants,
        "subscriptions": subscriptions,
        "policies": chosen.map(lambda names: policies(names, topic=True)),
        "schema": st.just({"type": "STRING"}),
    },
)
spaces: Final = st.fixed_dictionaries(
    {"policies": chosen.map(lambda names: policies(names, topic=False))},
    optional={"properties": properties, "permissions": grants},
)


@given(st.dictionaries(names, spaces, min_size=1, max_size=2), st.dictionaries(names, persistent, max_size=3))
def test_an_export_makes_an_equal_box(namespaces: dict[str, Any], topics: dict[str, Any]) -> None:
    space = next(iter(namespaces))
    document = {
        "resource-groups": {"batch": {"publishRateInBytes": 10}},
        "namespaces": {f"public/{name}": each for name, each in namespaces.items()},
        "topics": {f"public/{space}/{name}": each for name, each in topics.items()} | {SHADOW: {}},
        **CLUSTERS,
    }
    asyncio.run(is_stable(to_yaml(document)))


# At the start of a box


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "box.yaml"


async def start(file: Path, http: HttpServer, **settings: Any) -> None:
    await InitialState(Settings(initFile=str(file), **settings)).apply(http)


async def test_authorization_is_not_in_the_way(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    file.write_text(EVERYTHING)
    settings = {"authenticationEnabled": True, "authorizationEnabled": True, "authenticationProviders": "tls"}
    box = ShellBox(**settings)
    await start(file, box.http)
    assert await box.steps(EVERYTHING) == []
    assert "initFile: created tenant acme" in caplog.messages
    await start(file, box.http)
    assert f"initFile {file}: 0 changes" in caplog.messages[-1]


async def test_a_contradiction_changes_nothing(file: Path) -> None:
    box = ShellBox()
    await box.apply("topics: {t: {partitions: 4}}")
    file.write_text("tenants: {x: }\ntopics:\n  t: {partitions: 2}\n")
    with pytest.raises(ConfigError, match=f"^initFile: {file}:3: topic persistent://public/default/t has 4 partitions"):
        await start(file, box.http)
    assert "x:" not in await box.export()


async def test_a_step_that_fails_is_named(file: Path) -> None:
    file.write_text(
        "tenants: {x: }\nnamespaces:\n  x/y: {policies: {max-message-size: 1}}\n".replace(
            "max-message-size: 1", "compression-at-rest: none-such"
        )
    )
    with pytest.raises(ConfigError, match=f"^initFile: {file}:3: cannot set compression-at-rest of namespace x/y: "):
        await start(file, ShellBox().http)


def test_an_invalid_file_is_an_invalid_setting(file: Path) -> None:
    with pytest.raises(ConfigError, match=f"^initFile: {file}:1: cannot be read: No such file or directory$"):
        InitialState(Settings(initFile=str(file)))
    file.write_text("topic:\nnamespace:\n")
    with pytest.raises(ConfigError, match=f"^initFile: {file}:1: the file: unknown key 'topic'.*; {file}:2: the file"):
        InitialState(Settings(initFile=str(file)))
