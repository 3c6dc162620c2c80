"""The first unacknowledged entry over all cursors of a topic."""

from collections.abc import Iterable, Iterator

from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic

START = Position(-1, -1)


def expiring(stored: StoredTopic) -> Iterator[ManagedCursor]:
    """Return the cursors whose messages can expire: all but that of compaction, as in Pulsar."""
    return (cursor for cursor in stored.cursors.values() if cursor.name != COMPACTION_SUBSCRIPTION)


def first_unacked(
    ledger: ManagedLedger, cursors: Iterable[ManagedCursor], since: Position = START
) -> tuple[Position, str] | None:
    """Return the first readable entry after ``since`` that a cursor has not acknowledged, and the cursor's name."""
    last = ledger.read_end
    behind = [cursor for cursor in cursors if cursor.mark_delete < last]
    places = [(cursor.next_unacked(max(cursor.mark_delete, since)), cursor.name) for cursor in behind]
    return min((place for place in places if place[0] <= last), default=None)
