"""Partitioned topics, of both domains."""

from functools import partial
from typing import Any

from pulsarbox.errors import BadRequest, NotFound
from pulsarbox.names import TopicName
from pulsarbox.server.http.framework.cooperative_work import in_steps
from pulsarbox.server.http.framework.request import (
    DONE,
    DeferredAnswer,
    HttpRequest,
    HttpResponse,
    answer,
    kind_of,
    texts,
)
from pulsarbox.server.http.framework.resource_lookup import check_is_users
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def partitioned_topics(call: HttpRequest) -> HttpResponse:
    """Return the partitioned topics of a namespace, without their partitions."""
    return answer(call.topics.partitioned_names(call.namespace(), call.path["domain"]))


def get(call: HttpRequest) -> HttpResponse:
    """Return the number of partitions of a topic: 0 if it is not partitioned.

    With ``checkAllowAutoCreation``, which clients send before they connect, a missing topic that may be auto-created
    counts as existing, and a partitioned one is created.
    """
    topic, topics = call.topic(), call.topics
    if not call.tenants.has_namespace(topic.namespace):
        raise NotFound("Namespace not found")
    allowed = call.flag("checkAllowAutoCreation") and call.topics.auto_created(call.topic()).allowed
    metadata: dict[str, Any] = {"partitions": topics.metadata(topic, call.now, create=allowed), "deleted": False}
    properties = topics.partitioned_properties(topic)
    if properties:
        metadata["properties"] = properties
    return answer(metadata)


def create(call: HttpRequest) -> DeferredAnswer:
    """Create a partitioned topic."""
    topic, body = call.topic(), call.json()
    check_is_users(topic)
    if not call.body:
        raise BadRequest("The body must be the number of partitions, not empty")
    properties = {}
    if isinstance(body, dict):
        properties = texts(body.get("properties"), "Properties of a topic")
        body = body.get("partitions")
    count = 0 if body is None else _count(body)
    call.topics.begin_partitioned(topic, count, call.now, properties)
    return made(call, topic, count)


def made(call: HttpRequest, topic: TopicName, count: int) -> DeferredAnswer:
    """Create the missing partitions."""
    steps = (partial(call.topics.make_partition, topic, number) for number in range(count))
    return in_steps(call, steps, lambda now: DONE)


def grow(call: HttpRequest) -> HttpResponse:
    """Increase the number of partitions; with ``force`` even if stray partitions exist beyond the current number."""
    topic, body = call.topic(), call.json()
    count = _count(body.get("partitions") if isinstance(body, dict) else body)
    call.topics.grow(topic, count, call.now, force=call.flag("force"))
    return DONE


def delete(call: HttpRequest) -> DeferredAnswer:
    """Delete a partitioned topic; while clients are connected, only with force."""
    steps = call.broker.removal.of_partitioned(call.topic(), force=call.flag("force"))
    return in_steps(call, steps, lambda now: DONE)


def _count(value: object) -> int:
    """Parse a number of partitions: a JSON number, or a string, as sent by the Rust client."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise BadRequest(f"The number of partitions must be a whole number, not {value[:40]!r}") from None
    if type(value) is not int:
        raise BadRequest(f"The number of partitions must be a whole number, not {kind_of(value)}")
    return value


_TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions"

ROUTES = (
    HttpRoute(
        "GET", "/admin/v2/{domain}/{tenant}/{namespace}/partitioned", Permission.NAMESPACE_USER, partitioned_topics
    ),
    HttpRoute("GET", _TOPIC, Permission.TOPIC_USER, get),
    HttpRoute("PUT", _TOPIC, Permission.TENANT_ADMIN, create),
    HttpRoute("POST", _TOPIC, Permission.TENANT_ADMIN, grow),
    HttpRoute("DELETE", _TOPIC, Permission.TENANT_ADMIN, delete),
)
