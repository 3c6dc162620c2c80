"""The number of copies wanted of each ledger, from the rows of a checkpoint. For the thread of the auditor."""

import json
from typing import Any, Final

from pulsarbox.broker.policies.kinds.persistence import PERSISTENCE
from pulsarbox.broker.policies.precedence import in_effect, levels_of
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import COMPACTING, namespace_key, owner_key, policies_key
from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.keeping.expected_entries import CopiesOf

_COMPACTED: Final = (b"compacted/", COMPACTING.encode())


class WantedCopies:
    """Builds the function that returns the write quorum of a ledger. Called with rows, see ``Wanted``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, rows: Rows) -> CopiesOf:
        """Return the function as of the rows of a checkpoint."""
        return _Quorums(rows, self._settings).of


class _Quorums:
    """Write quorums by ledger, resolved once per topic."""

    def __init__(self, rows: Rows, settings: Settings) -> None:
        self._rows = rows
        self._settings = settings
        self._known: dict[str, int] = {}
        self._topic_of_view = {
            int(ledger, 16): int(topic, 16)
            for prefix in _COMPACTED
            for key, _ in rows.items(prefix)
            for topic, ledger in [key[len(prefix) :].split(b"/")]
        }
        """Topic ids of the ledgers of compacted views, which have no owner row."""

    def of(self, ledger_id: int) -> int:
        """Return the number of copies of a ledger; the box's default for packages and unknown ledgers."""
        owner = self._rows.get(owner_key(self._topic_of_view.get(ledger_id, ledger_id)).encode())
        if owner is None:
            return self._settings.managedLedgerDefaultWriteQuorum
        topic: str = json.loads(owner)
        if topic not in self._known:
            self._known[topic] = self._of_topic(topic)
        return self._known[topic]

    def _of_topic(self, topic: str) -> int:
        name = parse_topic(topic)
        own = self._row(policies_key(str(name.base))) if self._settings.topicLevelPoliciesEnabled else {}
        levels = levels_of(own, self._row(namespace_key(name.namespace)))
        return PERSISTENCE.read(in_effect(PERSISTENCE.row, levels, self._settings).value).write_quorum

    def _row(self, key: str) -> dict[str, Any]:
        value = self._rows.get(key.encode())
        row: dict[str, Any] = {} if value is None else json.loads(value)
        return row
