"""Backlog quotas of namespaces and topics, one per type: limits on the size and the age of a backlog.

Source: https://pulsar.apache.org/docs/4.2.x/cookbooks-retention-expiry/#backlog-quotas.
"""

from typing import Any, Final

from pulsarbox.broker.policies.precedence import in_effect, set_values
from pulsarbox.errors import BadRequest, NotFound, PreconditionFailed
from pulsarbox.protocol.policies.checks import fits, quota, retention_of
from pulsarbox.protocol.policies.policy_values import QUOTA, QUOTA_SIZE, QUOTA_TYPES
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, QUOTA_ROWS, row_of
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.policies.of_namespaces import NAMESPACE
from pulsarbox.server.http.policies.of_topics import TOPIC, levels, own, set_topic_policy, topic_of

assert BACKLOG_QUOTA.namespace is not None and BACKLOG_QUOTA.topic is not None
OF_NAMESPACE: Final = BACKLOG_QUOTA.namespace.key
OF_TOPIC: Final = BACKLOG_QUOTA.topic.key
_RETENTION: Final = row_of("retention")


def _type(call: HttpRequest) -> str:
    kind = call.query.get("backlogQuotaType") or QUOTA_SIZE
    if kind not in QUOTA_TYPES:
        raise NotFound(f"backlogQuotaType must be one of {', '.join(QUOTA_TYPES)}, not {kind[:40]!r}")
    return kind


def _given(call: HttpRequest) -> dict[str, Any] | None:
    body = call.json()
    if body is None:
        return None
    try:
        return quota(QUOTA.read(body, "a backlog quota"))
    except BadRequest as error:
        raise BadRequest(
            f"Set namespace[{call.namespace()}] backlog quota failed because the data validation failed. {error}"
        ) from None


# Namespaces


def of_namespace(call: HttpRequest) -> HttpResponse:
    """Return the quotas that are set."""
    return answer(dict(sorted(call.tenants.policies(call.namespace()).get(OF_NAMESPACE, {}).items())))


def set_namespace(call: HttpRequest) -> HttpResponse:
    """Set the quota of a type, by default the size quota."""
    namespace, kind = call.namespace(), _type(call)
    policies = call.tenants.policies(namespace)
    value = _given(call)
    if value is None:
        raise BadRequest('The body must be a backlog quota such as {"limitSize": ..., "policy": ...}')
    quotas = {**policies.get(OF_NAMESPACE, {}), kind: value}
    if not fits(quotas.get(QUOTA_SIZE), retention_of(policies)):
        raise PreconditionFailed(
            "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota and retry"
        )
    call.tenants.set_policy(namespace, OF_NAMESPACE, quotas, call.now)
    return DONE


def remove_namespace(call: HttpRequest) -> HttpResponse:
    """Remove the quota of a type."""
    namespace, kind = call.namespace(), _type(call)
    quotas = dict(call.tenants.policies(namespace).get(OF_NAMESPACE, {}))
    if quotas.pop(kind, None) is not None:
        call.tenants.set_policy(namespace, OF_NAMESPACE, quotas or None, call.now)
    return DONE


# Topics


def of_topic(call: HttpRequest) -> HttpResponse:
    """Return the quotas that are set for a topic; with ``applied``, those in effect, each type separately."""
    name = topic_of(call)
    if call.flag("applied"):
        at, settings = levels(call, name), call.settings
        quotas = {kind: in_effect(row, at, settings).value for kind, row in zip(QUOTA_TYPES, QUOTA_ROWS, strict=True)}
    else:
        quotas = own(call, name).get(OF_TOPIC, {})
    return answer(dict(sorted(quotas.items())))


def set_topic(call: HttpRequest) -> HttpResponse:
    """Set the quota of a type, by default the size quota. An empty body removes it."""
    name, kind = topic_of(call), _type(call)
    value = _given(call)
    retention = next(set_values(_RETENTION, levels(call, name), call.broker.settings.clusterName), None)
    if retention is not None and not fits(value, retention.value):
        raise PreconditionFailed(
            "Backlog Quota exceeds configured retention quota for topic. Please increase retention quota and retry"
        )
    return _keep(call, kind, value)


def remove_topic(call: HttpRequest) -> HttpResponse:
    """Remove the quota of a type."""
    topic_of(call)
    return _keep(call, _type(call), None)


def _keep(call: HttpRequest, kind: str, value: dict[str, Any] | None) -> HttpResponse:
    name = call.topic()
    quotas = {each: kept for each, kept in own(call, name).get(OF_TOPIC, {}).items() if each != kind}
    if value is not None:
        quotas[kind] = value
    return set_topic_policy(call, name, OF_TOPIC, quotas or None)


def check(call: HttpRequest) -> HttpResponse:
    """Check all quotas now. A box checks them whenever a backlog changes, so this does nothing."""
    return DONE


ROUTES = (
    HttpRoute("GET", f"{NAMESPACE}/backlogQuotaMap", Permission.TENANT_ADMIN, of_namespace),
    HttpRoute("POST", f"{NAMESPACE}/backlogQuota", Permission.TENANT_ADMIN, set_namespace),
    HttpRoute("DELETE", f"{NAMESPACE}/backlogQuota", Permission.TENANT_ADMIN, remove_namespace),
    HttpRoute("GET", f"{TOPIC}/backlogQuotaMap", Permission.TENANT_ADMIN, of_topic),
    HttpRoute("POST", f"{TOPIC}/backlogQuota", Permission.TENANT_ADMIN, set_topic),
    HttpRoute("DELETE", f"{TOPIC}/backlogQuota", Permission.TENANT_ADMIN, remove_topic),
    HttpRoute("GET", "/admin/v2/brokers/backlog-quota-check", Permission.SUPERUSER, check),
)
