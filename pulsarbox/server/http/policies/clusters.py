"""Clusters that namespaces and topics replicate to, and shadow topics: stored, without effect.

Source: https://pulsar.apache.org/docs/4.2.x/administration-geo/.
"""

from collections.abc import Collection
from typing import Final

from pulsarbox.broker.policies.precedence import in_effect
from pulsarbox.errors import AuthorizationError, BadRequest, Conflict, InvalidTopicName, PreconditionFailed
from pulsarbox.names import parse_topic
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.stored_rows import ALLOWED_CLUSTERS, REPLICATION_CLUSTERS, SHADOW_TOPICS
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, plain
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.policies.of_namespaces import NAMESPACE
from pulsarbox.server.http.policies.of_topics import TOPIC, levels, own, set_topic_policy, topic_of
from pulsarbox.server.http.policies.values import changed, given, shown

assert REPLICATION_CLUSTERS.namespace is not None and REPLICATION_CLUSTERS.topic is not None
assert ALLOWED_CLUSTERS.namespace is not None and SHADOW_TOPICS.topic is not None
REPLICATION: Final = REPLICATION_CLUSTERS.namespace
ALLOWED: Final = ALLOWED_CLUSTERS.namespace
OF_TOPIC: Final = REPLICATION_CLUSTERS.topic
SHADOWS: Final = SHADOW_TOPICS.topic


def listed(names: Collection[str]) -> str:
    """Return names in the form of Pulsar's errors: ``[a, b]``."""
    return f"[{', '.join(sorted(names))}]"


def stored(call: HttpRequest, row: PolicyRow, clusters: Collection[str], done: HttpResponse) -> HttpResponse:
    """Answer a change of clusters, with a warning if they include others than the box's own."""
    others = set(clusters) - {call.broker.clusters.own}
    return changed(call, row, others or None, done)


# Checks


def check_tenant(call: HttpRequest, clusters: Collection[str]) -> None:
    """Raise AuthorizationError for a cluster that the tenant does not allow."""
    tenant = call.path["tenant"]
    strange = sorted(set(clusters) - set(call.tenants.get(tenant)["allowedClusters"]))
    if strange:
        raise AuthorizationError(
            f"Cluster [{strange[0]}] is not in the list of allowed clusters list for tenant [{tenant}]"
        )


def check_clusters(call: HttpRequest, clusters: Collection[str]) -> None:
    """Raise AuthorizationError for a cluster that does not exist, Conflict for two that are peers."""
    found = call.broker.clusters
    for name in found.unknown(clusters)[:1]:
        raise AuthorizationError(f"Invalid cluster id: {name}")
    for name in sorted(clusters):
        peers = set(found.get(name).get("peerClusterNames") or ()) & set(clusters)
        if peers:
            raise Conflict(
                f"{name}'s peer-clusters {listed(peers)} can't be part of replication-clusters {listed(clusters)}"
            )


# Namespaces


def of_namespace(call: HttpRequest) -> HttpResponse:
    """Return the clusters that a namespace replicates to; by default the box's own."""
    return shown(call.tenants.policies(call.namespace()).get(REPLICATION.key, []), REPLICATION)


def allowed(call: HttpRequest) -> HttpResponse:
    """Return the clusters that a namespace allows, if set."""
    return shown(call.tenants.policies(call.namespace()).get(ALLOWED.key), ALLOWED)


def set_namespace(call: HttpRequest) -> HttpResponse:
    """Set the clusters that a namespace replicates to."""
    namespace, clusters = call.namespace(), _given(call, REPLICATION_CLUSTERS, REPLICATION)
    check_clusters(call, clusters)
    within = call.tenants.policies(namespace).get(ALLOWED.key)
    for name in sorted(set(clusters) - set(within or clusters))[:1]:
        raise BadRequest(f"Cluster [{name}] is not in the list of allowed clusters list for namespace [{namespace}]")
    check_tenant(call, clusters)
    call.tenants.set_policy(namespace, REPLICATION.key, clusters, call.now)
    return stored(call, REPLICATION_CLUSTERS, clusters, plain(""))


def set_allowed(call: HttpRequest) -> HttpResponse:
    """Set the clusters that a namespace allows, which include those that it replicates to."""
    namespace, clusters = call.namespace(), given(call, ALLOWED_CLUSTERS, ALLOWED)
    policies = call.tenants.policies(namespace)
    check_tenant(call, clusters)
    if not set(policies[REPLICATION.key]) <= set(clusters):
        raise BadRequest(
            f"Allowed clusters do not contain the replication cluster {listed(policies[REPLICATION.key])}."
            " Please remove the replication cluster if the cluster is not allowed for this namespace"
        )
    check_clusters(call, clusters)
    call.tenants.set_policy(namespace, ALLOWED.key, clusters, call.now)
    return stored(call, ALLOWED_CLUSTERS, clusters, plain(""))


