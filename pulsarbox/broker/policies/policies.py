"""Policies of namespaces and topics, stored as rows, and their effective values: topic > namespace > broker.

A change applies to all later reads. Topics in memory are also notified to act on it at once: a few in the turn of the
change, the others in later turns.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Final, TypeVar

from pulsarbox.broker.callbacks import Callbacks
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
"""Topics notified of a change in one turn: each takes about 0.2 ms, and may trim its ledgers and write rows."""


class Policies:
    """The policies of all namespaces and topics. ``put`` writes a row in the open batch."""

    def __init__(
        self, catalog: Catalog, settings: Settings, put: Callable[[str, Row | None], None], timers: Timers
    ) -> None:
        self._catalog = catalog
        self.settings = settings
        self._put = put
        self._timers = timers
        self.changes = 0
        """Incremented by each change, which invalidates the values that topics have cached."""
        self.of_namespaces: dict[tuple[str, Policy[Any]], tuple[Any, Level]] = {}
        """Cache of the effective values for topics of a namespace without policies of their own."""
        self._to_notify: dict[TopicPolicies, None] = {}
        """Topics still to be notified of a change."""
        self.row_changed: Callbacks[str, Row, Row, Now] = Callbacks()
        """Called with a namespace or topic name, its previous row and its new row."""
        self._rows: dict[str, Row] = {}
        """Cache of decoded rows for topics in memory."""
        self._in_use: dict[str, dict[TopicName, dict[TopicPolicies, None]]] = {}
        """Policies of the topics in memory, by namespace, then by topic: those of all its partitions in memory."""

    def of(self, name: TopicName) -> "TopicPolicies":
        """Return the policies of a topic, in memory or not."""
        return TopicPolicies(self, name)

    def row(self, key: str, *, keep: bool = False) -> Row:
        """Return a row of policies, empty if there is none. ``keep``: cache it for a topic in memory."""
        row = self._rows.get(key)
        if row is None:
            row = self._catalog.get(key) or {}
            if keep:
                self._rows[key] = row
        return row

    def of_topic(self, key: str, *, keep: bool = False) -> Row:
        """Return a topic's own row, empty if topic-level policies are disabled."""
        return self.row(key, keep=keep) if self.settings.topicLevelPoliciesEnabled else {}

    def levels(
        self, namespace: str, topic: TopicName | None = None, *, keep: bool = False, everywhere: bool = False
    ) -> Levels:
        """Return the rows that set policies of a topic, or of topics of a namespace that set none themselves.

        ``everywhere``: without those that the topic has for this cluster only.
        """
        own = self.of_topic(policies_key(str(topic.base)), keep=keep) if topic is not None else {}
        if everywhere:
            own = {GLOBAL: own.get(GLOBAL, {})}
        return levels_of(own, self.row(namespace_key(namespace), keep=keep))

    # Changes

    def put_namespace(self, namespace: str, row: Row | None, now: Now | None = None) -> None:
        """Write the policies of a namespace; None if it is deleted."""
        key = namespace_key(namespace)
        before = self._catalog.get(key) or {}
        self._put(key, row)
        self._rows.pop(key, None)
        self._changed(chain(*self._in_use.get(namespace, {}).values()), now)
        if now is not None:
            self.row_changed(f"{namespace}/", before, row or {}, now)

    def set_topic(self, name: TopicName, key: str, value: Any, now: Now, *, everywhere: bool = False) -> None:
        """Set one policy of a topic (all partitions); None removes it. ``everywhere``: a global policy."""
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
        """Write the policies of a topic; None removes them all."""
        key = policies_key(str(name.base))
        before = self._catalog.get(key)
        if row is None and before is None:
            return
        self._put(key, row)
        self._rows.pop(key, None)
        self._changed(self._in_use.get(name.namespace, {}).get(name.base, ()), now)
        self.row_changed(str(name.base), before or {}, row or {}, now)

    def apply_settings(self, settings: Settings, now: Now | None = None) -> None:
        """Apply changed settings, the broker-level values."""
        self.settings = settings
        self._changed(chain(*(each for topics in self._in_use.values() for each in topics.values())), now)

    def _changed(self, topics: "Iterable[TopicPolicies]", now: Now | None) -> None:
        self.changes += 1
        self.of_namespaces.clear()
        if now is None:
            return
        waiting = bool(self._to_notify)
        self._to_notify.update(dict.fromkeys(topics))
        if not waiting:
            self._notify(now)

    def _notify(self, now: Now) -> None:
        for _ in range(TOLD_AT_ONCE):
            topic = next(iter(self._to_notify), None)
            if topic is None:
                return
            del self._to_notify[topic]
            topic.notify(now)
        if self._to_notify:
            self._timers.at(now.monotonic, self._notify)

    @property
    def telling(self) -> bool:
        """Whether topics in memory are still to be notified of a change."""
        return bool(self._to_notify)

    # Topics in memory

    def attach(self, topic: "TopicPolicies") -> None:
        """Start notifying a topic of changes."""
        topic.attached = True
        self._in_use.setdefault(topic.name.namespace, {}).setdefault(topic.name.base, {})[topic] = None

    def detach(self, topic: "TopicPolicies") -> None:
        """Stop notifying a topic, and evict cached rows that are no longer needed."""
        topic.attached = False
        self._to_notify.pop(topic, None)
        topics, base = self._in_use.get(topic.name.namespace, {}), topic.name.base
        partitions = topics.get(base, {})
        partitions.pop(topic, None)
        self._rows.pop(policies_key(str(base)), None)
        if not partitions:
            topics.pop(base, None)
        if not topics:
            self._in_use.pop(topic.name.namespace, None)
            self._rows.pop(namespace_key(topic.name.namespace), None)


class TopicPolicies:
    """Effective policies of one topic, cached until a change."""

    __slots__ = ("_changes", "_key", "_listeners", "_notified", "_policies", "_values", "attached", "name")

    def __init__(self, policies: Policies, name: TopicName) -> None:
        self._policies = policies
        self.name = name
        self._key = policies_key(str(name.base))
        self.attached = False
        """Whether it is notified of changes because the topic is in memory."""
        self._values: dict[Policy[Any], tuple[Any, Level]] = {}
        self._changes = policies.changes
        """``Policies.changes`` when the values were cached."""
        self._notified = -1
        """``Policies.changes`` when the listeners were last notified."""
        self._listeners: list[Callable[[Now], None]] = []

    def get(self, policy: Policy[T]) -> T:
        """Return the value in effect."""
        return self.found(policy)[0]

    def found(self, policy: Policy[T]) -> tuple[T, Level]:
        """Return the value in effect, and the level that sets it."""
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
    def is_notified(self) -> bool:
        """Whether the listeners were notified of the last change."""
        return self._notified == self._policies.changes

    def on_change(self, told: Callable[[Now], None]) -> None:
        """Add a listener, to be called when a value may have changed."""
        self._listeners.append(told)

    def notify(self, now: Now) -> None:
        """Notify the listeners of a change."""
        self._notified = self._policies.changes
        for told in list(self._listeners):
            told(now)
