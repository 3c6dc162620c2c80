"""Policies set by operators for namespaces and topics: current values, their history, and changes a crash may undo.

Each change adds a version to a list until its commit has returned. A recovery must restore one possibly durable version
as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.kinds.resource_group import group_key
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.broker.policies.precedence import GLOBAL, Level
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import Catalog, namespace_key, policies_key
from tests.simulation.world import World

Rows = dict[str, dict[str, Any]]
REMEMBERED: Final = 60
"""Maximum number of past values per topic and policy."""


class Ruled(NamedTuple):
    """A value that applied to a topic, and its period; ``until`` is None while it applies."""

    value: Any
    since: float
    """Start on the monotonic clock, like ``until``."""
    until: float | None = None
    wall: int = 0
    """Wall clock time at its end (ms since 1970)."""


class Rulebook:
    """The policies of all namespaces and topics, with their history."""

    def __init__(
        self,
        world: World,
        settings: Callable[[], Settings],
        policies: tuple[Policy[Any], ...],
        topics: tuple[str, ...],
    ) -> None:
        self._world = world
        self._settings = settings
        self._policies = policies
        self.rows: Rows = {}
        """Values by row key and field name."""
        self._versions: list[Rows] = [{}]
        """Versions that a recovery may restore, oldest first."""
        self._answered = 0
        """Number of versions removed from that list."""
        self.group_since: dict[str, float] = {}
        """Time of the last change to the rates of a resource group (monotonic)."""
        self._held: dict[tuple[str, Policy[Any]], list[Ruled]] = {}
        """Past and current values by topic and policy, oldest first."""
        for topic in topics:  # from the start: rules may query values that applied long before
            for policy in policies:
                self.held(topic, policy)

    # Changes

    def set(self, key: str, name: str, value: Any, *, everywhere: bool = False) -> int:
        """Set one value, or remove it with None. Return the version number, for ``durable``."""
        row = self.rows.setdefault(key, {})
        if everywhere:
            row = row.setdefault(GLOBAL, {})
        row.pop(name, None)
        if value is not None:
            row[name] = value
        self._write_down()
        return self._answered + len(self._versions) - 1

    def _write_down(self) -> None:
        self._versions.append(deepcopy(self.rows))
        self.note()

    def durable(self, number: int) -> None:
        """Drop the versions before this one: its commit has returned, and no recovery may restore an older one."""
        while self._answered < number and len(self._versions) > 1:
            self._versions.pop(0)
            self._answered += 1

    def found(self, catalog: Catalog) -> str:
        """Adopt the recovered policies. Return an error message, empty if they match one version."""
        found = {key: self._known(catalog.get(key) or {}) for key in self.rows}
        wanted = [{key: self._known(rows.get(key, {})) for key in self.rows} for rows in self._versions]
        if found not in wanted:
            return f"found {found}, which was never so; last durable was {wanted[0]}, last set {wanted[-1]}"
        self.rows = deepcopy(self._versions[len(wanted) - 1 - wanted[::-1].index(found)])
        self._answered += len(self._versions) - 1
        self._versions = [deepcopy(self.rows)]
        self.note()
        return ""

    def _known(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the policies of the row without unrelated and empty values."""
        names = {name for policy in self._policies for name in (policy.namespace_key, policy.topic_key)}
        found = {name: value for name, value in row.items() if name in names or name.endswith(("InMsgs", "InBytes"))}
        everywhere = self._known(row[GLOBAL]) if GLOBAL in row else {}
        return found | ({GLOBAL: everywhere} if everywhere else {})

    # Effective values

    def look_up(self, topic: str, policy: Policy[Any], rows: Rows | None = None) -> tuple[Any, Level]:
        """Return the value that applies to a topic, and its level: topic, then global topic, then namespace, then
        broker.

        ``rows`` replaces the current rows.
        """
        name, rows = parse_topic(topic), self.rows if rows is None else rows
        own = rows.get(policies_key(str(name.base)), {})
        namespace = rows.get(namespace_key(name.namespace), {})
        row, cluster = policy.row, self._settings().clusterName
        for level, place, values in (
            (Level.TOPIC, row.topic, own),
            (Level.TOPIC, row.topic, own.get(GLOBAL, {})),
            (Level.NAMESPACE, row.namespace, namespace),
        ):
            value = place.value_in(values, cluster) if place is not None else None
            if value is not None and row.sets(value):
                return policy.read(value), level
        return policy.broker(self._settings()), Level.BROKER

    def get(self, topic: str, policy: Policy[Any]) -> Any:
        """Return the value that applies to a topic."""
        return self.held(topic, policy)[-1].value

    def held(self, topic: str, policy: Policy[Any]) -> list[Ruled]:
        """Return the past values of a policy for a topic; the last one is current."""
        history = self._held.get((topic, policy))
        if history is None:
            history = self._held[topic, policy] = [Ruled(self.look_up(topic, policy)[0], self._world.monotonic)]
        return history

    def steady(self, topic: str, policy: Policy[Any]) -> float:
        """Return the seconds since the value last changed."""
        return self._world.monotonic - self.held(topic, policy)[-1].since

    def group(self, name: str) -> dict[str, Any]:
        """Return the row of a resource group."""
        return self.rows.get(group_key(name), {})

    def note(self) -> None:
        """Update the effective values after a change of settings or policies."""
        now = self._world.now
        for (topic, policy), history in self._held.items():
            value, before = self.look_up(topic, policy)[0], history[-1]
            if value != before.value:
                history[-1] = before._replace(until=now.monotonic, wall=now.wall)
                history.append(Ruled(value, now.monotonic))
                del history[:-REMEMBERED]

    def in_force(self, topic: str, policy: Policy[Any], seconds: float = 1e9) -> list[Ruled]:
        """Return the values of the last ``seconds``, each with the wall clock time at its end, or now for the current
        one.
        """
        now = self._world.now
        least = now.monotonic - seconds
        history = [each for each in self.held(topic, policy) if each.until is None or each.until >= least]
        return [each if each.until is not None else each._replace(wall=now.wall) for each in history]