def _given(call: HttpRequest, row: PolicyRow, place: PolicyEndpoint) -> list[str]:
    clusters: list[str] = given(call, row, place)
    if not clusters:
        raise PreconditionFailed(place.without)
    return clusters


# Topics


def of_topic(call: HttpRequest) -> HttpResponse:
    """Return the clusters that a topic replicates to; with ``applied``, those in effect."""
    name = topic_of(call)
    if call.flag("applied"):
        return shown(in_effect(REPLICATION_CLUSTERS, levels(call, name), call.settings).value, OF_TOPIC)
    return shown(own(call, name).get(OF_TOPIC.key), OF_TOPIC)


def set_topic(call: HttpRequest) -> HttpResponse:
    """Set the clusters that a topic replicates to."""
    name, clusters = topic_of(call), _given(call, REPLICATION_CLUSTERS, OF_TOPIC)
    if call.flag("isGlobal"):
        _check_global(call.tenants.policies(name.namespace)[REPLICATION.key], clusters)
    elif call.broker.clusters.own not in clusters:
        raise PreconditionFailed("Can not remove local cluster from the local topic-level replication clusters policy")
    check_clusters(call, clusters)
    check_tenant(call, clusters)
    set_topic_policy(call, name, OF_TOPIC.key, clusters)
    return stored(call, REPLICATION_CLUSTERS, clusters, DONE)


def _check_global(of_namespace: Collection[str], clusters: Collection[str]) -> None:
    """Raise PreconditionFailed for clusters that a namespace does not replicate policies to."""
    if len(of_namespace) == 1:
        raise PreconditionFailed(
            "Please do not use the global topic level policy when namespace-level replication is not enabled, because"
            " the global level policy relies on namespace-level replication"
        )
    if not set(clusters) <= set(of_namespace):
        raise PreconditionFailed(
            "The policies at the global topic level will only be copied to the clusters included in the namespace level"
            " replication. Therefore, please do not set the policies including other clusters"
        )


def remove_topic(call: HttpRequest) -> HttpResponse:
    """Let the clusters of the namespace apply to a topic."""
    return set_topic_policy(call, topic_of(call), OF_TOPIC.key, None)


# Shadow topics


def shadow_topics(call: HttpRequest) -> HttpResponse:
    """Return the shadow topics of a topic, as they were set."""
    return shown(own(call, topic_of(call)).get(SHADOWS.key), SHADOWS)


def set_shadow_topics(call: HttpRequest) -> HttpResponse:
    """Set the shadow topics of a topic, which must exist."""
    name, found = topic_of(call), given(call, SHADOW_TOPICS, SHADOWS)
    if not name.persistent:
        raise PreconditionFailed("Only persistent source topic is supported with shadow topics.")
    if not found:
        raise PreconditionFailed(SHADOWS.without)
    for shadow in found:
        _check_shadow(call, shadow)
    set_topic_policy(call, name, SHADOWS.key, found)
    return changed(call, SHADOW_TOPICS, found)


def _check_shadow(call: HttpRequest, shadow: str) -> None:
    try:
        name = parse_topic(shadow)
    except InvalidTopicName:
        raise AuthorizationError(f"Invalid shadow topic name: {shadow}") from None
    if not name.persistent:
        raise PreconditionFailed("Only persistent topic can be set as shadow topic")
    if not call.topics.exists(name) and not call.topics.partitions(name):
        raise PreconditionFailed(f"Shadow topic [{shadow}] not exists.")


def remove_shadow_topics(call: HttpRequest) -> HttpResponse:
    """Remove the shadow topics of a topic."""
    return set_topic_policy(call, topic_of(call), SHADOWS.key, None)


_ADMIN: Final = Permission.TENANT_ADMIN

ROUTES = (
    HttpRoute("GET", f"{NAMESPACE}/{REPLICATION.path}", _ADMIN, of_namespace),
    HttpRoute("POST", f"{NAMESPACE}/{REPLICATION.path}", _ADMIN, set_namespace),
    HttpRoute("GET", f"{NAMESPACE}/{ALLOWED.path}", _ADMIN, allowed),
    HttpRoute("POST", f"{NAMESPACE}/{ALLOWED.path}", _ADMIN, set_allowed),
    HttpRoute("GET", f"{TOPIC}/{OF_TOPIC.path}", _ADMIN, of_topic),
    HttpRoute("POST", f"{TOPIC}/{OF_TOPIC.path}", _ADMIN, set_topic),
    HttpRoute("DELETE", f"{TOPIC}/{OF_TOPIC.path}", _ADMIN, remove_topic),
    HttpRoute("GET", f"{TOPIC}/{SHADOWS.path}", _ADMIN, shadow_topics),
    HttpRoute(SHADOWS.verb, f"{TOPIC}/{SHADOWS.path}", _ADMIN, set_shadow_topics),
    HttpRoute("DELETE", f"{TOPIC}/{SHADOWS.path}", _ADMIN, remove_shadow_topics),
)
