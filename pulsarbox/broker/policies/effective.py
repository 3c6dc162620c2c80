"""All policies of a topic or namespace, each with the value in effect and the value of each level."""

from typing import Any, NamedTuple

from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.policies.precedence import Level, ValueAt, precedence
from pulsarbox.names import TopicName
from pulsarbox.protocol.policies.table import OTHER_ROWS, QUOTA_ROWS, ROWS, row_of


class EffectivePolicy(NamedTuple):
    """The value of a policy at each level that sets it, the strongest first; the last is the broker's."""

    levels: tuple[ValueAt, ...]

    @property
    def value(self) -> Any:
        """The value in effect, as JSON; None for none."""
        return self.levels[0].value

    @property
    def level(self) -> Level:
        """The level that sets it."""
        return self.levels[0].level


def held(policies: Policies, namespace: str, topic: TopicName | None = None) -> dict[str, EffectivePolicy]:
    """Return the policies by name; of a topic, or of topics of a namespace that set none themselves.

    Backlog quotas are one policy for each type: ``backlog-quota:message_age``.
    """
    names = (row.name for row in (*ROWS, *QUOTA_ROWS, *OTHER_ROWS) if topic is not None or row.namespace)
    return {name: held_of(policies, name, namespace, topic) for name in sorted(names)}


def held_of(policies: Policies, name: str, namespace: str, topic: TopicName | None = None) -> EffectivePolicy:
    """Return one policy, named as ``held`` names it."""
    return EffectivePolicy(tuple(precedence(row_of(name), policies.levels(namespace, topic), policies.settings)))
