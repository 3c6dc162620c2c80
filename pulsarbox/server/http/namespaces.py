"""Namespaces: creating, deleting, showing, and the topics in one."""

from typing import Any

from pulsarbox.errors import AuthorizationError, BadRequest, NotAllowed, NotFound, NotSupported
from pulsarbox.names import check_entity_name
from pulsarbox.server.http.call import DONE, Answer, Call, Later, answer, kind_of, texts
from pulsarbox.server.http.routes import Permission, Route
from pulsarbox.server.http.topics import listed

MODES = ("PERSISTENT", "NON_PERSISTENT", "ALL")

DEFAULTS: dict[str, Any] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "replication_clusters": [],
    "allowed_clusters": [],
    "bundles": {},
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "is_allow_auto_update_schema": True,
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}
"""The policies of a namespace for which nobody has set any."""

KEPT = ("auth_policies", "replication_clusters", "allowed_clusters", "bundles", "properties")
"""What a new namespace may bring. Every other policy must have its default, or nothing, as its value."""

OTHERS = (
    "persistence",
    "retention_policies",
    "message_ttl_in_seconds",
    "subscription_expiration_time_minutes",
    "deduplicationEnabled",
    "deduplicationSnapshotIntervalSeconds",
    "autoTopicCreationOverride",
    "autoSubscriptionCreationOverride",
    "delayed_delivery_policies",
    "inactive_topic_policies",
    "max_producers_per_topic",
    "max_consumers_per_topic",
    "max_consumers_per_subscription",
    "max_unacked_messages_per_consumer",
    "max_unacked_messages_per_subscription",
    "max_subscriptions_per_topic",
    "max_topics_per_namespace",
    "compaction_threshold",
    "offload_policies",
    "offload_deletion_lag_ms",
    "resource_group_name",
    "entryFilters",
    "allowed_topic_property_keys_for_metrics",
    "dispatcherPauseOnAckStatePersistentEnabled",
)
"""Policies that are absent until they are set."""


def namespaces(call: Call) -> Answer:
    """The namespaces of a tenant."""
    tenant = check_entity_name("Tenant", call.path["tenant"])
    if tenant not in call.broker.tenants.all():
        raise NotFound("Tenant not found")
    return answer(call.broker.tenants.namespaces(tenant))


def get(call: Call) -> Answer:
    """The policies of a namespace."""
    return answer(DEFAULTS | call.broker.tenants.policies(call.namespace()))


def create(call: Call) -> Answer:
    """Create a namespace."""
    namespace = call.namespace()
    policies = call.json_object() or {}
    for name in (*DEFAULTS, *OTHERS):
        if name not in KEPT and policies.get(name) and policies[name] != DEFAULTS.get(name):
            raise NotSupported(f"This version does not apply the policy {name}: create the namespace without it")
    kept = {name: policies[name] for name in KEPT if policies.get(name) is not None}
    _check_clusters(call, kept)
    if "properties" in kept:
        kept["properties"] = texts(kept["properties"], "properties")
    if not isinstance(kept.get("auth_policies", {}), dict):
        raise BadRequest(f"auth_policies must be an object, not {kind_of(kept['auth_policies'])}")
    call.broker.tenants.create_namespace(namespace, kept)
    return DONE


def _check_clusters(call: Call, policies: dict[str, Any]) -> None:
    own = call.broker.core.settings.clusterName
    for name in ("replication_clusters", "allowed_clusters"):
        clusters = policies.get(name, [])
        if not isinstance(clusters, list) or not all(isinstance(cluster, str) for cluster in clusters):
            raise BadRequest(f"{name} must be a list of names")
        strange = sorted(set(clusters) - {own})
        if strange:
            raise AuthorizationError(
                f"Cluster [{strange[0]}] is not in the list of allowed clusters list for tenant"
                f" [{call.path['tenant']}]: this box is '{own}'"
            )
        if not clusters:
            policies.pop(name, None)


def delete(call: Call) -> Answer:
    """Delete a namespace; by force, where that is allowed, with all its topics."""
    namespace = call.namespace()
    force = call.flag("force")
    if force and not call.broker.core.settings.forceDeleteNamespaceAllowed:
        raise NotAllowed("Broker doesn't allow forced deletion of namespaces")
    if not call.broker.tenants.has_namespace(namespace):
        raise NotFound(f"Namespace {namespace} does not exist.")
    call.broker.topics.delete_namespace(namespace, call.now, force=force)
    return DONE


def topics(call: Call) -> Later:
    """The topics of a namespace, partitions one by one."""
    mode = call.query.get("mode", "PERSISTENT")
    if mode not in MODES:
        raise NotFound(f"There is no mode {mode!r}: it must be one of {', '.join(MODES)}")
    return listed(call, mode)


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"

ROUTES = (
    Route("GET", "/admin/v2/namespaces/{tenant}", Permission.TENANT_ADMIN, namespaces),
    Route("GET", _NAMESPACE, Permission.TENANT_ADMIN, get),
    Route("PUT", _NAMESPACE, Permission.TENANT_ADMIN, create),
    Route("DELETE", _NAMESPACE, Permission.TENANT_ADMIN, delete),
    Route("GET", f"{_NAMESPACE}/topics", Permission.NAMESPACE_USER, topics),
)
