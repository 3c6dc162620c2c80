"""Finding a place by what stands in the entries: binary search, a read a step where memory does not have them."""

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
    find_first(topic, Position(-1, -1), lambda entry: entry.publish_time >= publish_time, found, failed, now)


def find_first(
    topic: "PersistentTopic",
    after: Position,
    is_it: Callable[[Entry], bool],
    found: Found,
    failed: Failed,
    now: Now,
    unread: Callable[[Position], bool] | None = None,
) -> None:
    """The first confirmed entry behind ``after`` that ``is_it`` says of, as it does of all behind that one; behind the
    last one where there is none. ``unread`` is asked of an entry that cannot be read."""
    ledger = topic.ledger
    spans = [
        (info.ledger_id, after.entry_id + 1 if info.ledger_id == after.ledger_id else 0, info.confirmed)
        for info in ledger.ledgers.values()
        if info.ledger_id >= after.ledger_id
    ]
    spans = [(ledger_id, first, end) for ledger_id, first, end in spans if first < end]
    behind = ledger.next(*ledger.last_confirmed)  # what is confirmed while we search is not looked at

    def position_of(index: int) -> Position:
        for ledger_id, first, end in spans:
            if index < end - first:
                return Position(ledger_id, first + index)
            index -= end - first
        return behind

    def step(low: int, high: int, when: Now) -> None:
        # Entries before low are not it, those from high on are.
        if low == high:
            found(position_of(low), when)
            return
        middle = (low + high) // 2
        position = position_of(middle)

        def known(it: bool, at: Now) -> None:
            step(low, middle, at) if it else step(middle + 1, high, at)

        def lost(error: Exception) -> None:
            if unread is None:
                failed(error)
            else:
                known(unread(position), when)

        topic.read_entry(position, lambda entry, at: known(is_it(entry), at), lost, when)

    step(0, sum(end - first for _, first, end in spans), now)
