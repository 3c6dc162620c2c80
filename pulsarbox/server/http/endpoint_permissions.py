"""The permission of each endpoint of Pulsar that has no room of its own: unsupported ones, and reads of functions."""

from typing import Final

from pulsarbox.server.http.admin_endpoints import Endpoint
from pulsarbox.server.http.framework.routes import Permission

_GRANTED: Final = {
    "functions": Permission.FUNCTIONS,
    "source": Permission.SOURCES,
    "sources": Permission.SOURCES,
    "sink": Permission.SINKS,
    "sinks": Permission.SINKS,
    "packages": Permission.PACKAGES,
}
"""Permissions for actions that roles can be granted, by the fourth segment of a path."""
_OF_THE_BOX: Final = ("broker-stats", "resource-quotas")
_PARTS_OF_THE_BOX: Final = ("bookieAffinity", "split", "migration")
"""Last path segments of endpoints that concern the box, although their path is below a namespace."""


def permission(endpoint: Endpoint) -> Permission:
    """Return the permission that Pulsar requires for an endpoint."""
    about = endpoint.path.split("/")[3]
    if "{tenant}" not in endpoint.path or about in _OF_THE_BOX or endpoint.path.endswith(_PARTS_OF_THE_BOX):
        return Permission.SUPERUSER
    if endpoint.path.endswith("/replicatedSubscriptionStatus"):
        return Permission.TOPIC_CONSUMER
    return _GRANTED.get(about, Permission.TENANT_ADMIN)
