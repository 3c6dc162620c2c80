"""A box with authorization on, and two tenants whose topics some roles may do something with."""

from typing import Any

from pulsarbox.broker.cnx import ConnectionState
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
"""In the namespace shop/eu."""
ON_TOPIC = {"topic-producer": ["produce"], "topic-consumer": ["consume"]}


def guarded_box(**settings: Any) -> Box:
    """Tenant ``shop`` of ``admin``, tenant ``other`` of ``other-admin``; ``root`` a superuser, ``viewer`` looks on."""
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
    """A client that has proved to be this role; None: that has proved nothing, and is here all the same."""
    client = box.client(connect=False)
    client.cnx.state = ConnectionState.CONNECTED
    client.cnx.protocol_version = 21
    client.cnx.principal = None if role is None else Principal(role, "token", original=original)
    return client
