"""All policies of a topic or a namespace at once: what holds, and which level has set it."""

from typing import Any, NamedTuple

from pulsarbox.broker.policies.as_json import broker_value
from pulsarbox.broker.policies.policies import GLOBAL, Policies
from pulsarbox.broker.policies.policy import Level
from pulsarbox.names import TopicName
from pulsarbox.protocol.policies.row import Place, PolicyRow
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, QUOTA_TYPES, RESOURCE_GROUP_NAME, ROWS
from pulsarbox.storage.catalog import Row, namespace_key, policies_key

RATES = ("dispatch-rate", "subscription-dispatch-rate", "publish-rate")
"""Of these a value that limits nothing says nothing: the next level is asked, as in Pulsar."""


class Held(NamedTuple):
    """The value of a policy, as JSON; None for none."""

    value: Any
    level: Level


def held(policies: Policies, namespace: str, topic: TopicName | None = None) -> dict[str, Held]:
    """What holds, by the name of the policy; for a topic, or for topics of a namespace that have none of their own.

    Backlog quotas stand under ``backlog-quota``, a colon and their type.
    """
    own = policies.row(policies_key(str(topic.base))) if topic is not None else {}
    if not policies.settings.topicLevelPoliciesEnabled:
        own = {}
    levels = (
        (Level.TOPIC, own),
        (Level.TOPIC, own.get(GLOBAL, {})),
        (Level.NAMESPACE, _namespace(policies, namespace)),
    )
    found: dict[str, Held] = {}
    for row in (*ROWS, RESOURCE_GROUP_NAME):
        if topic is None and row.namespace is None:
            continue
        found[row.name] = _first(policies, row, levels)
    for kind in QUOTA_TYPES:
        found[f"{BACKLOG_QUOTA.name}:{kind}"] = _quota(policies, kind, levels)
    return dict(sorted(found.items()))


def _namespace(policies: Policies, namespace: str) -> Row:
    return policies.row(namespace_key(namespace))


def _first(policies: Policies, row: PolicyRow, levels: tuple[tuple[Level, Row], ...]) -> Held:
    for level, values in levels:
        place = row.namespace if level is Level.NAMESPACE else row.topic
        value = values.get(place.key) if place else None
        if place is not None and place.by_cluster and value is not None:
            value = value.get(policies.settings.clusterName)
        if place is not None and value is not None and not _says_nothing(row, place, value):
            return Held(value, level)
    return Held(broker_value(row.name, policies.settings), Level.BROKER)


def _says_nothing(row: PolicyRow, place: Place, value: Any) -> bool:
    if row.name in RATES:
        return all(number <= 0 for name, number in value.items() if "RateIn" in name)
    return bool(value == place.nothing or value in ([], "UNDEFINED"))


def _quota(policies: Policies, kind: str, levels: tuple[tuple[Level, Row], ...]) -> Held:
    for level, values in levels:
        place = BACKLOG_QUOTA.namespace if level is Level.NAMESPACE else BACKLOG_QUOTA.topic
        assert place is not None
        value = values.get(place.key, {}).get(kind)
        if value is not None:
            return Held(value, level)
    return Held(broker_value(BACKLOG_QUOTA.name, policies.settings)[kind], Level.BROKER)
