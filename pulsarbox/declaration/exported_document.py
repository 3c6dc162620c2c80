"""The present state as a document that declares it again."""

from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.declaration.declared_policy import is_unset, rows_at, written_value
from pulsarbox.declaration.planner import namespace_policies
from pulsarbox.declaration.present_state import PresentState, PresentSubscription, PresentTopic
from pulsarbox.names import TopicName
from pulsarbox.protocol.cluster_data import SECRETS
from pulsarbox.protocol.policies.policy_values import meaningful
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, QUOTA_ROWS, RESOURCE_GROUP_NAME, row_of

_LEGACY_SIZE: Final = "limit"
"""Older name of a quota's limitSize, which brokers store as well."""
_EMPTY: Final[tuple[Any, ...]] = ({}, [], None)


def document_of(state: PresentState) -> dict[str, Any]:
    """Return the document, in the form that ``declaration_parser`` reads."""
    return _filled(
        {
            "clusters": {name: _cluster(each) for name, each in sorted(state.cluster_data.items())},
            "tenants": {name: _tenant(each, state) for name, each in sorted(state.tenants.items())},
            "resource-groups": dict(sorted(state.resource_groups.items())),
            "namespaces": {name: _namespace(each, state) for name, each in sorted(state.namespaces.items())},
            "topics": {str(name): _topic(name, each, state) for name, each in sorted(state.topics.items())},
        }
    )


def _filled(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in parts.items() if each not in _EMPTY}


def _cluster(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out credentials: a declaration has no secrets."""
    return {name: each for name, each in cluster.items() if each not in (None, False) and name not in SECRETS}


def _tenant(tenant: Mapping[str, Any], state: PresentState) -> dict[str, Any]:
    clusters = sorted(tenant.get("allowedClusters") or ())
    return {"admin-roles": sorted(tenant.get("adminRoles") or ())} | (
        {"allowed-clusters": clusters} if clusters != [state.cluster()] else {}
    )


def _namespace(namespace: Mapping[str, Any], state: PresentState) -> dict[str, Any]:
    auth = namespace.get("auth_policies") or {}
    return _filled(
        {
            "policies": _policies(namespace_policies(namespace, state.cluster()), topic=False),
            "properties": namespace.get("properties"),
            "permissions": auth.get("namespace_auth"),
            "subscription-permissions": auth.get("subscription_auth_roles"),
        }
    )


def _policies(present: Mapping[str, Any], *, topic: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row, place in rows_at(topic=topic):
        value = present.get(row.name)
        if is_unset(row, place, value) or (row is RESOURCE_GROUP_NAME and not value):
            continue
        if row in QUOTA_ROWS:
            quota = written_value(row, place, value)
            if isinstance(quota, Mapping):
                quota = {name: each for name, each in meaningful(quota).items() if name != _LEGACY_SIZE}
            found.setdefault(BACKLOG_QUOTA.name, {})[place.members[0]] = quota
        else:
            found[row.name] = meaningful(written_value(row, place, value))
    return found


def _topic(name: TopicName, topic: PresentTopic, state: PresentState) -> dict[str, Any]:
    auth = state.namespaces.get(name.namespace, {}).get("auth_policies") or {}
    return _filled(
        {
            "partitions": topic.partitions or None,
            "properties": topic.properties,
            "policies": _policies(topic.policies, topic=True),
            "permissions": (auth.get("destination_auth") or {}).get(str(name)),
            "schema": _schema(topic.schema),
            "subscriptions": {each: _subscription(told) for each, told in sorted(topic.subscriptions.items())},
        }
    )


def _schema(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    return _filled({"type": schema["type"], "definition": schema["schema"] or None, "properties": schema["properties"]})


def _rate(value: Mapping[str, Any] | None) -> Any:
    row = row_of("subscription-dispatch-rate")
    return None if value is None or row.topic is None else written_value(row, row.topic, value)


def _subscription(subscription: PresentSubscription) -> dict[str, Any]:
    """Position: earliest, so that a subscription of an empty topic skips nothing that is published meanwhile."""
    return {"position": "earliest"} | _filled(
        {
            "properties": subscription.properties,
            "dead-letter": subscription.dead_letter,
            "dispatch-rate": _rate(subscription.dispatch_rate),
        }
    )
