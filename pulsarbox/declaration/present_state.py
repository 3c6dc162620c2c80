"""The present state of a broker, as far as a declaration concerns it, or all of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pulsarbox.declaration.admin_calls import Exchange, admin, own, reply_to, value_of
from pulsarbox.declaration.declaration import Declaration, SubscriptionDeclaration, TopicDeclaration
from pulsarbox.declaration.declared_policy import rows_at
from pulsarbox.declaration.policy_calls import base_of, own_base_of
from pulsarbox.names import COMPACTION_SUBSCRIPTION, DOMAINS, TopicName, parse_topic
from pulsarbox.protocol.admin_paths import path_of, quoted, subscription_segment
from pulsarbox.protocol.policies.policy_values import quota_name
from pulsarbox.protocol.policies.stored_rows import REPLICATION_CLUSTERS
from pulsarbox.protocol.policies.table import QUOTA_ROWS, RESOURCE_GROUP_NAME

SYSTEM_TENANT: Final = "pulsar"
"""Tenant of the broker's own namespaces, which is not exported."""
_UNKNOWN: Final = -1
"""Version of a schema that a topic does not have."""


@dataclass(slots=True)
class PresentSubscription:
    """A durable subscription."""

    properties: dict[str, str]
    partitions: int
    """Number of partitions that have it; 1 of a topic that is not partitioned."""
    dead_letter: dict[str, Any] | None = None
    dispatch_rate: dict[str, Any] | None = None


@dataclass(slots=True)
class PresentTopic:
    """A topic; parts that nothing asks for are empty."""

    partitions: int
    """0 if it is not partitioned."""
    created: int = 0
    """Number of partitions that exist; a crash may have interrupted the creation of the others."""
    properties: dict[str, str] = field(default_factory=dict)
    policies: dict[str, Any] = field(default_factory=dict)
    """Values set on the topic, by name of the policy."""
    schema: dict[str, Any] | None = None
    """``type``, ``schema`` and ``properties`` of the newest version."""
    subscriptions: dict[str, PresentSubscription] = field(default_factory=dict)


@dataclass(slots=True)
class PresentState:
    """The state of a broker before a change; objects that are not in it do not exist."""

    clusters: list[str] = field(default_factory=list)
    """The names of all clusters."""
    tenants: dict[str, dict[str, Any]] = field(default_factory=dict)
    resource_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    namespaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Policies, properties and permissions in the form of GET /admin/v2/namespaces/{tenant}/{namespace}."""
    topics: dict[TopicName, PresentTopic] = field(default_factory=dict)
    listed: dict[TopicName, int] = field(default_factory=dict)
    """Every topic of the namespaces that were listed, with the number of its partitions that exist."""
    schemas: dict[TopicName, str] = field(default_factory=dict)
    """Topics that lack their declared schema: why they cannot get it, empty if they can."""
    own_cluster: str = ""
    """Empty if it is the only cluster, or if nothing tells it."""
    cluster_data: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Data of clusters other than the broker's own."""

    def cluster(self) -> str:
        """Return the name of the broker's own cluster, by which namespaces store rates; empty if it is unknown."""
        return self.own_cluster or (self.clusters[0] if len(self.clusters) == 1 else "")


def present_of(declaration: Declaration, *, everything: bool = False) -> Exchange[PresentState]:
    """Read what a declaration names; with ``everything``, also what its namespaces and topics contain besides.

    Raises CallRejected.
    """
    state = yield from _clusters()
    yield from _cluster_data(state, declaration.clusters)
    attached = [each.policies.get(RESOURCE_GROUP_NAME.name) for each in declaration.namespaces.values()]
    groups = [each.value for each in attached if each is not None and each.value is not None]
    yield from _groups(state, dict.fromkeys((*declaration.resource_groups, *groups)))
    namespaces = dict.fromkeys((*declaration.namespaces, *(each.namespace for each in declaration.topics)))
    tenants = dict.fromkeys((*declaration.tenants, *(each.partition("/")[0] for each in namespaces)))
    yield from _tenants(state, tenants, declaration)
    yield from _namespaces(state, namespaces)
    spaces = {(each.namespace, each.domain) for each in declaration.topics}
    spaces |= {(each, domain) for each in declaration.namespaces for domain in DOMAINS} if everything else set()
    yield from _listings(state, spaces)
    for name, topic in declaration.topics.items():
        if name.namespace in state.namespaces:
            yield from _topic(state, name, topic, everything)
    return state


