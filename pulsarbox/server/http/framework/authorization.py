"""Authorization of requests: the rule of each kind of permission, applied before every handler.

A kind without a rule fails at import, so no endpoint is served without a check. The kind of each route matches Pulsar
4.2 at the same endpoint; docs/authorization.md has the table.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from pulsarbox.broker.security.authorization import CONSUME, PRODUCE, Authorization
from pulsarbox.errors import AuthorizationError, BadRequest, InvalidTopicName
from pulsarbox.names import PERSISTENT, parse_topic
from pulsarbox.server.http.framework.request import HttpRequest
from pulsarbox.server.http.framework.routes import Permission
from pulsarbox.server.live.asking import scope_of

Rule = Callable[[Authorization, HttpRequest], None]


def permit(call: HttpRequest, permission: Permission) -> None:
    """Return if the principal may call a route with this permission.

    Raises AuthenticationError (401) without a principal, AuthorizationError (403) if it is not permitted,
    NamespaceNotFound if the tenant is missing, and errors of names or bodies that the decision depends on.
    """
    authorization = call.broker.authorization
    if authorization.enabled and permission is not Permission.ANYONE:
        authorization.require_name(call.principal)
        RULES[permission](authorization, call)


def _superuser(authorization: Authorization, call: HttpRequest) -> None:
    authorization.require_superuser(call.principal)


def _watcher(authorization: Authorization, call: HttpRequest) -> None:
    authorization.require_watcher(call.principal, scope_of(call.query).tenant)


def _tenant_admin(authorization: Authorization, call: HttpRequest) -> None:
    authorization.require_tenant_admin(call.principal, call.path["tenant"])


def _tenant(authorization: Authorization, call: HttpRequest) -> None:
    authorization.require_tenant(call.principal, call.path["tenant"])


def _tenant_admin_of_topics(authorization: Authorization, call: HttpRequest) -> None:
    body = call.json()
    if not isinstance(body, list) or not body:
        authorization.require_superuser(call.principal)  # the body names no topic to check permissions on
        return
    for each in body:
        try:
            tenant = parse_topic(each["topic"]).tenant
        except (TypeError, KeyError, AttributeError, InvalidTopicName):
            raise BadRequest(
                'Each object must name a topic: {"topic": "persistent://tenant/namespace/topic"}'
            ) from None
        authorization.require_tenant_admin(call.principal, tenant)


def _job(authorization: Authorization, call: HttpRequest) -> None:
    """The job in the path, or the one to be created from the body."""
    if "id" in call.path:
        job = call.broker.jobs.find(call.number("id"))
        try:
            if job is None:
                authorization.require_superuser(call.principal)
            else:
                authorization.require_on_topic(call.principal, job.spec.topic, (CONSUME,), job.spec.subscription)
        except AuthorizationError:  # the existence of a job is not disclosed
            raise AuthorizationError(f"Job {call.path['id'][:20]} not found on topics that you may access") from None
        return
    body = call.json()
    try:
        topic, target = parse_topic(body["topic"]), body.get("target")
        target = None if target is None else parse_topic(target)
        subscription = str(body.get("subscription") or "")
    except (TypeError, KeyError, AttributeError, InvalidTopicName):
        authorization.require_superuser(call.principal)  # the body names no topic to check permissions on
        return
    authorization.require_on_topic(call.principal, topic, (CONSUME,), subscription)
    if target is not None:
        authorization.require_on_topic(call.principal, target, (PRODUCE,))


def _in_namespace(*actions: str) -> Rule:
    def rule(authorization: Authorization, call: HttpRequest) -> None:
        subscription = call.path.get("subscription", "")
        authorization.require_in_namespace(call.principal, call.namespace(), actions, subscription)

    return rule


def _on_topic(*actions: str) -> Rule:
    def rule(authorization: Authorization, call: HttpRequest) -> None:
        topic = call.topic(call.path.get("domain", PERSISTENT))
        authorization.require_on_topic(call.principal, topic, actions, call.path.get("subscription", ""))

    return rule


RULES: Final[Mapping[Permission, Rule]] = MappingProxyType(
    {
        Permission.ANYONE: lambda authorization, call: None,
        Permission.NAMED: lambda authorization, call: None,
        Permission.SUPERUSER: _superuser,
        Permission.WATCHER: _watcher,
        Permission.TENANT_ADMIN: _tenant_admin,
        Permission.TENANT: _tenant,
        Permission.TENANT_ADMIN_OF_TOPICS: _tenant_admin_of_topics,
        Permission.NAMESPACE_USER: _in_namespace(PRODUCE, CONSUME),
        Permission.NAMESPACE_CONSUMER: _in_namespace(CONSUME),
        Permission.FUNCTIONS: _in_namespace("functions"),
        Permission.SOURCES: _in_namespace("sources"),
        Permission.SINKS: _in_namespace("sinks"),
        Permission.PACKAGES: _in_namespace("packages"),
        Permission.TOPIC_USER: _on_topic(PRODUCE, CONSUME),
        Permission.TOPIC_PRODUCER: _on_topic(PRODUCE),
        Permission.TOPIC_CONSUMER: _on_topic(CONSUME),
        Permission.JOB: _job,
    }
)
if missing := set(Permission) - RULES.keys():
    raise TypeError(f"no rule for the permissions {', '.join(sorted(each.name for each in missing))}")
