"""The endpoints of Pulsar that answer 501: those of later versions, and those that one box can never serve."""

from typing import Final

from pulsarbox.errors import NotSupported
from pulsarbox.protocol.admin_endpoints import Endpoint, endpoints
from pulsarbox.server.http.framework.request import Answer, Call
from pulsarbox.server.http.framework.routes import Handler, Permission, Route


def refuse(endpoint: Endpoint) -> Handler:
    """A handler that says why the endpoint is not served."""

    def handler(call: Call) -> Answer:
        raise NotSupported(endpoint.refusal)

    return handler


_GRANTED: Final = {
    "functions": Permission.FUNCTIONS,
    "sources": Permission.SOURCES,
    "sinks": Permission.SINKS,
    "packages": Permission.PACKAGES,
}
"""Actions that roles can be granted, by what an endpoint is about: the fourth word of its path."""
_OF_THE_BOX: Final = ("broker-stats", "resource-quotas")
_PARTS_OF_THE_BOX: Final = ("bookieAffinity", "split", "migration")
"""What is about the box, though it stands below a namespace; the last word of a path."""


def permission(endpoint: Endpoint) -> Permission:
    """Who may be told that it is not served: those who might use it were it there."""
    about = endpoint.path.split("/")[3]
    if "{tenant}" not in endpoint.path or about in _OF_THE_BOX or endpoint.path.endswith(_PARTS_OF_THE_BOX):
        return Permission.SUPERUSER
    if endpoint.path.endswith("/replicatedSubscriptionStatus"):
        return Permission.TOPIC_CONSUMER
    return _GRANTED.get(about, Permission.TENANT_ADMIN)


ROUTES = tuple(
    Route(endpoint.method, endpoint.path, permission(endpoint), refuse(endpoint))
    for endpoint in endpoints()
    if not endpoint.served
)
