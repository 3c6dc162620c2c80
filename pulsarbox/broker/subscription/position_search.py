"""Binary search for a position by the contents of entries, with one read per step for entries not in memory."""

from collections.abc import Callable

from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.clock import Now
from pulsarbox.storage.compacted_ledger import CompactedView, unpack_compacted
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, Position

Found = Callable[[Position, Now], None]
Failed = Callable[[Exception], None]
Told = Callable[[bool, Now], None]
"""Receives whether the predicate holds."""
Look = Callable[[int, Told, Now], None]
"""Evaluates the predicate at an index, possibly later."""


def find_first_since(
    reader: LedgerReader,
    publish_time: int,
    found: Found,
    failed: Failed,
    now: Now,
    *,
    compaction: TopicCompaction | None = None,
) -> None:
    """Find the first entry published at ``publish_time`` (ms since 1970) or later, or the end of the log.

    Publish times come from clients and may not be in order; like Pulsar, the search assumes that they are.
    ``compaction``: also search the entries of its compacted view that were trimmed from the log.
    """

    def is_it(entry: Entry) -> bool:
        return entry.publish_time >= publish_time

    def in_log(when: Now) -> None:
        find_first(reader, Position(-1, -1), is_it, found, failed, when)

    view = None if compaction is None else compaction.view
    if compaction is not None and view is not None and view.entries:
        _InView(compaction, view, reader.ledger, is_it).find(found, in_log, failed, now)
    else:
        in_log(now)


class _InView:
    """Search of the compacted view's entries that the log no longer has; the view is pinned meanwhile."""

    def __init__(
        self, compaction: TopicCompaction, view: CompactedView, ledger: ManagedLedger, is_it: Callable[[Entry], bool]
    ) -> None:
        self._compaction = compaction
        self._view = view
        self._ledger = ledger
        self._is_it = is_it
        self._found: Position | None = None
        """The first match so far."""

    def find(self, found: Found, not_found: Callable[[Now], None], failed: Failed, now: Now) -> None:
        """Find the first match before the start of the log, or call ``not_found``."""
        compaction, view = self._compaction, self._view
        compaction.pin(view, self)

        def look(index: int, told: Told, _: Now) -> None:
            def read(entries: list[Entry], error: Exception | None, at: Now) -> None:
                if error is not None:
                    compaction.unpin(view, self)
                    failed(error)
                else:
                    told(not self._is_before(entries[0]), at)

            compaction.read(view, index, read)

        def ended(_: int, when: Now) -> None:
            compaction.unpin(view, self)
            found(self._found, when) if self._found is not None else not_found(when)

        _bisect(view.entries, look, ended, now)

    def _is_before(self, stored: Entry) -> bool:
        """Return whether the match lies after an entry of the view."""
        entry = unpack_compacted(stored).entry
        position = Position(entry.ledger_id, entry.entry_id)
        if position >= self._ledger.first_position():
            return False  # the log itself is searched for these
        if self._is_it(entry):
            self._found = position
            return False
        return True


def find_first(
    reader: LedgerReader,
    after: Position,
    is_it: Callable[[Entry], bool],
    found: Found,
    failed: Failed,
    now: Now,
    unread: Callable[[Position], bool] | None = None,
) -> None:
    """Find the first confirmed entry after ``after`` for which ``is_it`` holds, or the end of the log.

    ``is_it`` must hold for all entries after the first match. ``unread`` decides for an entry that cannot be read.
    """
    ledger = reader.ledger
    spans = [
        (info.ledger_id, after.entry_id + 1 if info.ledger_id == after.ledger_id else 0, info.confirmed)
        for info in ledger.ledgers.values()
        if info.ledger_id >= after.ledger_id
    ]
    spans = [(ledger_id, first, end) for ledger_id, first, end in spans if first < end]
    behind = ledger.next(*ledger.last_confirmed)  # entries confirmed during the search are ignored

    def position_of(index: int) -> Position:
        for ledger_id, first, end in spans:
            if index < end - first:
                return Position(ledger_id, first + index)
            index -= end - first
        return behind

    def look(index: int, told: Told, when: Now) -> None:
        position = position_of(index)

        def lost(error: Exception, at: Now) -> None:
            if unread is None:
                failed(error)
            else:
                told(unread(position), at)

        reader.read_entry(position, lambda entry, at: told(is_it(entry), at), lost, when)

    count = sum(end - first for _, first, end in spans)
    _bisect(count, look, lambda index, when: found(position_of(index), when), now)


def _bisect(count: int, look: Look, found: Callable[[int, Now], None], now: Now) -> None:
    """Find the first of ``count`` indexes at which the predicate holds, else ``count``. ``look`` may answer later."""

    def step(low: int, high: int, when: Now) -> None:
        # The predicate is false before low and true from high on.
        if low == high:
            found(low, when)
            return
        middle = (low + high) // 2
        look(middle, lambda it, at: step(low, middle, at) if it else step(middle + 1, high, at), when)

    step(0, count, now)
