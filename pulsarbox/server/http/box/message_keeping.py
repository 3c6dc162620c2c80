"""The rule by which newly published messages of a topic are retained, whether or not the topic exists.

Below ``/pulsarbox/v1``. ``{"keptBy": "subscription" | "retention" | "unsubscribed-retention" | "nothing",
"unsubscribed": ...}``, the latter ``null`` if the topic's policies disable unsubscribed retention.
"""

import json
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.policies.kinds.retention import RETENTION, UNLIMITED
from pulsarbox.broker.policies.kinds.unsubscribed_retention import OFF, UNSUBSCRIBED_TIME
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.names import COMPACTION_SUBSCRIPTION, TopicName
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import require_namespace
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.catalog import cursor_key, topic_key

PARTITIONS_LOOKED_AT: Final = 100
"""Maximum partitions to check: a client that subscribes to a partitioned topic subscribes to each partition."""


def unsubscribed_rule(broker: Broker, policies: TopicPolicies) -> dict[str, Any] | None:
    """Return the limits and total usage of unsubscribed retention; None if it is disabled for the topic."""
    time_ms, index = policies.get(UNSUBSCRIBED_TIME), broker.unsubscribed
    if time_ms == OFF:
        return None
    return {
        "timeInMinutes": time_ms // 60_000 if time_ms != UNLIMITED else -1,
        "size": broker.settings.unsubscribedRetentionSize,
        "limit": index.limit,
        "used": index.bytes,
    }


def _is_subscribed(broker: Broker, name: TopicName) -> bool:
    """Return whether a topic has a durable subscription, without loading it."""
    row = broker.catalog.get(topic_key(str(name)))
    cursors = broker.catalog.items(cursor_key(row["id"])) if row is not None else ()
    return any(json.loads(value)["name"] != COMPACTION_SUBSCRIPTION for _, value in cursors)


def kept(call: HttpRequest) -> HttpResponse:
    """Return the rule in the form of the module's docstring."""
    name, broker = call.topic(), call.broker
    require_namespace(call, name)
    policies = broker.policies.of(name)
    rule = unsubscribed_rule(broker, policies) if name.persistent else None
    count = min(call.topics.partitions(name), PARTITIONS_LOOKED_AT)
    parts = [name.partition(number) for number in range(count)] or [name]
    if not name.persistent:
        by = "nothing"
    elif all(_is_subscribed(broker, part) for part in parts):
        by = "subscription"
    elif policies.get(RETENTION).keeps:
        by = "retention"
    else:
        by = "nothing" if rule is None else "unsubscribed-retention"
    return answer({"keptBy": by, "unsubscribed": rule})


ROUTES = (HttpRoute("GET", "/pulsarbox/v1/kept/{domain}/{tenant}/{namespace}/{topic}", Permission.TOPIC_USER, kept),)
