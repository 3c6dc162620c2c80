"""The endpoints of Pulsar that return 501: those of later versions, and those that a standalone box cannot serve."""

from typing import Final

from pulsarbox.errors import NotSupported
from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import Handler, HttpRoute, Permission


def refuse(endpoint: Endpoint) -> Handler:
    """Return a handler that explains why the endpoint is not served."""

    def handler(call: HttpRequest) -> HttpResponse:
        raise NotSupported(endpoint.refusal)

    return handler


_GRANTED: Final = {
    "functions": Permission.FUNCTIONS,
    "sources": Permission.SOURCES,
    "sinks": Permission.SINKS,
    "packages": Permission.PACKAGES,
}
"""Permissions for actions that roles can be granted, by the fourth segment of a path."""
_OF_THE_BOX: Final = ("broker-stats", "resource-quotas")
_PARTS_OF_THE_BOX: Final = ("bookieAffinity", "split", "migration")
"""Last path segments of endpoints that concern the box, although their path is below a namespace."""


def permission(endpoint: Endpoint) -> Permission:
    """Return the permission for the refusal: the one that the endpoint would require if it were served."""
    about = endpoint.path.split("/")[3]
    if "{tenant}" not in endpoint.path or about in _OF_THE_BOX or endpoint.path.endswith(_PARTS_OF_THE_BOX):
        return Permission.SUPERUSER
    if endpoint.path.endswith("/replicatedSubscriptionStatus"):
        return Permission.TOPIC_CONSUMER
    return _GRANTED.get(about, Permission.TENANT_ADMIN)


ROUTES = tuple(
    HttpRoute(endpoint.method, endpoint.path, permission(endpoint), refuse(endpoint))
    for endpoint in endpoints()
    if not endpoint.served
)
