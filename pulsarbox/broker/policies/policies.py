"""What is set for namespaces and topics, kept as rows; and which of it holds for a topic: topic > namespace > broker.

A change holds for whoever asks after it. Topics in memory are told besides, so that they do at once what follows: a
few of them in the turn of the change, many over the turns behind it.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from pulsarbox.broker.policies.kinds.dispatch_rate import SUBSCRIPTION_DISPATCH_RATE, DispatchRate
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.broker.policies.precedence import (
    GLOBAL,
    Level,
    Levels,
    in_effect,
    levels_of,
    subscription_rate_in_effect,
)
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.names import TopicName
from pulsarbox.storage.catalog import Catalog, Row, namespace_key, policies_key

T = TypeVar("T")

TOLD_AT_ONCE: Final = 10
"""Topics that are told of a change in one turn: each takes some 0.2 ms, and may trim its ledgers and write rows."""


class Policies:
    """The policies of all namespaces and topics. ``put`` writes a row, durable with the open batch."""

    def __init__(
        self, catalog: Catalog, settings: Settings, put: Callable[[str, Row | None], None], timers: Timers
    ) -> None:
        self._catalog = catalog
        self.settings = settings
        self._put = put
        self._timers = timers
        self.changes = 0
        """Grows with each change: what a topic has looked up before is not asked any more."""
        self.of_namespaces: dict[tuple[str, Policy[Any]], tuple[Any, Level]] = {}
        """What holds for the topics of a namespace that have nothing set themselves, as far as somebody has asked."""
        self._to_tell: dict[TopicPolicies, None] = {}
        """Topics that a change is still to be told to."""
        self.for_unloaded: Callable[[str, Row, Row, Now], None] = _nobody
        """Is called with a namespace, or a topic's name, its row before and its row now."""
        self._rows: dict[str, Row] = {}
        """The rows of what is in use, taken apart once."""
        self._in_use: dict[str, dict[TopicPolicies, None]] = {}
        """Of the topics in memory, by namespace."""

    def of(self, name: TopicName) -> "TopicPolicies":
        """What holds for a topic, in memory or not."""
        return TopicPolicies(self, name)

    def row(self, key: str, *, keep: bool = False) -> Row:
        """A row of policies, empty where there is none. ``keep``: somebody in memory will ask again."""
        row = self._rows.get(key)
        if row is None:
            row = self._catalog.get(key) or {}
            if keep:
                self._rows[key] = row
        return row

    def of_topic(self, key: str, *, keep: bool = False) -> Row:
        """The row of a topic's own policies as far as they count."""
        return self.row(key, keep=keep) if self.settings.topicLevelPoliciesEnabled else {}

    def levels(self, namespace: str, topic: TopicName | None = None, *, keep: bool = False) -> Levels:
        """Return the rows that set policies of a topic, or of topics of a namespace that set none themselves."""
        own = self.of_topic(policies_key(str(topic.base)), keep=keep) if topic is not None else {}
        return levels_of(own, self.row(namespace_key(namespace), keep=keep))

    # Changes

    def put_namespace(self, namespace: str, row: Row | None, now: Now | None = None) -> None:
        """Write all that is set for a namespace; None where it is deleted."""
        key = namespace_key(namespace)
        before = self._catalog.get(key) or {}
        self._put(key, row)
        self._rows.pop(key, None)
        self._changed(self._in_use.get(namespace, ()), now)
        if now is not None:
            self.for_unloaded(f"{namespace}/", before, row or {}, now)

    def set_topic(self, name: TopicName, key: str, value: Any, now: Now, *, everywhere: bool = False) -> None:
        """Set one policy of a topic (of all partitions); None takes it away. ``everywhere``: for all clusters."""
        row = dict(self.row(policies_key(str(name.base))))
        values = dict(row.get(GLOBAL, {})) if everywhere else row
        values.pop(key, None)
        if value is not None:
            values[key] = value
        if everywhere:
            row.pop(GLOBAL, None)
            if values:
                row[GLOBAL] = values
        self.put_topic(name, row or None, now)

    def put_topic(self, name: TopicName, row: Row | None, now: Now) -> None:
        """Write all that is set for a topic; None takes everything away."""
        key = policies_key(str(name.base))
        before = self._catalog.get(key)
        if row is None and before is None:
            return
        self._put(key, row)
        self._rows.pop(key, None)
        self._changed([each for each in self._in_use.get(name.namespace, ()) if each.name.base == name.base], now)
        self.for_unloaded(str(name.base), before or {}, row or {}, now)

    def take(self, settings: Settings, now: Now | None = None) -> None:
        """The broker's own values are these from now on."""
        self.settings = settings
        self._changed([each for topics in self._in_use.values() for each in topics], now)

    def _changed(self, topics: "Iterable[TopicPolicies]", now: Now | None) -> None:
        self.changes += 1
        self.of_namespaces.clear()
        if now is None:
            return
        waiting = bool(self._to_tell)
        self._to_tell.update(dict.fromkeys(topics))
        if not waiting:
            self._tell(now)

    def _tell(self, now: Now) -> None:
        for _ in range(TOLD_AT_ONCE):
            topic = next(iter(self._to_tell), None)
            if topic is None:
                return
            del self._to_tell[topic]
            topic.tell(now)
        if self._to_tell:
            self._timers.at(now.monotonic, self._tell)

    @property
    def telling(self) -> bool:
        """Whether topics in memory are still to be told of a change."""
        return bool(self._to_tell)

    # Topics in memory

    def attach(self, topic: "TopicPolicies") -> None:
        """It is to be told of changes."""
        topic.attached = True
        self._in_use.setdefault(topic.name.namespace, {})[topic] = None

    def detach(self, topic: "TopicPolicies") -> None:
        """It need not be any more: rows that nobody uses are let go."""
        topic.attached = False
        self._to_tell.pop(topic, None)
        topics = self._in_use.get(topic.name.namespace, {})
        topics.pop(topic, None)
        self._rows.pop(policies_key(str(topic.name.base)), None)
        if not topics:
            self._in_use.pop(topic.name.namespace, None)
            self._rows.pop(namespace_key(topic.name.namespace), None)


