"""Reads of a topic's confirmed entries by position, from memory or the store."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from pulsarbox.broker.persistence.read_queue import Answer, ReadQueue
from pulsarbox.broker.subscription.consumer import HeldEntry, held_of
from pulsarbox.clock import Now
from pulsarbox.errors import MetadataError
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, Position

Unread = Callable[[Exception, Now], None]
"""Receives the error of a read, and when it failed."""
Located = Callable[[Position, int, int, Now], None]
"""Receives a mark-delete position with its running totals: messages and bytes."""
LocatedWithin = Callable[[HeldEntry | None, Position, int, int, Now], None]
"""Receives also the batch at the position, if some of its messages are acknowledged."""

log = logging.getLogger(__name__)


class LedgerReader:
    """Reads entries of one managed ledger. Results are passed on at once if they are in memory, else after a read."""

    __slots__ = ("_reads", "in_flight", "ledger")

    def __init__(self, ledger: ManagedLedger, reads: ReadQueue) -> None:
        self.ledger = ledger
        self._reads = reads
        self.in_flight = 0
        """Reads in flight; the connection that requested one may be closed by now."""

    def read_entry(self, position: Position, found: Callable[[Entry, Now], None], failed: Unread, now: Now) -> None:
        """Pass a confirmed entry to ``found``: at once if it is in memory, else after a read."""
        entry = self.ledger.tail.get(position.ledger_id, {}).get(position.entry_id)
        if entry is not None:
            found(entry, now)
            return

        def answer(entries: list[Entry], error: Exception | None, when: Now) -> None:
            if error is not None:
                failed(error, when)
            else:
                found(entries[0], when)

        self.read_run(position, position.entry_id, 1, answer)

    def read_run(self, first: Position, last: int, max_bytes: int, answer: Answer) -> None:
        """Read confirmed entries of one ledger, up to entry ``last`` or ``max_bytes``. Prevents unloading meanwhile."""
        self.in_flight += 1

        def read(entries: list[Entry], error: Exception | None, now: Now) -> None:
            self.in_flight -= 1
            answer(entries, error, now)

        self._reads.ask(first.ledger_id, first.entry_id, last, max_bytes, read)

    def look_up(
        self, position: Position, found: Callable[[HeldEntry | None, Now], None], failed: Unread, now: Now
    ) -> None:
        """Pass to ``found`` what an acknowledgement needs to know of an entry; None if there is no such entry."""
        info = self.ledger.ledgers.get(position.ledger_id)
        if info is None or not 0 <= position.entry_id < info.confirmed:
            found(None, now)
            return

        def lost(error: Exception, when: Now) -> None:
            if position.ledger_id in self.ledger.ledgers:
                failed(error, when)
            else:  # trimmed during the read, so every subscription has acknowledged it
                found(None, when)

        self.read_entry(position, lambda entry, when: found(held_of(entry), when), lost, now)

    def locate(self, position: Position, located: Located, lost: Unread, now: Now) -> None:
        """Pass to ``located`` the mark-delete position before ``position`` or the next entry, with its totals."""
        ledger = self.ledger
        at = ledger.clamp(*position)
        if at > ledger.last_confirmed:
            located(ledger.last_confirmed, ledger.confirmed_messages, ledger.confirmed_bytes, now)
            return
        info = ledger.ledgers[at.ledger_id]
        if at.entry_id == 0:
            located(Position(at.ledger_id, -1), info.messages_before, info.bytes_before, now)
            return

        def found(held: HeldEntry | None, when: Now) -> None:
            if held is None:
                lost(MetadataError(f"Entry {at.ledger_id}:{at.entry_id} cannot be read"), when)
            elif at.ledger_id not in ledger.ledgers:  # trimmed while it was read
                first = next(iter(ledger.ledgers.values()))
                located(ledger.first_position(), first.messages_before, first.bytes_before, when)
            else:
                mark = Position(at.ledger_id, at.entry_id - 1)
                located(mark, held.total_messages - held.batch_size, held.total_bytes - held.size, when)

        self.look_up(at, found, lost, now)

    def locate_within(
        self, position: Position, ack_set: Sequence[int], located: LocatedWithin, lost: Unread, now: Now
    ) -> None:
        """As ``locate``, and before it read the batch at ``position`` if a set names some of its messages.

        ``located`` gets None as the batch without a set, and if it cannot be read.
        """

        def found(batch: HeldEntry | None, when: Now) -> None:
            self.locate(position, partial(located, batch), lost, when)

        def unread(error: Exception, when: Now) -> None:
            log.error("a cursor is set to the beginning of batch %s: %s", position, error)
            found(None, when)

        if ack_set:
            self.look_up(position, found, unread, now)
        else:
            found(None, now)
