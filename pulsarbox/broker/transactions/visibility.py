"""Visibility in a topic: entries before the first open transaction that no aborted transaction wrote."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pulsarbox.clock import Now
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import AckedRange, Entry, Position
from pulsarbox.storage.transactions import aborted_within, last_aborted
from pulsarbox.storage.transactions import visible_runs as visible_entries

if TYPE_CHECKING:
    from pulsarbox.broker.topic.topic import PersistentTopic

ALL: Final = 1 << 62
"""More entries than any ledger has."""
Found = Callable[[Position, int, Now], None]
"""Receives a position (entry -1 for none), and the number of messages in its batch, -1 if it is not one."""


def visible_runs(topic: "PersistentTopic", ledger_id: int, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the visible runs (first, end) among entries of one ledger."""
    info = topic.ledger.ledgers.get(ledger_id)
    end = min(end, 0 if info is None else topic.ledger.readable_of(info))
    aborted: Iterable[AckedRange] = ()
    if topic.stored.has_aborted and first < end:
        aborted = aborted_within(topic.core.catalog, topic.stored.topic_id, ledger_id, first, end)
    return visible_entries(ledger_id, first, end, topic.ledger.read_limit, aborted)


def next_visible(topic: "PersistentTopic", at: Position) -> tuple[Position, int] | None:
    """Return the first visible entry at or after a position, and the end of its run; None if there is none yet."""
    for ledger_id in topic.ledger.ledgers:
        if ledger_id >= at.ledger_id:
            begin = at.entry_id if ledger_id == at.ledger_id else 0
            for first, end in visible_runs(topic, ledger_id, begin, ALL):
                return Position(ledger_id, first), end
    return None


def last_visible(topic: "PersistentTopic") -> Position:
    """Return the position of the last visible entry; entry -1 of the first ledger if there is none."""
    stored, catalog = topic.stored, topic.core.catalog
    for ledger_id, info in reversed(topic.ledger.ledgers.items()):
        last = topic.ledger.readable_of(info) - 1
        while last >= 0:
            run = last_aborted(catalog, stored.topic_id, ledger_id, last) if stored.has_aborted else None
            if run is None or run.last < last:
                return Position(ledger_id, last)
            last = run.first - 1
    return topic.ledger.first_position()


def find_last_visible(topic: "PersistentTopic", found: Found, now: Now) -> None:
    """Pass on the last visible position and its batch size: at once if known, else after a read."""
    ledger, stored = topic.ledger, topic.stored
    if not stored.open and not stored.has_aborted:
        found(ledger.last_confirmed, ledger.last_batch, now)
        return
    at = last_visible(topic)
    if at == ledger.last_confirmed:
        found(at, ledger.last_batch, now)
    elif at.entry_id < 0:
        found(at, -1, now)
    else:

        def read(entry: Entry, when: Now) -> None:
            found(at, entry.num_messages if entry.flags & EntryFlag.BATCH else -1, when)

        topic.read_entry(at, read, lambda error, when: found(at, -1, when), now)
