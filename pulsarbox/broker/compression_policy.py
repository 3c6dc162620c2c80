"""The compression at rest of each ledger, chosen by the housekeeper's thread from the last checkpoint's rows.

The core only counts changes. A changed policy takes effect with the next checkpoint, which is requested at once.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.policies.kinds.compression_at_rest import COMPRESSION_AT_REST as POLICY
from pulsarbox.broker.policies.precedence import in_effect, levels_of, set_values
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.plugins.compression.rest import NONE
from pulsarbox.storage.catalog import Row, namespace_key, owner_key, policies_key, topic_key
from pulsarbox.storage.engine import Choose, Compressing, CompressionChoice, Rows

_NAMESPACES: Final = namespace_key("").encode()
_TOPICS: Final = policies_key("").encode()


class _Set(NamedTuple):
    """The stored policies that set compression at rest."""

    generation: int
    namespaces: dict[str, Row]
    topics: dict[str, Row]
    """Keyed by topic name without partition."""


class CompressionPolicy:
    """Chooses what to compress at rest, and tracks when that choice may have changed."""

    def __init__(self, settings: Settings, disabled: Callable[[], frozenset[tuple[str, str]]]) -> None:
        """``disabled`` returns the disabled plugins."""
        self._settings = settings
        self._disabled = disabled
        self._changes = 1
        self._made = self._stored = 1
        """Values of ``_changes`` at the last checkpoint made, and at the last one on disk."""
        self._set: _Set | None = None
        self.held = False
        """Whether compression is paused because the box is stopping or its store must not change."""
        self.changed: Callbacks[[]] = Callbacks()
        """Called after a change, which takes effect with the next checkpoint."""

    # Called by the core's thread

    def hold(self) -> None:
        """Pause compression."""
        self.held = True

    def resume(self) -> None:
        """Resume compression."""
        self.held = False

    def apply_settings(self, settings: Settings) -> None:
        """Apply changed settings."""
        before, self._settings = self._settings, settings
        if _of(before) != _of(settings):
            self._has_changed()

    def policies_changed(self, before: Row, row: Row) -> None:
        """Note a change of a namespace's or topic's policies."""
        if _values(before) != _values(row):
            self._has_changed()

    def made(self) -> None:
        """Record that a checkpoint with the current rows was made."""
        self._made = self._changes

    def stored(self) -> None:
        """Record that the checkpoint is on disk."""
        self._stored = self._made

    def compressing(self, waited_for: Callable[[], bool]) -> Compressing | None:
        """Return what the next reclaim step needs in order to compress; None while compression is paused.

        ``waited_for``, which the housekeeper's thread calls: whether another chore waits for the step to end.
        """
        if self.held:
            return None
        percent = self._settings.compressionAtRestCpuPercent
        return Compressing(self._chooser, percent, self._stored, lambda: self.held or waited_for())

    def _has_changed(self) -> None:
        self._changes += 1
        self.changed()

    # Called by the housekeeper's thread

    def _chooser(self, rows: Rows) -> Choose:
        settings, generation = self._settings, self._stored
        found = self._set
        if found is None or found.generation != generation:
            found = self._set = _read(rows, generation)
        topics = found.topics if settings.topicLevelPoliciesEnabled else {}
        if settings.compressionAtRest == NONE and not found.namespaces and not topics:
            return _not_compressed
        return _Choices(rows, settings, found.namespaces, topics, self._disabled()).of


class _Choices:
    """Compression choices by ledger, resolved once per topic."""

    def __init__(
        self,
        rows: Rows,
        settings: Settings,
        namespaces: dict[str, Row],
        topics: dict[str, Row],
        disabled: frozenset[tuple[str, str]],
    ) -> None:
        self._rows = rows
        self._settings = settings
        self._namespaces = namespaces
        self._topics = topics
        self._disabled = disabled
        self._known: dict[str, CompressionChoice | None] = {}

    def of(self, ledger_id: int) -> CompressionChoice | None:
        """Return the choice for a ledger; see Choose."""
        owner = self._rows.get(owner_key(ledger_id).encode())
        if owner is None:  # compacted ledgers have no owner row; they are rewritten too often to be worth compressing
            return None
        topic: str = json.loads(owner)
        if topic not in self._known:
            self._known[topic] = self._of_topic(topic)
        return self._known[topic]

    def _of_topic(self, topic: str) -> CompressionChoice | None:
        name = parse_topic(topic)
        levels = levels_of(self._topics.get(str(name.base), {}), self._namespaces.get(name.namespace, {}))
        codec = POLICY.read(in_effect(POLICY.row, levels, self._settings).value)
        row = self._rows.get(topic_key(topic).encode())
        if row is None or codec == NONE or ("compression", codec) in self._disabled:
            return None
        return CompressionChoice(json.loads(row)["id"], codec)


def _read(rows: Rows, generation: int) -> _Set:
    """Return the rows of namespaces and topics that set the policy, without parsing the others."""
    namespaces: dict[str, Row] = {}
    topics: dict[str, Row] = {}
    for prefix, found, place in (
        (_NAMESPACES, namespaces, POLICY.row.namespace),
        (_TOPICS, topics, POLICY.row.topic),
    ):
        assert place is not None
        key = place.key.encode()
        for name, value in rows.items(prefix):
            if key in value:
                found[name[len(prefix) :].decode()] = json.loads(value)
    return _Set(generation, namespaces, topics)


def _values(row: Row) -> list[Any]:
    """Return the values that a namespace's or topic's row sets; the two kinds use different keys."""
    return [each.value for each in set_values(POLICY.row, levels_of(row, row), "")]


def _of(settings: Settings) -> tuple[Any, ...]:
    return settings.compressionAtRest, settings.topicLevelPoliciesEnabled, settings.pluginsDisabled


def _not_compressed(_: int) -> CompressionChoice | None:
    return None
