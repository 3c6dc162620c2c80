"""Every route with every kind of role grants access as its table states, and the table is complete."""

import json
import re
from pathlib import Path

import pytest

from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http.framework.authorization import permit
from pulsarbox.server.http.framework.request import HttpRequest
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.route_table import all_routes
from tests.unit.broker.playbook import Box
from tests.unit.broker.roles import guarded_box

ROLES = {
    "nobody": None,
    "stranger": "stranger",
    "producer": "producer",
    "consumer": "consumer",
    "functions": "functions",
    "packages": "packages",
    "topic-producer": "topic-producer",
    "topic-consumer": "topic-consumer",
    "other-admin": "other-admin",
    "admin": "admin",
    "viewer": "viewer",
    "superuser": "root",
}

TABLE = """
                        nobody stranger producer consumer functions packages topic-producer topic-consumer other-admin admin viewer superuser
ANYONE                  yes    yes      yes      yes      yes       yes      yes            yes            yes         yes   yes    yes
NAMED                   401    yes      yes      yes      yes       yes      yes            yes            yes         yes   yes    yes
SUPERUSER               401    403      403      403      403       403      403            403            403         403   403    yes
WATCHER                 401    403      403      403      403       403      403            403            403         403   yes    yes
TENANT_ADMIN            401    403      403      403      403       403      403            403            403         yes   403    yes
TENANT                  401    403      403      403      403       403      403            403            403         yes   403    yes
TENANT_ADMIN_OF_TOPICS  401    403      403      403      403       403      403            403            403         yes   403    yes
NAMESPACE_USER          401    403      yes      yes      403       403      403            403            403         yes   403    yes
NAMESPACE_CONSUMER      401    403      403      yes      403       403      403            403            403         yes   403    yes
FUNCTIONS               401    403      403      403      yes       403      403            403            403         yes   403    yes
SOURCES                 401    403      403      403      403       403      403            403            403         yes   403    yes
SINKS                   401    403      403      403      403       403      403            403            403         yes   403    yes
PACKAGES                401    403      403      403      403       yes      403            403            403         yes   403    yes
TOPIC_USER              401    403      yes      yes      403       403      yes            yes            403         yes   403    yes
TOPIC_PRODUCER          401    403      yes      403      403       403      yes            403            403         yes   403    yes
TOPIC_CONSUMER          401    403      403      yes      403       403      403            yes            403         yes   403    yes
JOB                     401    403      403      403      403       403      403            403            403         403   403    yes
"""  # noqa: E501
"""One row per kind of permission, with the response for each role."""

VALUES = {"domain": "persistent", "tenant": "shop", "namespace": "eu", "topic": "orders", "subscription": "s"}


def expected() -> dict[str, dict[str, str]]:
    """Return the expected responses by permission and role."""
    head, *rows = TABLE.strip().splitlines()
    names = head.split()
    assert names == list(ROLES)
    return {row.split()[0]: dict(zip(names, row.split()[1:], strict=True)) for row in rows}


def principal_of(name: str) -> Principal | None:
    """Return the principal with the role of that name."""
    role = ROLES[name]
    return None if role is None else Principal(role, "token")


def call_of(box: Box, route: HttpRoute, principal: Principal | None) -> HttpRequest:
    """Return a request for a route, about the topic that all roles in the table relate to."""
    path = {name: VALUES.get(name, "1") for name in re.findall(r"{(\w+)}", route.path)}
    body = json.dumps([{"topic": "persistent://shop/eu/orders", "role": "r", "actions": ["produce"]}]).encode()
    return HttpRequest(box.broker, box.now, path, {}, body, "", principal=principal)


def outcome(box: Box, route: HttpRoute, principal: Principal | None) -> str:
    """Return ``yes``, or the HTTP status of the rejection."""
    try:
        permit(call_of(box, route, principal), route.permission)
    except PulsarBoxError as error:
        return str(error.http_status)
    return "yes"


