"""Namespaces: creation, deletion, policies, and their topics."""

from pulsarbox.errors import NotAllowed, NotFound, PreconditionFailed
from pulsarbox.names import check_entity_name
from pulsarbox.server.http.framework.cooperative_work import in_steps
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.policies import whole
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
    return answer(whole.shown(call.tenants.policies(call.namespace())))


def create(call: HttpRequest) -> HttpResponse:
    """Create a namespace."""
    policies = whole.parse_policies(call, call.json_object() or {})
    call.tenants.create_namespace(call.namespace(), policies)
    return whole.created(call, policies)


def delete(call: HttpRequest) -> DeferredAnswer:
    """Delete a namespace; with force, if allowed, including all its topics."""
    namespace = call.namespace()
    force = call.flag("force")
    if force and not call.settings.forceDeleteNamespaceAllowed:
        raise NotAllowed("Broker doesn't allow forced deletion of namespaces")
    if not call.tenants.has_namespace(namespace):
        raise NotFound(f"Namespace {namespace} does not exist.")
    _check_replicates_nowhere(call, namespace)
    return in_steps(call, call.broker.removal.of_namespace(namespace, force=force), lambda now: DONE)


def _check_replicates_nowhere(call: HttpRequest, namespace: str) -> None:
    """Raise PreconditionFailed for a namespace of several clusters, as in Pulsar."""
    policies = call.tenants.policies(namespace)
    if len(policies["replication_clusters"]) > 1 or len(policies.get("allowed_clusters", ())) > 1:
        raise PreconditionFailed(
            f"Cannot delete the global namespace {namespace}. There are still more than one replication clusters"
            " configured or replication clusters is empty."
        )


def topics(call: HttpRequest) -> DeferredAnswer:
    """Return the topics of a namespace, partitions individually."""
    mode = call.query.get("mode", "PERSISTENT")
    if mode not in MODES:
        raise NotFound(f"Unknown mode {mode!r}: expected one of {', '.join(MODES)}")
    return listed(call, mode)


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"

ROUTES = (
    HttpRoute("GET", "/admin/v2/namespaces/{tenant}", Permission.TENANT_ADMIN, namespaces),
    HttpRoute("GET", _NAMESPACE, Permission.TENANT_ADMIN, get),
    HttpRoute("PUT", _NAMESPACE, Permission.TENANT_ADMIN, create),
    HttpRoute("DELETE", _NAMESPACE, Permission.TENANT_ADMIN, delete),
    HttpRoute("GET", f"{_NAMESPACE}/topics", Permission.NAMESPACE_USER, topics),
)
