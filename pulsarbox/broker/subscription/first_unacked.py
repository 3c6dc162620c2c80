"""What the cursors of a topic have not acknowledged yet."""

from collections.abc import Iterable, Iterator

from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic

START = Position(-1, -1)


def expiring(stored: StoredTopic) -> Iterator[ManagedCursor]:
    """The cursors for which messages get too old. What is not compacted yet does not, as in Pulsar."""
    return (cursor for cursor in stored.cursors.values() if cursor.name != COMPACTION_SUBSCRIPTION)


def first_unacked(
    ledger: ManagedLedger, cursors: Iterable[ManagedCursor], since: Position = START
) -> tuple[Position, str] | None:
    """The first readable entry from a place on that one of the cursors has not acknowledged, and that one's name."""
    last = ledger.read_end
    behind = [cursor for cursor in cursors if cursor.mark_delete < last]
    places = [(cursor.next_unacked(max(cursor.mark_delete, since)), cursor.name) for cursor in behind]
    return min((place for place in places if place[0] <= last), default=None)
