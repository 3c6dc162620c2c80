"""Messages of a topic that no subscription has covered: which they are, and how long unsubscribed retention keeps them.

A durable subscription covers every message of its topic that is stored while the subscription exists, and every one
that was there when it was created. A position in the topic's row says up to where deleted subscriptions have covered
it. Neither readers, whose subscriptions leave nothing behind, nor the cursor of compaction cover anything.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.broker.dead_letter.retention_warning import is_subscribed
from pulsarbox.broker.policies.kinds.retention import UNLIMITED
from pulsarbox.broker.policies.kinds.unsubscribed_retention import OFF, UNSUBSCRIBED_TIME
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import topic_key
from pulsarbox.storage.ledger import LedgerInfo
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic

if TYPE_CHECKING:
    from pulsarbox.broker.core import Core

COVERED: Final = "covered"
"""In a topic's row: the last position that a subscription has covered which is deleted."""
NEVER: Final = 1 << 62
_STEP_BYTES: Final = 4 << 10
_STEP_SHARE: Final = 16
"""The count of a topic's bytes lags behind by one part in so many, and by the step at least: each count is a row."""


class Unsubscribed(NamedTuple):
    """The messages of a topic that unsubscribed retention keeps."""

    messages: int
    bytes: int
    until: int
    """When the first of them are deleted for their age (ms since 1970); 0: never."""


class TopicUnsubscribed:
    """Of one stored topic, in memory or not."""

    __slots__ = ("_core", "_is_system", "_ledger", "_policies", "_stored", "count_at", "covered")

    def __init__(self, core: "Core", stored: StoredTopic, policies: TopicPolicies) -> None:
        self._core = core
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        self._is_system = is_system(stored.name)
        row = core.catalog.get(topic_key(stored.name)) or {}
        self.covered = Position(*row.get(COVERED, (-1, -1)))
        """Deleted subscriptions have covered the topic up to here."""
        self.count_at = 0 if self.time_ms else NEVER
        """The topic's total of bytes at which ``count`` is to be called."""

    @property
    def time_ms(self) -> int:
        """How long its messages are kept; OFF where Pulsar's rules hold, UNLIMITED where time does not end it."""
        return OFF if self._is_system or is_subscribed(self._stored) else self._policies.get(UNSUBSCRIBED_TIME)

    @property
    def holds(self) -> bool:
        """Whether the rule keeps anything here."""
        newest = self._ledger.newest
        return newest is not None and self.is_in(newest) and self.time_ms != OFF

    def is_in(self, info: LedgerInfo) -> bool:
        """Whether a ledger has messages that no subscription has covered."""
        return info.entries > 0 and (info.ledger_id, info.entries - 1) > self.covered

    @property
    def oldest(self) -> LedgerInfo | None:
        """The oldest ledger with such messages."""
        return next((info for info in self._ledger.ledgers.values() if self.is_in(info)), None)

    def find(self) -> Unsubscribed | None:
        """Return the messages that the rule keeps, or None if it keeps none."""
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
        """Bring the box's count of such bytes up to what the topic holds."""
        active, oldest = self.time_ms != OFF, self.oldest
        size = 0
        if active and oldest is not None:
            size = sum(info.size for info in self._ledger.ledgers.values() if info.ledger_id >= oldest.ledger_id)
        self._core.unsubscribed.put(self._stored, size, oldest, now)
        self.count_at = self._ledger.total_bytes + max(_STEP_BYTES, size // _STEP_SHARE) if active else NEVER

    def unsubscribe(self, now: Now) -> None:
        """A subscription was deleted: where it was the last, only messages to come are not covered."""
        if not is_subscribed(self._stored):
            self.covered = self._ledger.last_confirmed
            key = topic_key(self._stored.name)
            row = self._core.catalog.get(key)
            if row is not None:
                self._core.commits.put_row(key, row | {COVERED: list(self.covered)})
        self.count(now)
