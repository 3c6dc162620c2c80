"""Visibility in a topic: entries before the first open transaction that no aborted transaction wrote."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import Catalog
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import AckedRange, Entry, Position
from pulsarbox.storage.recovery import StoredTopic
from pulsarbox.storage.transactions import aborted_within, last_aborted
from pulsarbox.storage.transactions import visible_runs as visible_entries

ALL: Final = 1 << 62
"""More entries than any ledger has."""
Found = Callable[[Position, int, Now], None]
"""Receives a position (entry -1 for none), and the number of messages in its batch, -1 if it is not one."""


def visible_runs(
    stored: StoredTopic, catalog: Catalog, ledger_id: int, first: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the visible runs (first, end) among entries of one ledger."""
    ledger = stored.ledger
    info = ledger.ledgers.get(ledger_id)
    end = min(end, 0 if info is None else ledger.readable_of(info))
    aborted: Iterable[AckedRange] = ()
    if stored.has_aborted and first < end:
        aborted = aborted_within(catalog, stored.topic_id, ledger_id, first, end)
    return visible_entries(ledger_id, first, end, ledger.read_limit, aborted)


def next_visible(stored: StoredTopic, catalog: Catalog, at: Position) -> tuple[Position, int] | None:
    """Return the first visible entry at or after a position, and the end of its run; None if there is none yet."""
    for ledger_id in stored.ledger.ledgers:
        if ledger_id >= at.ledger_id:
            begin = at.entry_id if ledger_id == at.ledger_id else 0
            for first, end in visible_runs(stored, catalog, ledger_id, begin, ALL):
                return Position(ledger_id, first), end
    return None


def last_visible(stored: StoredTopic, catalog: Catalog) -> Position:
    """Return the position of the last visible entry; entry -1 of the first ledger if there is none."""
    ledger = stored.ledger
    for ledger_id, info in reversed(ledger.ledgers.items()):
        last = ledger.readable_of(info) - 1
        while last >= 0:
            run = last_aborted(catalog, stored.topic_id, ledger_id, last) if stored.has_aborted else None
            if run is None or run.last < last:
                return Position(ledger_id, last)
            last = run.first - 1
    return ledger.first_position()


def find_last_visible(stored: StoredTopic, catalog: Catalog, reader: LedgerReader, found: Found, now: Now) -> None:
    """Pass on the last visible position and its batch size: at once if known, else after a read."""
    ledger = stored.ledger
    if not stored.open and not stored.has_aborted:
        found(ledger.last_confirmed, ledger.last_batch, now)
        return
    at = last_visible(stored, catalog)
    if at == ledger.last_confirmed:
        found(at, ledger.last_batch, now)
    elif at.entry_id < 0:
        found(at, -1, now)
    else:

        def read(entry: Entry, when: Now) -> None:
            found(at, entry.num_messages if entry.flags & EntryFlag.BATCH else -1, when)

        reader.read_entry(at, read, lambda error, when: found(at, -1, when), now)
