"""Finding a place by time: binary search over a topic's entries, a read a step where memory does not have them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarbox.clock import Now
from pulsarbox.storage.record import Entry, Position

if TYPE_CHECKING:
    from pulsarbox.broker.topic import PersistentTopic

Found = Callable[[Position, Now], None]
Failed = Callable[[Exception], None]


def find_first_since(topic: "PersistentTopic", publish_time: int, found: Found, failed: Failed, now: Now) -> None:
    """The first entry published at ``publish_time`` (ms since 1970) or later; behind the last one where none was.

    Publish times are the clients' own and need not rise from entry to entry: like Pulsar, the search takes them as if
    they did.
    """
    ledgers = [(info.ledger_id, info.confirmed) for info in topic.ledger.ledgers.values() if info.confirmed]

    def position_of(index: int) -> Position:
        for ledger_id, entries in ledgers:
            if index < entries:
                return Position(ledger_id, index)
            index -= entries
        return topic.ledger.next(*topic.ledger.last_confirmed)

    def step(low: int, high: int, when: Now) -> None:
        # Entries before low are older, those from high on are not.
        if low == high:
            found(position_of(low), when)
            return
        middle = (low + high) // 2

        def read(entry: Entry, at: Now) -> None:
            if entry.publish_time < publish_time:
                step(middle + 1, high, at)
            else:
                step(low, middle, at)

        topic.read_entry(position_of(middle), read, failed, when)

    step(0, sum(entries for _, entries in ledgers), now)
