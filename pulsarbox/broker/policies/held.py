"""All policies of a topic or a namespace at once: what holds, and which level has set it."""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.as_json import broker_value
from pulsarbox.broker.policies.dispatch_rate import DISPATCH_RATE, SUBSCRIPTION_DISPATCH_RATE
from pulsarbox.broker.policies.encryption import ENCRYPTION_REQUIRED
from pulsarbox.broker.policies.policies import Policies, levels_of
from pulsarbox.broker.policies.policy import Level, Policy
from pulsarbox.broker.policies.publish_rate import PUBLISH_RATE
from pulsarbox.broker.policies.schema import SCHEMA_COMPATIBILITY
from pulsarbox.broker.policies.subscribe_rate import SUBSCRIBE_RATE
from pulsarbox.broker.policies.subscription_types import SUBSCRIPTION_TYPES
from pulsarbox.names import TopicName
from pulsarbox.protocol.policies.row import PolicyRow
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, QUOTA_TYPES, RESOURCE_GROUP_NAME, ROWS, row_of
from pulsarbox.storage.catalog import Row, namespace_key, policies_key

MAY_SAY_NOTHING: Final[dict[str, Policy[Any]]] = {
    policy.name: policy
    for policy in (
        DISPATCH_RATE,
        SUBSCRIPTION_DISPATCH_RATE,
        PUBLISH_RATE,
        SUBSCRIBE_RATE,
        SUBSCRIPTION_TYPES,
        SCHEMA_COMPATIBILITY,
        ENCRYPTION_REQUIRED,
    )
}
"""Of these a value may stand for none, so that the next level is asked: a rate that limits nothing, an empty list."""


class Said(NamedTuple):
    """The value that one level has for a policy, as JSON; None for none."""

    level: Level
    value: Any


class Held(NamedTuple):
    """What holds of a policy, and what each level says, the strongest first; the last is the broker's."""

    levels: tuple[Said, ...]

    @property
    def value(self) -> Any:
        """What holds, as JSON; None for none."""
        return self.levels[0].value

    @property
    def level(self) -> Level:
        """Who has set it."""
        return self.levels[0].level


def held(policies: Policies, namespace: str, topic: TopicName | None = None) -> dict[str, Held]:
    """What holds, by the name of the policy; for a topic, or for topics of a namespace that have none of their own.

    Backlog quotas stand under ``backlog-quota``, a colon and their type.
    """
    own = policies.of_topic(policies_key(str(topic.base))) if topic is not None else {}
    levels = levels_of(own, policies.row(namespace_key(namespace)))
    found: dict[str, Held] = {}
    for row in (*ROWS, RESOURCE_GROUP_NAME):
        if topic is None and row.namespace is None:
            continue
        found[row.name] = _held(policies, row, levels)
    for kind in QUOTA_TYPES:
        found[f"{BACKLOG_QUOTA.name}:{kind}"] = _quota(policies, kind, levels)
    return dict(sorted(found.items()))


def held_of(policies: Policies, name: str, namespace: str, topic: TopicName | None = None) -> Held:
    """What holds of one policy, named as ``held`` names it."""
    own = policies.of_topic(policies_key(str(topic.base))) if topic is not None else {}
    levels = levels_of(own, policies.row(namespace_key(namespace)))
    if name.startswith(BACKLOG_QUOTA.name):
        return _quota(policies, name.partition(":")[2], levels)
    return _held(policies, row_of(name), levels)


def _held(policies: Policies, row: PolicyRow, levels: tuple[tuple[Level, Row], ...]) -> Held:
    said = []
    for level, values in levels:
        place = row.namespace if level is Level.NAMESPACE else row.topic
        value = place.value_in(values, policies.settings.clusterName) if place is not None else None
        policy = MAY_SAY_NOTHING.get(row.name)
        if value is not None and (policy is None or policy.read(value) is not None):
            said.append(Said(level, value))
    return Held((*said, Said(Level.BROKER, broker_value(row.name, policies.settings))))


def _quota(policies: Policies, kind: str, levels: tuple[tuple[Level, Row], ...]) -> Held:
    said = []
    for level, values in levels:
        place = BACKLOG_QUOTA.namespace if level is Level.NAMESPACE else BACKLOG_QUOTA.topic
        assert place is not None
        value = values.get(place.key, {}).get(kind)
        if value is not None:
            said.append(Said(level, value))
    return Held((*said, Said(Level.BROKER, broker_value(BACKLOG_QUOTA.name, policies.settings)[kind])))