def all_present(namespaces: Sequence[str] = ()) -> Exchange[PresentState]:
    """Read everything that can be declared; with ``namespaces``, only these and what they need. Raises CallRejected."""
    state = yield from _clusters()
    wanted, groups = list(namespaces), list[str]()
    tenants = dict.fromkeys(each.partition("/")[0] for each in wanted)
    if not wanted:
        groups = (yield from value_of(admin("GET", "/resourcegroups"))) or []
        tenants = dict.fromkeys((yield from value_of(admin("GET", "/tenants"))))
        tenants.pop(SYSTEM_TENANT, None)
    for tenant in tenants:
        found = yield from value_of(admin("GET", f"/tenants/{quoted(tenant)}"))
        if found is not None:
            state.tenants[tenant] = found
            wanted += [] if namespaces else (yield from value_of(admin("GET", f"/namespaces/{quoted(tenant)}"), []))
    allowed = (each for tenant in state.tenants.values() for each in tenant.get("allowedClusters") or ())
    yield from _cluster_data(state, dict.fromkeys(allowed if namespaces else state.clusters))
    yield from _namespaces(state, wanted)
    attached = (each.get("resource_group_name") for each in state.namespaces.values())
    yield from _groups(state, dict.fromkeys((*groups, *filter(None, attached))))
    yield from _listings(state, {(each, domain) for each in state.namespaces for domain in DOMAINS})
    for name in state.listed:
        topic = yield from _details(state, name)
        if topic is not None:
            state.topics[name] = topic
    return state


def _clusters() -> Exchange[PresentState]:
    """Read the names of the clusters. Only superusers may ask for the broker's own; for others, namespaces tell it."""
    found = yield from value_of(admin("GET", "/clusters"))
    state = PresentState([each for each in found if each != "global"])
    if len(state.clusters) > 1:
        reply = yield from reply_to(admin("GET", "/brokers/configuration/runtime"), 401, 403)
        state.own_cluster = "" if reply.status >= 400 else reply.value["clusterName"]
    return state


def _cluster_data(state: PresentState, names: Iterable[str]) -> Exchange[None]:
    for name in names:
        if name in state.clusters and name != state.cluster():
            found = yield from value_of(admin("GET", f"/clusters/{quoted(name)}"))
            if found is not None:
                state.cluster_data[name] = found


def _groups(state: PresentState, names: Iterable[str]) -> Exchange[None]:
    for name in names:
        found = yield from value_of(admin("GET", f"/resourcegroups/{quoted(name)}"))
        if found is not None:
            state.resource_groups[name] = found


def _tenants(state: PresentState, names: Iterable[str], declaration: Declaration) -> Exchange[None]:
    """A tenant that is not declared is only looked up, which its admins may do."""
    for name in names:
        path = f"/tenants/{quoted(name)}" if name in declaration.tenants else f"/namespaces/{quoted(name)}"
        found = yield from value_of(admin("GET", path))
        if found is not None:
            state.tenants[name] = found if isinstance(found, dict) else {}


def _namespaces(state: PresentState, names: Iterable[str]) -> Exchange[None]:
    for name in names:
        found = yield from value_of(admin("GET", base_of(name)))
        if found is not None:
            state.namespaces[name] = found
            yield from _stored_apart(state, name)


def _stored_apart(state: PresentState, name: str) -> Exchange[None]:
    """Add the policies that the Admin API shows apart from the others, and as text; only a box has them as JSON."""
    told = (yield from value_of(own("GET", own_base_of(name)))) or {}
    for row, place in rows_at(topic=False):
        if place.local and row.name in told:
            state.namespaces[name][place.key] = told[row.name]["value"]
    if told:
        (own_cluster,) = told[REPLICATION_CLUSTERS.name]["levels"][-1]["value"]
        state.own_cluster = own_cluster


def _listings(state: PresentState, spaces: Iterable[tuple[str, str]]) -> Exchange[None]:
    for namespace, domain in sorted(spaces):
        if namespace not in state.namespaces:
            continue
        path = f"/{domain}/{quoted(*namespace.split('/'))}"
        partitioned = set((yield from value_of(admin("GET", f"{path}/partitioned"), [])))
        counts: dict[TopicName, int] = {parse_topic(each): 0 for each in partitioned}
        single = yield from value_of(admin("GET", path), [])
        for name in map(parse_topic, single):
            if name.base in counts:
                counts[name.base] += 1
            elif name.base == name:  # a partition without its topic cannot be declared
                counts[name] = 1
        state.listed |= counts
        state.topics |= {name: PresentTopic(0) for name in counts if str(name) not in partitioned}
        for name in map(parse_topic, partitioned):
            found = yield from value_of(admin("GET", f"{path_of(name)}/partitions"), {"partitions": 0})
            state.topics[name] = PresentTopic(found["partitions"], counts[name])


# One topic