def test_the_table_has_every_kind_of_permission() -> None:
    assert set(expected()) == {each.name for each in Permission}


@pytest.mark.parametrize("role", ROLES)
def test_every_route_lets_in_whom_the_table_says(role: str) -> None:
    table, principal = expected(), principal_of(role)
    box, rows = guarded_box(), all_routes().rows
    assert len(rows) > 400
    wrong = [
        f"{row.method} {row.path} ({row.permission.name}): {found}"
        for row in rows
        if (found := outcome(box, row, principal)) != table[row.permission.name][role]
    ]
    assert not wrong


def test_a_route_that_is_not_served_asks_first() -> None:
    rows = {f"{row.method} {row.path}": row.permission.name for row in all_routes().rows}
    assert rows["GET /admin/v3/functions/{tenant}/{namespace}"] == "FUNCTIONS"
    assert rows["GET /admin/v3/sources/{tenant}/{namespace}"] == "SOURCES"
    assert rows["GET /admin/v3/sinks/{tenant}/{namespace}"] == "SINKS"
    assert rows["GET /admin/v3/packages/{type}/{tenant}/{namespace}"] == "PACKAGES"
    assert rows["GET /admin/v2/bookies/all"] == "SUPERUSER"
    assert rows["PUT /admin/v2/namespaces/{tenant}/{namespace}/{bundle}/split"] == "SUPERUSER"
    assert rows["GET /admin/v2/namespaces/{tenant}/{namespace}/offloadPolicies"] == "TENANT_ADMIN"
    assert rows["GET /admin/v2/broker-stats/broker-resource-availability/{tenant}/{namespace}"] == "SUPERUSER"


def test_anyone_may_call_what_probes_and_collectors_need_and_nothing_else() -> None:
    rows = {row.path for row in all_routes().rows if row.permission is Permission.ANYONE}
    assert rows == {
        "/admin/v2/brokers/health",
        "/admin/v2/brokers/ready",
        "/admin/v2/brokers/version",
        "/metrics",
        "/status.html",
    }


def test_with_authorization_off_nobody_is_asked() -> None:
    box = guarded_box(authorizationEnabled=False)
    route = next(row for row in all_routes().rows if row.permission is Permission.SUPERUSER)
    permit(HttpRequest(box.broker, box.now, {}, {}, b"", ""), route.permission)


ASKED = ("nobody", "stranger", "other-admin", "packages", "producer", "consumer", "topic-producer", "topic-consumer",
         "admin")  # fmt: skip
"""Roles in the column order of the data."""

OTHERWISE = {
    ("GET", "/admin/v2/brokers/health"): "probes have no name",
    ("GET", "/admin/v2/brokers/ready"): "probes have no name",
    ("GET", "/admin/v2/brokers/version"): "it is no secret",
}
"""Deviations from Pulsar, and their reasons."""


def test_it_is_as_a_pulsar_was_seen_to_answer() -> None:
    """Compare with Pulsar 4.2.4, queried at each endpoint with each role. Any status but 401 and 403 grants access."""
    box = guarded_box()
    box.broker.permissions.grant("shop/eu", "packages", ["functions", "sources", "sinks", "packages"], box.now)
    served = {(row.method, re.sub(r"{\w+}", "{}", row.path)): row for row in all_routes().rows}
    lines = (Path(__file__).parents[3] / "data" / "pulsar-roles.tsv").read_text("utf-8").splitlines()[1:]
    wrong = []
    for method, path, let_in in (line.split("\t") for line in lines):
        row = served[method, re.sub(r"{\w+}", "{}", path)]
        ours = [name for name in ASKED if outcome(box, row, principal_of(name)) == "yes"]
        if (",".join(ours) or "-") != let_in and (method, path) not in OTHERWISE:
            wrong.append(f"{method} {path}: {ours}, not {let_in}")
    assert len(lines) > 280
    assert not wrong
