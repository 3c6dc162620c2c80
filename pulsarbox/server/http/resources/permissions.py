"""Permissions of roles on namespaces, topics and subscriptions."""

from typing import Any

from pulsarbox.broker.security.permissions import check_actions, check_roles
from pulsarbox.errors import BadRequest, InvalidTopicName, NotFound
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission

# Namespaces


def of_namespace(call: HttpRequest) -> HttpResponse:
    """Return the actions granted to each role in a namespace."""
    return answer(call.permissions.of_namespace(call.namespace()))


def grant(call: HttpRequest) -> HttpResponse:
    """Grant a role the actions in the body, in a namespace."""
    _require(call, "Topic's namespace does not exist")
    call.permissions.grant(call.namespace(), call.path["role"], check_actions(_body(call, "Actions")), call.now)
    return DONE


def revoke(call: HttpRequest) -> HttpResponse:
    """Revoke all actions of a role in a namespace."""
    call.permissions.revoke(call.namespace(), call.path["role"], call.now)
    return DONE


# Subscriptions


def of_subscriptions(call: HttpRequest) -> HttpResponse:
    """Return the roles to which each subscription of a namespace is restricted."""
    return answer(call.permissions.of_subscriptions(call.namespace()))


def grant_subscription(call: HttpRequest) -> HttpResponse:
    """Restrict a subscription to the roles in the body; an empty list lifts the restriction."""
    roles = check_roles(_body(call, "Roles"))
    call.permissions.grant_subscription(call.namespace(), call.path["subscription"], roles, call.now)
    return DONE


def revoke_subscription(call: HttpRequest) -> HttpResponse:
    """Remove a role from the roles of a subscription."""
    call.permissions.revoke_subscription(call.namespace(), call.path["subscription"], call.path["role"], call.now)
    return DONE


# Topics


def of_topic(call: HttpRequest) -> HttpResponse:
    """Return the actions granted to each role on a topic, through its namespace or directly."""
    return answer(call.permissions.of_topic(_existing(call, call.topic())))


def grant_topic(call: HttpRequest) -> HttpResponse:
    """Grant a role the actions in the body, on one topic."""
    body = call.json()
    actions = check_actions([] if body is None else body)  # as in Pulsar
    call.permissions.grant_topic(_existing(call, call.topic()), call.path["role"], actions, call.now)
    return DONE


def revoke_topic(call: HttpRequest) -> HttpResponse:
    """Revoke all actions of a role on a topic, except those granted in the namespace."""
    call.permissions.revoke_topic(_existing(call, call.topic()), call.path["role"], call.now)
    return DONE


def grant_topics(call: HttpRequest) -> HttpResponse:
    """Grant permissions on several topics of a namespace: ``[{"topic", "role", "actions"}]``. All or none."""
    wanted = [(*each, check_actions(option.get("actions") or [])) for each, option in _options(call)]
    for topic, role, actions in wanted:
        call.permissions.grant_topic(topic, role, actions, call.now)
    return DONE


def revoke_topics(call: HttpRequest) -> HttpResponse:
    """Revoke permissions on several topics of a namespace: ``[{"topic", "role"}]``. All or none."""
    for (topic, role), _ in list(_options(call)):
        call.permissions.revoke_topic(topic, role, call.now)
    return DONE


def _options(call: HttpRequest) -> list[tuple[tuple[TopicName, str], dict[str, Any]]]:
    body = call.json()
    if not isinstance(body, list) or not all(isinstance(each, dict) for each in body):
        raise BadRequest('The body must be a list of objects: [{"topic": ..., "role": ...}]')
    found = []
    for each in body:
        if not isinstance(each.get("topic"), str) or not isinstance(each.get("role"), str):
            raise BadRequest('Each object must name a topic and a role: {"topic": ..., "role": ...}')
        try:
            topic = parse_topic(each["topic"])
        except InvalidTopicName as error:
            raise NotFound(f"Topic {each['topic']} not found: {error}") from None
        found.append(((_existing(call, topic), each["role"]), each))
    if len({topic.namespace for (topic, _), _ in found}) != 1:
        raise BadRequest("The namespace should be the same")
    return found


def _existing(call: HttpRequest, topic: TopicName) -> TopicName:
    """Return the topic. Raises NotFound if it does not exist."""
    if not call.topics.exists(topic) and not call.topics.partitions(topic):
        raise NotFound(f"Topic {topic} not found")
    return topic


def _body(call: HttpRequest, what: str) -> Any:
    body = call.json()
    if body is None:
        raise BadRequest(f"{what} should not be null")
    return body


def _require(call: HttpRequest, reason: str) -> None:
    if not call.tenants.has_namespace(call.namespace()):
        raise NotFound(reason)


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}/permissions"
_TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/permissions"

ROUTES = (
    HttpRoute("GET", _NAMESPACE, Permission.TENANT_ADMIN, of_namespace),
    HttpRoute("POST", f"{_NAMESPACE}/{{role}}", Permission.TENANT_ADMIN, grant),
    HttpRoute("DELETE", f"{_NAMESPACE}/{{role}}", Permission.TENANT_ADMIN, revoke),
    HttpRoute("GET", f"{_NAMESPACE}/subscription", Permission.TENANT_ADMIN, of_subscriptions),
    HttpRoute("POST", f"{_NAMESPACE}/subscription/{{subscription}}", Permission.TENANT_ADMIN, grant_subscription),
    HttpRoute("DELETE", f"{_NAMESPACE}/{{subscription}}/{{role}}", Permission.TENANT_ADMIN, revoke_subscription),
    HttpRoute("GET", _TOPIC, Permission.TENANT_ADMIN, of_topic),
    HttpRoute("POST", f"{_TOPIC}/{{role}}", Permission.TENANT_ADMIN, grant_topic),
    HttpRoute("DELETE", f"{_TOPIC}/{{role}}", Permission.TENANT_ADMIN, revoke_topic),
    HttpRoute("POST", "/admin/v2/namespaces/grantPermissionsOnTopics", Permission.TENANT_ADMIN_OF_TOPICS, grant_topics),
    HttpRoute(
        "POST", "/admin/v2/namespaces/revokePermissionsOnTopics", Permission.TENANT_ADMIN_OF_TOPICS, revoke_topics
    ),
)
