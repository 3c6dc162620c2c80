"""A box with authorization, and two tenants whose topics grant permissions to several roles."""

from typing import Any

from pulsarbox.broker.connection.cnx import ConnectionState
from pulsarbox.broker.security.principal import Principal
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.security.signing import GUARDED

TOPIC = "persistent://shop/eu/orders"
GRANTED = {
    "producer": ["produce"],
    "consumer": ["consume"],
    "functions": ["functions"],
    "packages": ["packages"],
}
"""Topic in namespace shop/eu."""
ON_TOPIC = {"topic-producer": ["produce"], "topic-consumer": ["consume"]}


def guarded_box(**settings: Any) -> Box:
    """Build a box with two tenants.

    Tenant ``shop`` has the admin ``admin``, and ``other`` has ``other-admin``. ``root`` is a superuser, and ``viewer``
    may only read.
    """
    box = Box(**GUARDED | {"authorizationEnabled": True, "superUserRoles": "root", "viewerRoles": "viewer"} | settings)
    broker = box.broker
    for tenant, admin in (("shop", "admin"), ("other", "other-admin")):
        broker.tenants.create(tenant, {"adminRoles": [admin], "allowedClusters": ["standalone"]})
        broker.tenants.create_namespace(f"{tenant}/eu", None)
    for role, actions in GRANTED.items():
        broker.permissions.grant("shop/eu", role, actions, box.now)
    for role, actions in ON_TOPIC.items():
        broker.permissions.grant_topic(parse_topic(TOPIC), role, actions, box.now)
    box.turn()
    return box


def client_of(box: Box, role: str | None, *, original: str = "") -> Client:
    """Connect a client authenticated as this role; with None, the client is connected without authentication."""
    client = box.client(connect=False)
    client.cnx.state = ConnectionState.CONNECTED
    client.cnx.protocol_version = 21
    client.cnx.principal = None if role is None else Principal(role, "token", original=original)
    return client
