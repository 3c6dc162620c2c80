"""Precedence of policies: topic, then namespace, then broker. The only place that determines a value in effect.

A value sets its policy unless the row of the table says otherwise: a rate that limits nothing, or an empty list, leaves
the policy to the next level, as in ``HierarchyTopicPolicies`` of Pulsar 4.2.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from pulsarbox.broker.policies.as_json import broker_value
from pulsarbox.config import Settings
from pulsarbox.protocol.policies.row import PolicyRow
from pulsarbox.protocol.policies.table import row_of, subscription_rate
from pulsarbox.storage.catalog import Row

GLOBAL = "globalPolicies"
"""The member of a topic's row with the values that ``?isGlobal=true`` set; those set without it take precedence."""


class Level(StrEnum):
    """The levels at which a value is set; the nearest to the topic takes precedence."""

    TOPIC = "topic"
    NAMESPACE = "namespace"
    BROKER = "broker"


class ValueAt(NamedTuple):
    """The value that one level sets for a policy, as JSON; None for none."""

    level: Level
    value: Any


Levels = tuple[tuple[Level, Row], ...]


def levels_of(topic: Row, namespace: Row) -> Levels:
    """Return the rows that set policies, the strongest first; the broker's settings come after them."""
    return (Level.TOPIC, topic), (Level.TOPIC, topic.get(GLOBAL, {})), (Level.NAMESPACE, namespace)


def set_values(row: PolicyRow, levels: Levels, cluster: str) -> Iterator[ValueAt]:
    """Yield the values that topic and namespace set for a policy, the strongest first."""
    for level, policies in levels:
        place = row.namespace if level is Level.NAMESPACE else row.topic
        value = place.set_in(policies, cluster, row.sets) if place is not None else None
        if value is not None:
            yield ValueAt(level, value)


def precedence(row: PolicyRow, levels: Levels, settings: Settings) -> Iterator[ValueAt]:
    """Yield the values of all levels for a policy: the first is in effect, the last is the broker's."""
    found = set_values(row, levels, settings.clusterName)
    yield from _merged(list(found)) if row.merged else found
    yield ValueAt(Level.BROKER, broker_value(row.name, settings))


def _merged(found: list[ValueAt]) -> list[ValueAt]:
    """Return the objects of levels, each with the members that only later levels set."""
    below: Row = {}
    for at in range(len(found) - 1, -1, -1):
        value = found[at].value
        maps = {name: {**below.get(name, {}), **each} for name, each in value.items() if isinstance(each, dict)}
        below = {**below, **value, **maps}
        found[at] = found[at]._replace(value=below)
    return found


def in_effect(row: PolicyRow, levels: Levels, settings: Settings) -> ValueAt:
    """Return the value of a policy that is in effect, and the level that sets it."""
    return next(precedence(row, levels, settings))


def subscription_rate_in_effect(subscription: str, levels: Levels, settings: Settings) -> ValueAt:
    """Return the dispatch rate in effect for one subscription: its own, else that of all subscriptions of the topic."""
    own = next(set_values(subscription_rate(subscription), levels, settings.clusterName), None)
    return own or in_effect(row_of("subscription-dispatch-rate"), levels, settings)
