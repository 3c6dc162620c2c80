"""Unsubscribed messages of a topic, which no subscription has covered, and their retention.

A durable subscription covers every message stored while it exists or before it was created. The topic's row has the
position up to which deleted subscriptions have covered it. Readers, whose subscriptions are not durable, and the cursor
of compaction cover nothing.
"""

from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
from pulsarbox.broker.dead_letter.retention_warning import is_subscribed
from pulsarbox.broker.policies.kinds.retention import UNLIMITED
from pulsarbox.broker.policies.kinds.unsubscribed_retention import OFF, UNSUBSCRIBED_TIME
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.services import HasCatalog, HasCommits
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import topic_key
from pulsarbox.storage.ledger import LedgerInfo
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic

COVERED: Final = "covered"
"""Field of a topic's row: the last position covered by a deleted subscription."""
NEVER: Final = 1 << 62
_STEP_BYTES: Final = 4 << 10
_STEP_SHARE: Final = 16
"""A topic is counted again, which writes a row, once it has grown by 1/_STEP_SHARE and at least by _STEP_BYTES."""


class Unsubscribed(NamedTuple):
    """The messages of a topic that unsubscribed retention keeps, and until when."""

    messages: int
    bytes: int
    until: int
    """When the oldest ones expire (ms since 1970); 0: never."""


class UnsubscribedServices(HasCatalog, HasCommits, Protocol):
    """The services of the broker that account for unsubscribed messages."""

    @property
    def unsubscribed(self) -> UnsubscribedIndex:
        """Index of the unsubscribed messages of all topics."""


class TopicUnsubscribed:
    """The unsubscribed messages of one stored topic, in memory or not."""

    __slots__ = (
        "_catalog", "_commits", "_index", "_is_system", "_ledger", "_policies", "_stored", "count_at", "covered",
    )  # fmt: skip

    def __init__(self, services: UnsubscribedServices, stored: StoredTopic, policies: TopicPolicies) -> None:
        self._catalog = services.catalog
        self._commits = services.commits
        self._index = services.unsubscribed
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        self._is_system = is_system(stored.name)
        row = services.catalog.get(topic_key(stored.name)) or {}
        self.covered = Position(*row.get(COVERED, (-1, -1)))
        """Deleted subscriptions have covered the topic up to this position."""
        self.count_at = 0 if self.time_ms else NEVER
        """The topic's running total of bytes at which ``count`` must be called."""

    @property
    def time_ms(self) -> int:
        """How long messages are kept, in ms; OFF if Pulsar's rules apply, UNLIMITED without a time limit."""
        return OFF if self._is_system or is_subscribed(self._stored) else self._policies.get(UNSUBSCRIBED_TIME)

    @property
    def holds(self) -> bool:
        """Whether unsubscribed retention keeps any messages of the topic."""
        newest = self._ledger.newest
        return newest is not None and self.is_in(newest) and self.time_ms != OFF

    def is_in(self, info: LedgerInfo) -> bool:
        """Return whether a ledger has unsubscribed messages."""
        return info.entries > 0 and (info.ledger_id, info.entries - 1) > self.covered

    @property
    def oldest(self) -> LedgerInfo | None:
        """The oldest ledger with unsubscribed messages."""
        return next((info for info in self._ledger.ledgers.values() if self.is_in(info)), None)

    def find(self) -> Unsubscribed | None:
        """Return the messages that unsubscribed retention keeps, or None if it keeps none."""
        time_ms, oldest = self.time_ms, self.oldest
        if time_ms == OFF or oldest is None:
            return None
        ledger = self._ledger
        written = oldest.closed or ledger.last_append_time
        return Unsubscribed(
            ledger.messages_behind(oldest.messages_before),
            sum(info.size for info in ledger.ledgers.values() if info.ledger_id >= oldest.ledger_id),
            written + time_ms if time_ms != UNLIMITED else 0,
        )

    def count(self, now: Now) -> None:
        """Update the topic's unsubscribed bytes in the index of the box."""
        active, oldest = self.time_ms != OFF, self.oldest
        size = 0
        if active and oldest is not None:
            size = sum(info.size for info in self._ledger.ledgers.values() if info.ledger_id >= oldest.ledger_id)
        self._index.put(self._stored, size, oldest, now)
        self.count_at = self._ledger.total_bytes + max(_STEP_BYTES, size // _STEP_SHARE) if active else NEVER

    def unsubscribe(self, now: Now) -> None:
        """Handle the deletion of a subscription: after the last one, only later messages are unsubscribed."""
        if not is_subscribed(self._stored):
            self.covered = self._ledger.last_confirmed
            key = topic_key(self._stored.name)
            row = self._catalog.get(key)
            if row is not None:
                self._commits.put_row(key, row | {COVERED: list(self.covered)})
        self.count(now)
