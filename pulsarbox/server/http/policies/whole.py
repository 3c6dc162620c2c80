"""All policies of a namespace as one object: for display, and at the creation of a namespace."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulsarbox.broker.security.permissions import EMPTY, checked
from pulsarbox.errors import BadRequest, NotSupported, PreconditionFailed
from pulsarbox.protocol.policies.checks import check, fits, quota_map, retention_of
from pulsarbox.protocol.policies.policy_values import COUNT, DISPATCH_RATE, LONG, QUOTA, QUOTA_SIZE
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.shapes import LIST_MAX, ValueShape
from pulsarbox.protocol.policies.stored_rows import (
    ALLOWED_CLUSTERS,
    ENTRY_FILTERS,
    LEGACY_OFFLOAD,
    OFFLOAD_POLICIES,
    REPLICATION_CLUSTERS,
)
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, RESOURCE_GROUP_NAME, ROWS
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, kind_of, texts
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.server.http.policies.clusters import check_tenant, listed, stored
from pulsarbox.server.http.policies.values import changed
from pulsarbox.storage.catalog import Row

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

KEPT: Final = ("auth_policies", "bundles", "properties")
"""Members that are not in the policy table."""

_OBSOLETE: Final[Mapping[str, ValueShape]] = {"clusterDispatchRate": DISPATCH_RATE, "latency_stats_sample_rate": COUNT}
"""Members by cluster that Pulsar stores but no longer uses, with the shape of a value."""
_NO_USE: Final = "Pulsar no longer uses this policy either"

UNKNOWN: Final = ("deleted", "migrated")
"""States of a namespace that clients must not set."""

_UNCHECKED: Final = (OFFLOAD_POLICIES, ENTRY_FILTERS)
"""Policies whose values Pulsar checks when they are changed, but not at a creation."""

_BY_KEY: Final[dict[str, tuple[PolicyRow, PolicyEndpoint]]] = {
    row.namespace.key: (row, row.namespace) for row in ROWS if row.namespace is not None and not row.namespace.local
}
_CLUSTERS: Final = (REPLICATION_CLUSTERS, ALLOWED_CLUSTERS)
_LOCAL: Final = frozenset(row.namespace.key for row in ROWS if row.namespace is not None and row.namespace.local)


def shown(policies: Row) -> Row:
    """Return the policies of a namespace as Pulsar shows them."""
    return DEFAULTS | {name: value for name, value in policies.items() if name not in _LOCAL}


def parse_policies(call: HttpRequest, policies: dict[str, Any]) -> dict[str, Any]:
    """Return the policies for a new namespace; unknown members are ignored, as in Pulsar.

    Raises BadRequest, PreconditionFailed; NotSupported for policies that a box does not apply.
    """
    for name in UNKNOWN:
        if policies.get(name) and policies[name] != DEFAULTS.get(name):
            raise NotSupported(f"{name} is not a policy to create a namespace with: omit it")
    kept = {name: policies[name] for name in KEPT if policies.get(name) is not None}
    kept |= _clusters(call, policies) | dict(_legacy(policies)) | dict(_obsolete(policies))
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
        return _read_by_cluster(row.shape, place.key, value)
    read = row.shape.read(value, place.key)
    if row not in _UNCHECKED:
        check(row, place, read)
    return read


def _read_by_cluster(shape: ValueShape, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRequest(f"{key} must be an object with a member for each cluster, not {kind_of(value)}")
    if len(value) > LIST_MAX:
        raise BadRequest(f"{key} must have at most {LIST_MAX} members, not {len(value)}")
    return {cluster: shape.read(each, f"{key} of {cluster}") for cluster, each in value.items() if each is not None}


def _obsolete(policies: Row) -> Iterator[tuple[str, Any]]:
    for name, shape in _OBSOLETE.items():
        if policies.get(name):
            yield name, _read_by_cluster(shape, name, policies[name])


def _legacy(policies: Row) -> Iterator[tuple[str, int]]:
    for name, unset in LEGACY_OFFLOAD.unset.items():
        if policies.get(name, unset) not in (None, unset):
            yield name, LONG.read(policies[name], name)


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


def _clusters(call: HttpRequest, policies: Row) -> dict[str, list[str]]:
    """Return the clusters of a new namespace. Without any to replicate to, it has the box's own, which it allows."""
    found = dict(_listed_clusters(policies))
    replicated, allowed = found.get("replication_clusters", []), found.get("allowed_clusters", [])
    if allowed and not set(replicated) <= set(allowed):
        raise BadRequest(
            f"[{call.namespace()}] All replication clusters should be included in allowed clusters. Repl clusters:"
            f" {listed(replicated)}, allowed clusters: {listed(allowed)}"
        )
    own = call.broker.clusters.own
    if allowed:
        allowed = found["allowed_clusters"] = sorted({*allowed, own})
    check_tenant(call, {*(replicated or [own]), *allowed})
    return {name: clusters for name, clusters in found.items() if clusters}


def _listed_clusters(policies: Row) -> Iterator[tuple[str, list[str]]]:
    for row in _CLUSTERS:
        assert row.namespace is not None
        key = row.namespace.key
        if policies.get(key) is not None:
            yield key, row.shape.read(policies[key], key)


def created(call: HttpRequest, policies: Row) -> HttpResponse:
    """Answer a creation, with a warning for each policy that has no effect."""
    done = DONE
    for key in sorted(policies):
        row = _BY_KEY[key][0] if key in _BY_KEY else None
        if key in LEGACY_OFFLOAD.members:
            row = OFFLOAD_POLICIES
        if row is not None:
            done = changed(call, row, policies[key], done)
        elif key in _OBSOLETE:
            done = stored_only(key, _NO_USE, done)
    for row in _CLUSTERS:
        assert row.namespace is not None
        done = stored(call, row, policies.get(row.namespace.key, ()), done)
    return done
