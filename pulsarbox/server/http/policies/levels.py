"""All policies of a namespace or a topic, with the level that sets each. Below ``/pulsarbox/v1``.

``{"retention": {"value": ..., "level": "topic" | "namespace" | "broker", "levels": [{"level": ..., "value": ...}],
"meaning": ..., "stored_only": ...}}``; ``levels`` has the value of each level, highest precedence first, and
``stored_only`` the reason why a policy has no effect, empty if it is applied. ``retention`` also has ``unsubscribed``:
the rule for messages that no subscription has covered (see ``box.message_keeping``), ``null`` if disabled.
"""

from typing import Any

from pulsarbox.broker.policies.effective import EffectivePolicy, held
from pulsarbox.errors import NotFound
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol.policies.table import row_of
from pulsarbox.server.http.box.message_keeping import unsubscribed_rule
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import require_namespace
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.policies.copies import without_effect


def of_namespace(call: HttpRequest) -> HttpResponse:
    """Return the policies in effect for the topics of a namespace without policies of their own."""
    namespace = call.namespace()
    call.tenants.policies(namespace)
    return _answer(call, held(call.broker.policies, namespace), parse_topic(f"{namespace}/-"))


def of_topic(call: HttpRequest) -> HttpResponse:
    """Return the policies in effect for a topic; a partition has those of its partitioned topic."""
    name, topics = call.topic(), call.topics
    require_namespace(call, name)
    if not topics.exists(name) and not topics.partitions(name):
        raise NotFound(f"Topic {name} not found")
    return _answer(call, held(call.broker.policies, name.namespace, name), name)


def _answer(call: HttpRequest, found: dict[str, EffectivePolicy], topic: TopicName) -> HttpResponse:
    """``topic`` is one to which these policies apply."""
    told: dict[str, dict[str, Any]] = {}
    for name, each in found.items():
        row = row_of(name.partition(":")[0])
        levels = [said._asdict() for said in each.levels]
        told[name] = levels[0] | {
            "levels": levels,
            "meaning": row.meaning,
            "stored_only": without_effect(call.broker, row),
        }
    broker = call.broker
    told["retention"]["unsubscribed"] = unsubscribed_rule(broker, broker.policies.of(topic))
    return answer(told)


_PATH = "/pulsarbox/v1/policies"

ROUTES = (
    HttpRoute("GET", f"{_PATH}/{{tenant}}/{{namespace}}", Permission.TENANT_ADMIN, of_namespace),
    HttpRoute("GET", f"{_PATH}/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}", Permission.TENANT_ADMIN, of_topic),
)
