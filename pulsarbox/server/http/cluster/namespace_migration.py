"""The migration flag of a namespace: whether its clients are redirected to another cluster."""

from pulsarbox.errors import BadRequest, NamespaceNotFound, NotSupported
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def migrate(call: HttpRequest) -> HttpResponse:
    """Accept only false, the state of every namespace: a box cannot redirect clients."""
    migrated = call.json()
    if not isinstance(migrated, bool):
        raise BadRequest("The body must be true or false")
    if not call.tenants.has_namespace(call.namespace()):
        raise NamespaceNotFound("Namespace not found")
    if migrated:
        raise NotSupported("enableMigration is not supported: a box cannot redirect the clients of a namespace")
    return DONE


ROUTES = (HttpRoute("POST", "/admin/v2/namespaces/{tenant}/{namespace}/migration", Permission.SUPERUSER, migrate),)