def _topic(state: PresentState, name: TopicName, declared: TopicDeclaration, everything: bool) -> Exchange[None]:
    if declared.schema is not None:
        yield from _declared_schema(state, name, declared.schema.value)
    topic = state.topics.get(name)
    if topic is None:
        return
    if declared.properties:
        topic.properties = yield from value_of(admin("GET", f"{path_of(name)}/properties"), {})
    if declared.policies or everything:
        topic.policies = yield from _policies(name)
    if name.persistent and (declared.subscriptions or everything):
        topic.subscriptions = yield from _subscriptions(name, topic)
    for subscription, each in declared.subscriptions.items():
        if subscription in topic.subscriptions:
            yield from _extras(name, subscription, topic.subscriptions[subscription], each)


def _declared_schema(state: PresentState, name: TopicName, schema: Mapping[str, Any]) -> Exchange[None]:
    path = f"/schemas/{quoted(name.tenant, name.namespace_local, name.local)}"
    reply = yield from reply_to(admin("POST", f"{path}/version", schema), 400, 404, 422)
    if reply.status >= 400:
        state.schemas[name] = reply.reason
    elif reply.value["version"] == _UNKNOWN:
        checked = yield from reply_to(admin("POST", f"{path}/compatibility", schema), 400, 404, 422)
        refused = checked.status >= 400 or not checked.value["compatibility"]
        reason = checked.reason or (checked.value or {}).get("reason", "")
        state.schemas[name] = (reason or "incompatible with the present version") if refused else ""


def _policies(name: TopicName) -> Exchange[dict[str, Any]]:
    reply = yield from reply_to(own("GET", own_base_of(name)), 404)
    if reply.status == 404:  # Apache Pulsar, or a topic that was deleted meanwhile
        return (yield from _single_policies(name))
    levels = ((policy, level) for policy, each in reply.value.items() for level in each["levels"])
    return {policy: level["value"] for policy, level in levels if level["level"] == "topic"}


def _single_policies(name: TopicName) -> Exchange[dict[str, Any]]:
    """Read the policies of a topic one by one."""
    quotas = (yield from value_of(admin("GET", f"{path_of(name)}/backlogQuotaMap"))) or {}
    found = {quota_name(kind): value for kind, value in quotas.items()}
    for row, place in rows_at(topic=True):
        if row not in QUOTA_ROWS and not row.own:
            found[row.name] = yield from value_of(admin("GET", f"{path_of(name)}/{place.path}"))
    return {policy: value for policy, value in found.items() if value is not None}


def _subscriptions(name: TopicName, topic: PresentTopic) -> Exchange[dict[str, PresentSubscription]]:
    which = "partitioned-stats" if topic.partitions else "stats"
    stats = yield from value_of(admin("GET", f"{path_of(name)}/{which}", perPartition="true"), {})
    parts = (stats.get("partitions") or {}).values() if topic.partitions else [stats]
    found: dict[str, PresentSubscription] = {}
    counts: dict[str, int] = defaultdict(int)
    for part in parts:
        for each, told in part.get("subscriptions", {}).items():
            if told["isDurable"] and each != COMPACTION_SUBSCRIPTION:
                counts[each] += 1
                found[each] = PresentSubscription(dict(told["subscriptionProperties"]), counts[each])
    return found


def _extras(
    name: TopicName, subscription: str, present: PresentSubscription, declared: SubscriptionDeclaration | None
) -> Exchange[None]:
    if declared is None or declared.dead_letter is not None:
        path = f"/dead-letter-policy{path_of(name)}/{subscription_segment(subscription)}"
        present.dead_letter = yield from value_of(own("GET", path))
    if declared is None or declared.dispatch_rate is not None:
        path = f"{path_of(name)}/{subscription_segment(subscription, 'dispatchRate')}"
        present.dispatch_rate = yield from value_of(admin("GET", path))


def _details(state: PresentState, name: TopicName) -> Exchange[PresentTopic | None]:
    """Read all parts of a topic; None if it is neither partitioned nor exists any more."""
    topic = state.topics.get(name)
    if topic is None:
        return None
    topic.policies = yield from _policies(name)
    if name.persistent:
        topic.properties = yield from value_of(admin("GET", f"{path_of(name)}/properties"), {})
        topic.schema = yield from _newest_schema(name)
        topic.subscriptions = yield from _subscriptions(name, topic)
        for subscription, present in topic.subscriptions.items():
            yield from _extras(name, subscription, present, None)
    return topic


def _newest_schema(name: TopicName) -> Exchange[dict[str, Any] | None]:
    path = f"/schemas/{quoted(name.tenant, name.namespace_local, name.local)}/schema"
    found = yield from value_of(admin("GET", path))
    if found is None:
        return None
    return {"type": found["type"], "schema": found["data"], "properties": found["properties"]}