class TopicPolicies:
    """What holds for one topic: each value looked up once, until something changes."""

    __slots__ = ("_changes", "_key", "_listeners", "_policies", "_told", "_values", "attached", "name")

    def __init__(self, policies: Policies, name: TopicName) -> None:
        self._policies = policies
        self.name = name
        self._key = policies_key(str(name.base))
        self.attached = False
        """Whether it is told of changes: the topic is in memory."""
        self._values: dict[Policy[Any], tuple[Any, Level]] = {}
        self._changes = policies.changes
        """As of when these are."""
        self._told = -1
        """As of when whoever listens was told."""
        self._listeners: list[Callable[[Now], None]] = []

    def get(self, policy: Policy[T]) -> T:
        """The value that holds."""
        return self.found(policy)[0]

    def found(self, policy: Policy[T]) -> tuple[T, Level]:
        """The value that holds, and who has set it."""
        if self._changes != self._policies.changes:
            self._changes = self._policies.changes
            self._values.clear()
        found = self._values.get(policy)
        if found is None:
            found = self._values[policy] = self._find(policy)
        return found

    def subscription_rate(self, subscription: str) -> tuple[DispatchRate, Level]:
        """Return the dispatch rate in effect for one subscription, and the level that sets it."""
        settings = self._policies.settings
        found = subscription_rate_in_effect(subscription, self._levels(), settings)
        return SUBSCRIPTION_DISPATCH_RATE.read(found.value), found.level

    def _find(self, policy: Policy[T]) -> tuple[T, Level]:
        if self._policies.of_topic(self._key, keep=self.attached):
            return self._look_up(policy)
        shared, key = self._policies.of_namespaces, (self.name.namespace, policy)
        found = shared.get(key)
        if found is None:
            found = shared[key] = self._look_up(policy)
        return found

    def _look_up(self, policy: Policy[T]) -> tuple[T, Level]:
        found = in_effect(policy.row, self._levels(), self._policies.settings)
        return policy.read(found.value), found.level

    def _levels(self) -> Levels:
        return self._policies.levels(self.name.namespace, self.name, keep=self.attached)

    @property
    def is_told(self) -> bool:
        """Whether whoever listens knows of the last change."""
        return self._told == self._policies.changes

    def on_change(self, told: Callable[[Now], None]) -> None:
        """Call this when a value may be another one."""
        self._listeners.append(told)

    def tell(self, now: Now) -> None:
        """Let whoever listens do what follows."""
        self._told = self._policies.changes
        for told in list(self._listeners):
            told(now)


def _nobody(name: str, before: Row, row: Row, now: Now) -> None:
    """Nobody looks after topics that are not in memory."""
