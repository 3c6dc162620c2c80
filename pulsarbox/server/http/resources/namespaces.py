"""Namespaces: creation, deletion, policies, and their topics."""

from pulsarbox.errors import AuthorizationError, BadRequest, NotAllowed, NotFound, PreconditionFailed
from pulsarbox.names import check_entity_name
from pulsarbox.server.http.framework.cooperative_work import in_steps
from pulsarbox.server.http.framework.request import (
    DONE,
    DeferredAnswer,
    HttpRequest,
    HttpResponse,
    answer,
    kind_of,
    plain,
)
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.policies.whole import DEFAULTS, parse_policies
from pulsarbox.server.http.resources.topics import listed

MODES = ("PERSISTENT", "NON_PERSISTENT", "ALL")


def namespaces(call: HttpRequest) -> HttpResponse:
    """Return the namespaces of a tenant."""
    tenant = check_entity_name("Tenant", call.path["tenant"])
    if tenant not in call.tenants.all():
        raise NotFound("Tenant not found")
    return answer(call.tenants.namespaces(tenant))


def get(call: HttpRequest) -> HttpResponse:
    """Return the policies of a namespace."""
    return answer(DEFAULTS | call.tenants.policies(call.namespace()))


def create(call: HttpRequest) -> HttpResponse:
    """Create a namespace."""
    call.tenants.create_namespace(call.namespace(), parse_policies(call, call.json_object() or {}))
    return DONE


def delete(call: HttpRequest) -> DeferredAnswer:
    """Delete a namespace; with force, if allowed, including all its topics."""
    namespace = call.namespace()
    force = call.flag("force")
    if force and not call.settings.forceDeleteNamespaceAllowed:
        raise NotAllowed("Broker doesn't allow forced deletion of namespaces")
    if not call.tenants.has_namespace(namespace):
        raise NotFound(f"Namespace {namespace} does not exist.")
    return in_steps(call, call.broker.removal.of_namespace(namespace, force=force), lambda now: DONE)


def topics(call: HttpRequest) -> DeferredAnswer:
    """Return the topics of a namespace, partitions individually."""
    mode = call.query.get("mode", "PERSISTENT")
    if mode not in MODES:
        raise NotFound(f"Unknown mode {mode!r}: expected one of {', '.join(MODES)}")
    return listed(call, mode)


def replication(call: HttpRequest) -> HttpResponse:
    """Return the clusters of a namespace: the only one."""
    return answer(call.tenants.policies(call.namespace())["replication_clusters"])


def allowed_clusters(call: HttpRequest) -> HttpResponse:
    """Return the allowed clusters of a namespace, if set."""
    return answer(call.tenants.policies(call.namespace()).get("allowed_clusters", []))


def set_replication(call: HttpRequest) -> HttpResponse:
    """Set the clusters of a namespace, which can only be this one."""
    return _set_clusters(call, "replication_clusters")


def set_allowed_clusters(call: HttpRequest) -> HttpResponse:
    """Set the allowed clusters of a namespace, which can only be this one."""
    return _set_clusters(call, "allowed_clusters")


def _set_clusters(call: HttpRequest, policy: str) -> HttpResponse:
    clusters = call.json()
    if clusters in (None, []) and policy == "replication_clusters":
        raise PreconditionFailed("ClusterIds should not be null or empty")
    if not isinstance(clusters, list) or not all(isinstance(cluster, str) for cluster in clusters):
        raise BadRequest(f"The body must be a list of cluster names, not {kind_of(clusters)}")
    own = call.settings.clusterName
    strange = sorted(set(clusters) - {own})
    if strange:
        raise AuthorizationError(f"Invalid cluster id: {strange[0]}: the only cluster is this box, '{own}'")
    if not clusters:
        raise BadRequest(f"Allowed clusters do not contain the replication cluster [{own}]")
    call.tenants.set_policy(call.namespace(), policy, [own])
    return plain("")


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"

ROUTES = (
    HttpRoute("GET", "/admin/v2/namespaces/{tenant}", Permission.TENANT_ADMIN, namespaces),
    HttpRoute("GET", _NAMESPACE, Permission.TENANT_ADMIN, get),
    HttpRoute("PUT", _NAMESPACE, Permission.TENANT_ADMIN, create),
    HttpRoute("DELETE", _NAMESPACE, Permission.TENANT_ADMIN, delete),
    HttpRoute("GET", f"{_NAMESPACE}/topics", Permission.NAMESPACE_USER, topics),
    HttpRoute("GET", f"{_NAMESPACE}/replication", Permission.TENANT_ADMIN, replication),
    HttpRoute("POST", f"{_NAMESPACE}/replication", Permission.TENANT_ADMIN, set_replication),
    HttpRoute("GET", f"{_NAMESPACE}/allowedClusters", Permission.TENANT_ADMIN, allowed_clusters),
    HttpRoute("POST", f"{_NAMESPACE}/allowedClusters", Permission.TENANT_ADMIN, set_allowed_clusters),
)
