"""What operators have set for namespaces and topics, written down beside the box: what holds, since when, and what a
crash may take back.

A change is an entry of a list until its commit has returned; a recovery must find the state after one of the changes
that may be durable, as a whole.
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
"""Values of a policy of one topic that are remembered."""


class Ruled(NamedTuple):
    """A value that held for a topic, and when: ``until`` is None while it does."""

    value: Any
    since: float
    """On the monotonic clock, as ``until``."""
    until: float | None = None
    wall: int = 0
    """The wall clock when it ended."""


class Rulebook:
    """The policies of all namespaces and topics, in the order in which they were set."""

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
        """By the key of the row: what is set there, by the name that the row has for it."""
        self._versions: list[Rows] = [{}]
        """What may be found after a crash, oldest first."""
        self._answered = 0
        """How many versions are no more in that list."""
        self.group_since: dict[str, float] = {}
        """When the rates of a resource group were set last (monotonic)."""
        self._held: dict[tuple[str, Policy[Any]], list[Ruled]] = {}
        """By topic and policy, oldest first."""
        for topic in topics:  # from the beginning: a rule may ask late, and for what held long before
            for policy in policies:
                self.held(topic, policy)

    # Changes

    def set(self, key: str, name: str, value: Any, *, everywhere: bool = False) -> int:
        """One value is another one, None: it is taken away. Gives the number of this state, for ``durable``."""
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
        """The commit that holds this state has returned: no older one may be found any more."""
        while self._answered < number and len(self._versions) > 1:
            self._versions.pop(0)
            self._answered += 1

    def found(self, catalog: Catalog) -> str:
        """A recovery has found this: adopt it. Gives what is wrong with it, empty where it is one of the states."""
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
        """Without what others have in the same row, and without what is empty."""
        names = {name for policy in self._policies for name in (policy.namespace_key, policy.topic_key)}
        found = {name: value for name, value in row.items() if name in names or name.endswith(("InMsgs", "InBytes"))}
        everywhere = self._known(row[GLOBAL]) if GLOBAL in row else {}
        return found | ({GLOBAL: everywhere} if everywhere else {})

    # What holds

    def look_up(self, topic: str, policy: Policy[Any], rows: Rows | None = None) -> tuple[Any, Level]:
        """What holds for a topic, and who has set it: topic, then for all clusters, then namespace, then broker.

        ``rows`` are others than those that are there now.
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
        """What holds for a topic."""
        return self.held(topic, policy)[-1].value

    def held(self, topic: str, policy: Policy[Any]) -> list[Ruled]:
        """What has held for a topic, the last of it now."""
        history = self._held.get((topic, policy))
        if history is None:
            history = self._held[topic, policy] = [Ruled(self.look_up(topic, policy)[0], self._world.monotonic)]
        return history

    def steady(self, topic: str, policy: Policy[Any]) -> float:
        """For how many seconds it has been what it is."""
        return self._world.monotonic - self.held(topic, policy)[-1].since

    def group(self, name: str) -> dict[str, Any]:
        """The row of a resource group."""
        return self.rows.get(group_key(name), {})

    def note(self) -> None:
        """Settings may be other ones: whether other values hold now."""
        now = self._world.now
        for (topic, policy), history in self._held.items():
            value, before = self.look_up(topic, policy)[0], history[-1]
            if value != before.value:
                history[-1] = before._replace(until=now.monotonic, wall=now.wall)
                history.append(Ruled(value, now.monotonic))
                del history[:-REMEMBERED]

    def in_force(self, topic: str, policy: Policy[Any], seconds: float = 1e9) -> list[Ruled]:
        """What has held within the last seconds; each with the wall clock at its end, now for the last."""
        now = self._world.now
        least = now.monotonic - seconds
        history = [each for each in self.held(topic, policy) if each.until is None or each.until >= least]
        return [each if each.until is not None else each._replace(wall=now.wall) for each in history]
