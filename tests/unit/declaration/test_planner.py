"""Steps from a present state to a declaration: their order, and what cannot be changed."""

from typing import Any

import pytest

from pulsarbox.declaration.declaration_parser import parse_declaration
from pulsarbox.declaration.places import InvalidDeclaration
from pulsarbox.declaration.plan import StepPlan
from pulsarbox.declaration.planner import planned
from pulsarbox.declaration.present_state import PresentState, PresentSubscription, PresentTopic
from pulsarbox.declaration.pruning import pruned_steps
from pulsarbox.names import parse_topic

TOPIC = parse_topic("a/b/t")
GIB = 1 << 30


def state(topic: PresentTopic | None = None, **more: Any) -> PresentState:
    """A box with the namespace a/b, and maybe the topic a/b/t."""
    found = PresentState(["standalone"], {"a": {"adminRoles": [], "allowedClusters": ["standalone"]}})
    found.namespaces["a/b"] = more
    if topic is not None:
        found.topics[TOPIC] = topic
        found.listed[TOPIC] = topic.created
    return found


def plan(text: str, present: PresentState) -> StepPlan:
    return planned(parse_declaration(text, "f", lambda name: name), present)


def steps(text: str, present: PresentState) -> list[str]:
    return [str(each) for each in plan(text, present).steps]


def refusals(text: str, present: PresentState) -> list[str]:
    with pytest.raises(InvalidDeclaration) as caught:
        plan(text, present)
    return str(caught.value).splitlines()


def test_parents_come_first_and_nothing_is_done_twice() -> None:
    text = "topics: {n/s/t: {partitions: 2, subscriptions: {x: }}}\nnamespaces: {n/s: }\ntenants: {n: }"
    assert steps(text, state()) == [
        "create tenant n",
        "create namespace n/s",
        "create topic with 2 partitions: persistent://n/s/t",
        "create subscription x on persistent://n/s/t",
    ]
    there = state(PresentTopic(2, 2, subscriptions={"x": PresentSubscription({}, 2)}))
    assert steps("topics: {a/b/t: {partitions: 2, subscriptions: {x: }}}", there) == []


def test_what_a_crash_left_incomplete_is_completed() -> None:
    there = state(PresentTopic(4, 3, subscriptions={"x": PresentSubscription({}, 2)}))
    found = plan("topics: {a/b/t: {partitions: 4, subscriptions: {x: {position: earliest}}}}", there).steps
    assert [str(each) for each in found] == [
        "complete partitions of topic persistent://a/b/t",
        "create subscription at earliest: x on persistent://a/b/t",
    ]
    assert found[0].calls[0].target == "/admin/v2/persistent/a/b/t/createMissedPartitions"


@pytest.mark.parametrize(
    ("present", "declared", "said"),
    [
        (4, 3, "topic persistent://a/b/t has 4 partitions, and partitions cannot be removed: declare 4 or more"),
        (0, 3, "topic persistent://a/b/t exists with no partitions, which cannot be changed: declare partitions: 0"),
        (2, 0, "topic persistent://a/b/t exists with 2 partitions, which cannot be changed: declare partitions: 2"),
    ],
)
def test_partitions_only_grow(present: int, declared: int, said: str) -> None:
    text = f"topics:\n  a/b/t:\n    partitions: {declared}"
    (problem,) = refusals(text, state(PresentTopic(present, present)))
    assert problem.startswith(f"f:2: {said}")
    assert problem.endswith("delete the topic with `pulsarbox topic delete persistent://a/b/t`")


def test_partitions_grow() -> None:
    assert steps("topics: {a/b/t: {partitions: 5}}", state(PresentTopic(4, 4))) == [
        "grow to 5 partitions: topic persistent://a/b/t"
    ]


def test_what_is_missing_is_named_before_anything_is_changed() -> None:
    text = """
        tenants:
          x: {allowed-clusters: [mars]}
        namespaces:
          y/z:
          a/b: {policies: {resource-group: none}}
        topics:
          c/d/t:
        """
    assert refusals(text, state()) == [
        "f:3: cluster mars does not exist: declare it under clusters",
        "f:5: tenant y does not exist: declare it under tenants",
        "f:6: resource group none does not exist: declare it under resource-groups",
        "f:8: namespace c/d does not exist: declare it under namespaces",
    ]


def test_clusters_come_first_and_shadow_topics_after_all_topics() -> None:
    text = """
        topics:
          a/b/t: {policies: {shadow-topics: [a/b/later], max-consumers: 3}}
          a/b/later:
        tenants: {a: {allowed-clusters: [mars, standalone]}}
        clusters: {mars: }
        """
    assert steps(text, state()) == [
        "create cluster mars",
        "set roles of tenant a",
        "create topic persistent://a/b/t",
        "set max-consumers of topic persistent://a/b/t",
        "create topic persistent://a/b/later",
        "set shadow-topics of topic persistent://a/b/t",
    ]


def test_the_own_cluster_and_unknown_clusters_are_refused() -> None:
    text = """
        clusters: {standalone: }
        namespaces:
          a/b: {policies: {replication-clusters: [standalone, mars]}}
        topics:
          a/b/t: {policies: {replication-clusters: [venus]}}
        """
    assert refusals(text, state()) == [
        "f:2: cluster standalone is the broker's own, which its settings describe: remove it",
        "f:4: cluster mars does not exist: declare it under clusters",
        "f:6: cluster venus does not exist: declare it under clusters",
    ]


