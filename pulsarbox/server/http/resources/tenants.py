"""Tenants: creation, update, deletion, and information."""

from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, NotFound, PulsarBoxError
from pulsarbox.server.http.framework.cooperative_work import in_steps
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def tenants(call: HttpRequest) -> HttpResponse:
    """Return the names of all tenants."""
    return answer(call.tenants.all())


def get(call: HttpRequest) -> HttpResponse:
    """Return a tenant's admins and clusters."""
    return answer(call.tenants.get(call.path["tenant"]))


def create(call: HttpRequest) -> HttpResponse:
    """Create a tenant."""
    call.tenants.create(call.path["tenant"], call.json_object())
    return DONE


def update(call: HttpRequest) -> HttpResponse:
    """Replace a tenant's admins and clusters."""
    call.tenants.update(call.path["tenant"], call.json_object())
    return DONE


def delete(call: HttpRequest) -> DeferredAnswer:
    """Delete a tenant; with force, if allowed, including all its namespaces."""
    tenant, tenants = call.path["tenant"], call.tenants
    force = call.flag("force")
    if force and not call.settings.forceDeleteTenantAllowed:
        raise NotAllowed("Broker doesn't allow forced deletion of tenants")
    try:
        tenants.get(tenant)
    except PulsarBoxError:
        raise NotFound("Tenant doesn't exist") from None
    removal, namespaces = call.broker.removal, tenants.namespaces(tenant) if force else []
    steps = (step for namespace in namespaces for step in removal.of_namespace(namespace, force=True))

    def finish(now: Now) -> HttpResponse:
        tenants.delete(tenant)
        return DONE

    return in_steps(call, steps, finish)


ROUTES = (
    HttpRoute("GET", "/admin/v2/tenants", Permission.SUPERUSER, tenants),
    HttpRoute("GET", "/admin/v2/tenants/{tenant}", Permission.TENANT, get),
    HttpRoute("PUT", "/admin/v2/tenants/{tenant}", Permission.TENANT, create),
    HttpRoute("POST", "/admin/v2/tenants/{tenant}", Permission.TENANT, update),
    HttpRoute("DELETE", "/admin/v2/tenants/{tenant}", Permission.TENANT, delete),
)
