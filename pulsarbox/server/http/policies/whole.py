"""All policies of a namespace as one object: for display, and at the creation of a namespace."""

from typing import Any, Final

from pulsarbox.broker.security.permissions import EMPTY, checked
from pulsarbox.errors import AuthorizationError, BadRequest, NotSupported, PreconditionFailed
from pulsarbox.protocol.policies.checks import check, fits, quota_map, retention_of
from pulsarbox.protocol.policies.policy_values import QUOTA, QUOTA_SIZE
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, RESOURCE_GROUP_NAME, ROWS
from pulsarbox.server.http.framework.request import HttpRequest, kind_of, texts

DEFAULTS: Final[dict[str, Any]] = {
    "auth_policies": EMPTY,
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
"""The policies of a namespace without any set."""

KEPT: Final = ("auth_policies", "replication_clusters", "allowed_clusters", "bundles", "properties")
"""Members that are not in the policy table."""

UNKNOWN: Final = (
    "clusterDispatchRate",
    "replicatorDispatchRate",
    "latency_stats_sample_rate",
    "deleted",
    "migrated",
    "offload_threshold",
    "offload_threshold_in_seconds",
    "offload_deletion_lag_ms",
    "offload_policies",
    "entryFilters",
)
"""Members that this box does not apply: a new namespace may only have their default, or omit them."""

_BY_KEY: Final[dict[str, tuple[PolicyRow, PolicyEndpoint]]] = {
    row.namespace.key: (row, row.namespace) for row in ROWS if row.namespace is not None
}


def parse_policies(call: HttpRequest, policies: dict[str, Any]) -> dict[str, Any]:
    """Return the policies for a new namespace; unknown members are ignored, as in Pulsar.

    Raises BadRequest, PreconditionFailed; NotSupported for policies that a box does not apply.
    """
    for name in UNKNOWN:
        if policies.get(name) and policies[name] != DEFAULTS.get(name):
            raise NotSupported(f"This version does not apply the policy {name}: create the namespace without it")
    kept = {name: policies[name] for name in KEPT if policies.get(name) is not None}
    _check_clusters(call, kept)
    if "properties" in kept:
        kept["properties"] = texts(kept["properties"], "properties")
    if "auth_policies" in kept:
        kept["auth_policies"] = checked(kept["auth_policies"])
    for name, (row, place) in _BY_KEY.items():
        # Clients that send every member, such as Go's, have empty strings for unset enumerations.
        if policies.get(name) not in (None, "", DEFAULTS.get(name)):
            kept[name] = _read(row, place, policies[name])
    _add_quotas(kept, policies.get(BACKLOG_QUOTA.places[-1].key))
    _add_group(kept, policies.get(RESOURCE_GROUP_NAME.places[-1].key))
    return kept


def _read(row: PolicyRow, place: PolicyEndpoint, value: Any) -> Any:
    if place.by_cluster:
        if not isinstance(value, dict):
            raise BadRequest(f"{place.key} must be an object with a member for each cluster, not {kind_of(value)}")
        return {cluster: row.shape.read(each, f"{place.key} of {cluster}") for cluster, each in value.items()}
    read = row.shape.read(value, place.key)
    check(row, place, read)
    return read


def _add_quotas(kept: dict[str, Any], quotas: Any) -> None:
    if not quotas:
        return
    if not isinstance(quotas, dict):
        raise BadRequest(f"backlog_quota_map must be an object, not {kind_of(quotas)}")
    found = quota_map({kind: QUOTA.read(each, f"the quota {kind}") for kind, each in quotas.items()})
    if not fits(found.get(QUOTA_SIZE), retention_of(kept)):
        raise PreconditionFailed(
            "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota and retry"
        )
    kept["backlog_quota_map"] = found


def _add_group(kept: dict[str, Any], group: Any) -> None:
    if group is None:
        return
    if not isinstance(group, str):
        raise BadRequest(f"resource_group_name must be a string, not {kind_of(group)}")
    kept["resource_group_name"] = group


def _check_clusters(call: HttpRequest, policies: dict[str, Any]) -> None:
    own = call.settings.clusterName
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
