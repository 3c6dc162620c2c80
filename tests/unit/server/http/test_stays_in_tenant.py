"""No request of a role without superuser rights changes anything outside its tenant."""

import json
import re
from typing import Any

import pytest

from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.server.http.framework.authorization import permit
from pulsarbox.server.http.framework.request import HttpRequest
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.route_table import ROOMS
from tests.unit.broker.playbook import Box
from tests.unit.broker.roles import client_of, guarded_box

CHANGING = [row for room in ROOMS for row in room.ROUTES if row.method != "GET"]
ROLES = ("admin", "producer", "consumer", "topic-producer", "topic-consumer", "stranger")
ORDERS = parse_topic("persistent://shop/eu/orders")
OTHER_TENANTS = ("other", "pulsar", "nowhere", "", "..", "shop/eu")
OTHERS = "persistent://other/eu/orders"
BODIES: tuple[Any, ...] = (
    None,
    [{"topic": OTHERS, "role": "admin", "actions": ["produce"]}],
    [{"topic": "persistent://shop/eu/orders", "role": "x", "actions": ["produce"]}, {"topic": OTHERS, "role": "x"}],
    {"maxRedeliverCount": 1, "deadLetterTopic": OTHERS},
    {"maxRedeliverCount": 1, "deadLetterTopic": "persistent://other/eu/new", "initialSubscriptionName": ""},
    {"adminRoles": ["admin", "other-admin"], "allowedClusters": ["standalone"]},
    2,
    True,
)
"""Request bodies that refer to the other tenant, and valid policy values."""


def box_with_topics() -> Box:
    """Build a box where each tenant has the same topic, with a message and the same subscription."""
    box = guarded_box()
    root = client_of(box, "root")
    for i, tenant in enumerate(("shop", "other")):
        topic = f"persistent://{tenant}/eu/orders"
        root.subscribe(topic=topic, consumer_id=i)
        root.publish(1, topic=topic)
    root.cnx.closed(box.now)
    box.turn()
    return box


def outside(box: Box) -> dict[str, bytes]:
    """Return all catalog rows outside tenant ``shop``. Rows of a topic are identified by their IDs."""
    rows = dict(box.broker.catalog.items(""))
    others = {key.partition("/")[2] for key, row in rows.items() if key.startswith("owner/") and b"//other/" in row}

    def is_outside(key: str) -> bool:
        ids = [part for part in key.split("/") if re.fullmatch("[0-9a-f]{16}", part)][-1:]
        return others.issuperset(ids) if ids else "shop" not in key and key not in ("ids", "kept")

    return {key: row for key, row in rows.items() if is_outside(key)}


def ask(box: Box, route: HttpRoute, role: str, tenant: str, body: Any) -> bool:
    """Send a request as the server does. Return whether access was granted."""
    values = {"tenant": tenant, "namespace": "eu", "topic": "orders", "subscription": "s", "domain": "persistent"}
    path = {name: values.get(name, "1") for name in re.findall(r"{(\w+)}", route.path)}
    sent, who = json.dumps(body).encode(), Principal(role, "token")
    call = HttpRequest(box.broker, box.now, path, {"force": "true"}, sent, "", principal=who)
    try:
        permit(call, route.permission)
    except PulsarBoxError:
        return False
    try:
        route.handler(call)
    except PulsarBoxError:
        pass
    box.turn()
    return True


def is_whole(box: Box) -> bool:
    """Return whether tenant ``shop`` still has its topic and subscription."""
    topic = box.broker.topics.find(ORDERS, box.now)
    return topic is not None and any(each.name == "s" for each in topic.all_subscriptions())


@pytest.mark.parametrize("role", ROLES)
def test_nothing_outside_its_tenant_is_changed_by_a_role(role: str) -> None:
    box = box_with_topics()
    before = outside(box)
    assert {key.partition("/")[0] for key in before} >= {"tenant", "namespace", "topic", "ledger", "cursor"}
    let_in = 0
    for route in CHANGING:
        if "{tenant}" in route.path:
            passed = [each for each in OTHER_TENANTS if ask(box, route, role, each, None)]
            assert passed == [], route
        for body in BODIES:
            was_let_in = ask(box, route, role, "shop", body)
            # A POST query is open to any authenticated role: each name in its body is authorized separately.
            let_in += was_let_in and route.permission is not Permission.NAMED
        after = outside(box)
        assert [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)] == [], route
        if not is_whole(box):
            box = box_with_topics()
            before = outside(box)
    assert (let_in > 0) is (role != "stranger")
