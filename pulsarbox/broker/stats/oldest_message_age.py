"""Age of a subscription's oldest unacknowledged message, computed on request.

The publish time is in the entry's header, which must be read unless the entry is in the tail cache. Reads per second
are limited, so a value may only be known at a later request.
"""

from typing import Final, Protocol

from pulsarbox.broker.policies.kinds.message_ttl import age_begins
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry, Position

READS_A_SECOND: Final = 50


class AgedSubscription(Protocol):
    """A subscription and the age of its oldest message, as far as it is known."""

    cursor: ManagedCursor | None
    oldest: tuple[tuple[int, int], int | None] | None
    looking: bool


class OldestMessageAges:
    """Looks up the oldest messages of the subscriptions of one box."""

    def __init__(self) -> None:
        self._second = 0
        self._reads = 0
        """Reads in the second ``_second``."""

    def begins(self, sample: AgedSubscription, reader: LedgerReader, now: Now) -> int | None:
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
            self._look_up(sample, position, reader, now)
            known = sample.oldest
        return known[1] if known is not None else None

    def _look_up(self, sample: AgedSubscription, position: Position, reader: LedgerReader, now: Now) -> None:
        if position.entry_id not in reader.ledger.tail.get(position.ledger_id, ()):
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
        reader.read_entry(position, found, unread, now)
