"""The last message that anybody can see: before the first open transaction, and not of an aborted one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarbox.clock import Now
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.transactions import aborted_of

if TYPE_CHECKING:
    from pulsarbox.broker.topic import PersistentTopic

Found = Callable[[Position, int, Now], None]
"""Where it is (entry -1: nowhere), and how many messages its batch has, -1 where it is none."""


def readable_end(topic: "PersistentTopic") -> Position:
    """The last entry before the first open transaction, aborted or not."""
    readable = topic.stored.open.readable
    return topic.ledger.last_confirmed if readable is None else readable[0]


def last_visible(topic: "PersistentTopic") -> Position:
    """Where it is; entry -1 of the first ledger where there is none."""
    ledger, stored = topic.ledger, topic.stored
    last = readable_end(topic)
    for info in reversed(ledger.ledgers.values()):
        if info.ledger_id > last.ledger_id or not info.confirmed:
            continue
        at = min(info.confirmed - 1, last.entry_id) if info.ledger_id == last.ledger_id else info.confirmed - 1
        if stored.has_aborted:
            runs = list(aborted_of(topic.core.catalog, stored.topic_id, info.ledger_id))
            for run in reversed(runs):
                if run.first <= at <= run.last:
                    at = run.first - 1
        if at >= 0:
            return Position(info.ledger_id, at)
    return ledger.first_position()


def find_last_visible(topic: "PersistentTopic", found: Found, now: Now) -> None:
    """The same, with the size of its batch: at once where that is known, else after a read."""
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

        topic.read_entry(at, read, lambda error: found(at, -1, now), now)