def test_an_incompatible_schema_is_refused() -> None:
    there = state(PresentTopic(0, 1))
    there.schemas[TOPIC] = "BACKWARD: a field was added"
    text = "topics: {a/b/t: {schema: {type: JSON, definition: '{}'}}}"
    assert refusals(text, there) == ["f:1: schema of persistent://a/b/t: BACKWARD: a field was added"]
    there.schemas[TOPIC] = ""
    assert steps(text, there) == ["register schema of topic persistent://a/b/t"]


RETENTION = {"retentionTimeInMinutes": -1, "retentionSizeInMB": 2048}
QUOTA = {"limit": GIB, "limitSize": GIB, "limitTime": -1, "policy": "producer_exception"}
BOTH = """
namespaces:
  a/b:
    policies:
      backlog-quota: {{destination_storage: {{limitSize: {quota}, policy: producer_exception}}}}
      retention: {{retentionTimeInMinutes: -1, retentionSizeInMB: {retention}}}
"""


@pytest.mark.parametrize(
    ("quota", "retention", "first"),
    [(3 * GIB, 4096, "retention"), (GIB // 4, 512, "backlog-quota:destination_storage")],
)
def test_retention_and_quota_change_in_the_order_that_brokers_accept(quota: int, retention: int, first: str) -> None:
    there = state(retention_policies=RETENTION, backlog_quota_map={"destination_storage": QUOTA})
    found = steps(BOTH.format(quota=quota, retention=retention), there)
    assert len(found) == 2 and found[0] == f"set {first} of namespace a/b"


def test_a_quota_beyond_its_retention_is_refused() -> None:
    said = "backlog-quota:destination_storage exceeds retention: raise the retention or lower the quota"
    assert refusals(BOTH.format(quota=GIB, retention=512), state()) == [f"f:5: {said}"]
    text = "namespaces: {a/b: {policies: {retention: {retentionTimeInMinutes: -1, retentionSizeInMB: 5}}}}"
    assert refusals(text, state(backlog_quota_map={"destination_storage": QUOTA})) == [f"f:1: {said}"]


def test_policies_are_set_changed_and_removed() -> None:
    there = state(message_ttl_in_seconds=60, max_producers_per_topic=5, encryption_required=False)
    text = """
        namespaces:
          a/b:
            policies: {message-ttl: null, max-producers: 6, encryption-required: false, max-consumers: null,
                       schema-compatibility-strategy: null, is-allow-auto-update-schema: null}
        """
    found = plan(text, there).steps
    assert [(str(each), each.present, each.declared) for each in found] == [
        ("unset message-ttl of namespace a/b", 60, None),
        ("set max-producers of namespace a/b", 5, 6),
    ]
    assert [each.calls[0].method for each in found] == ["DELETE", "POST"]


def test_grants_are_whole_per_role_and_other_roles_stay() -> None:
    auth = {
        "namespace_auth": {"ann": ["produce"], "bob": ["consume"], "eve": ["produce"]},
        "destination_auth": {str(TOPIC): {"ann": ["consume"]}},
        "subscription_auth_roles": {"s": ["ann"]},
    }
    there = state(PresentTopic(0, 1), auth_policies=auth)
    text = """
        namespaces:
          a/b:
            permissions: {ann: [consume, produce], bob: [consume], eve: []}
            subscription-permissions: {s: [bob], t: [ann]}
        topics: {a/b/t: {permissions: {ann: [consume], bob: [produce]}}}
        """
    assert steps(text, there) == [
        "grant permissions of role ann on namespace a/b",
        "revoke permissions of role eve on namespace a/b",
        "set roles of subscription s in namespace a/b",
        "set roles of subscription t in namespace a/b",
        "grant permissions of role bob on topic persistent://a/b/t",
    ]


def test_what_a_tenant_does_not_declare_stays() -> None:
    there = state()
    there.tenants["a"] = {"adminRoles": ["x"], "allowedClusters": ["standalone"]}
    assert steps("tenants: {a: }", there) == steps("tenants: {a: {admin-roles: [x]}}", there) == []
    (step,) = plan("tenants: {a: {admin-roles: []}}", there).steps
    assert step.declared == {"adminRoles": [], "allowedClusters": ["standalone"]}


def test_prune_deletes_what_declared_namespaces_do_not_declare() -> None:
    subscriptions = {name: PresentSubscription({}, 1) for name in ("s", "old")}
    there = state(
        PresentTopic(0, 1, policies={"max-producers": 3, "max-consumers": 4}, subscriptions=subscriptions),
        message_ttl_in_seconds=60,
        is_allow_auto_update_schema=True,
    )
    for local, partitions in (("u", 0), ("v", 2), ("t-s-DLQ", 0), ("letters", 0)):
        there.listed[TOPIC._replace(local=local)] = 1
        there.topics[TOPIC._replace(local=local)] = PresentTopic(partitions, 1)
    there.listed[parse_topic("other/space/t")] = 1
    text = """
        namespaces: {a/b: }
        topics:
          a/b/t:
            policies: {max-producers: 3}
            subscriptions: {s: {dead-letter: {maxRedeliverCount: 1, deadLetterTopic: a/b/letters}}}
        """
    found = pruned_steps(parse_declaration(text, "f", lambda name: name), there)
    assert [f"{each} {each.calls[0].method} {each.calls[0].target}" for each in found] == [
        "delete subscription old on persistent://a/b/t DELETE /admin/v2/persistent/a/b/t/subscription/old",
        "delete topic persistent://a/b/u DELETE /admin/v2/persistent/a/b/u",
        "delete topic persistent://a/b/v DELETE /admin/v2/persistent/a/b/v/partitions",
        "unset message-ttl of namespace a/b DELETE /admin/v2/namespaces/a/b/messageTTL",
        "unset max-consumers of topic persistent://a/b/t DELETE /admin/v2/persistent/a/b/t/maxConsumers",
    ]
