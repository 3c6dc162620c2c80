"""Tenants."""

from pulsarbox.errors import NotAllowed, NotFound, PulsarBoxError
from pulsarbox.server.http.call import DONE, Answer, Call, answer
from pulsarbox.server.http.routes import Permission, Route


def tenants(call: Call) -> Answer:
    """The names of all tenants."""
    return answer(call.broker.tenants.all())


def get(call: Call) -> Answer:
    """A tenant's admins and clusters."""
    return answer(call.broker.tenants.get(call.path["tenant"]))


def create(call: Call) -> Answer:
    """Create a tenant."""
    call.broker.tenants.create(call.path["tenant"], call.json_object())
    return DONE


def update(call: Call) -> Answer:
    """Replace a tenant's admins and clusters."""
    call.broker.tenants.update(call.path["tenant"], call.json_object())
    return DONE


def delete(call: Call) -> Answer:
    """Delete a tenant; by force, where that is allowed, with everything in it."""
    tenant, tenants = call.path["tenant"], call.broker.tenants
    force = call.flag("force")
    if force and not call.broker.core.settings.forceDeleteTenantAllowed:
        raise NotAllowed("Broker doesn't allow forced deletion of tenants")
    try:
        tenants.get(tenant)
    except PulsarBoxError:
        raise NotFound("Tenant doesn't exist") from None
    if force:
        for namespace in tenants.namespaces(tenant):
            call.broker.topics.delete_namespace(namespace, call.now, force=True)
    tenants.delete(tenant)
    return DONE


ROUTES = (
    Route("GET", "/admin/v2/tenants", Permission.SUPERUSER, tenants),
    Route("GET", "/admin/v2/tenants/{tenant}", Permission.TENANT_ADMIN, get),
    Route("PUT", "/admin/v2/tenants/{tenant}", Permission.TENANT_ADMIN, create),
    Route("POST", "/admin/v2/tenants/{tenant}", Permission.TENANT_ADMIN, update),
    Route("DELETE", "/admin/v2/tenants/{tenant}", Permission.TENANT_ADMIN, delete),
)
