"""Age of a subscription's oldest unacknowledged message, computed on request.

The publish time is in the entry's header, which must be read unless the entry is in the tail cache. Reads per second
are limited, so a value may only be known at a later request.
"""

from typing import TYPE_CHECKING, Final, cast

from pulsarbox.broker.policies.kinds.message_ttl import age_begins
from pulsarbox.clock import Now
from pulsarbox.storage.record import Entry, Position

if TYPE_CHECKING:
    from pulsarbox.broker.stats.topic_samples import SubscriptionSample
    from pulsarbox.broker.topic.topic import PersistentTopic

READS_A_SECOND: Final = 50


class Ages:
    """Looks up the oldest messages of the subscriptions of one box."""

    def __init__(self) -> None:
        self._second = 0
        self._reads = 0
        """Reads in the second ``_second``."""

    def begins(self, sample: "SubscriptionSample", now: Now) -> int | None:
        """Return when the age of the oldest unacknowledged message begins (ms since 1970); None if unknown or none.

        While the oldest message is being read, returns the value of the previous one.
        """
        cursor = sample.cursor
        if cursor is None or cursor.mark_delete >= cursor.ledger.read_end:
            return None
        position = cursor.next_unacked(cursor.mark_delete)
        if position > cursor.ledger.read_end:
            return None
        known = sample.oldest
        if (known is None or known[0] != position) and not sample.looking:
            self._look_up(sample, position, now)
            known = sample.oldest
        return known[1] if known is not None else None

    def _look_up(self, sample: "SubscriptionSample", position: Position, now: Now) -> None:
        topic = cast("PersistentTopic", sample.topic.topic)
        if position.entry_id not in topic.ledger.tail.get(position.ledger_id, ()):
            if int(now.monotonic) != self._second:
                self._second, self._reads = int(now.monotonic), 0
            if self._reads >= READS_A_SECOND:
                return
            self._reads += 1

        def found(entry: Entry, when: Now) -> None:
            sample.looking = False
            sample.oldest = position, age_begins(entry)

        def unread(error: Exception, when: Now) -> None:
            sample.looking = False
            sample.oldest = position, None  # damaged or trimmed meanwhile, which its dispatch reports

        sample.looking = True
        topic.read_entry(position, found, unread, now)
