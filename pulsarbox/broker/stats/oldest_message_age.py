"""How old the oldest message is that a subscription has not acknowledged: asked for by whoever looks, never kept up.

When an entry was published stands in its header, so that somebody has to read it, unless it is one of the recent ones
in memory. So many are read a second at most; who asks again is told more.
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
    """Finds the oldest messages of the subscriptions of one box."""

    def __init__(self) -> None:
        self._second = 0
        self._reads = 0
        """In that second."""

    def begins(self, sample: "SubscriptionSample", now: Now) -> int | None:
        """From when on the oldest unacknowledged message gets old (ms since 1970), as far as it is known by now.

        While a newer one is being read, the one before it. None without a backlog too.
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

        def unread(error: Exception) -> None:
            sample.looking = False
            sample.oldest = position, None  # it is damaged, or gone meanwhile: whoever sends it says so

        sample.looking = True
        topic.read_entry(position, found, unread, now)
