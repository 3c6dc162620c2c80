"""Paged browsing of stored messages, forward and backward, without cursors, consumers or acknowledgements.

A walk reads a run of entries, decodes them in a thread, and repeats until the page is full or a bound is reached. In
either case the page has the place where the next one begins.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.broker.replay.entry_messages import InspectedMessage, Opened, Schemas, open_entry
from pulsarbox.broker.transactions.visibility import visible_runs
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.protocol.violations import ProtocolError
from pulsarbox.storage.record import Entry, Position

if TYPE_CHECKING:
    from pulsarbox.broker.topic.topic import PersistentTopic

READ_ENTRIES: Final = 200
READ_BYTES: Final = 1 << 20
"""Bytes per read; a single entry may be larger."""
Row = dict[str, Any]
WHOLE: Final = -1
"""Batch index of a place that means its entire entry."""


class PagePosition(NamedTuple):
    """A message at which a page starts, in the direction of its walk."""

    ledger_id: int
    entry_id: int
    batch_index: int = WHOLE


@dataclass(slots=True)
class WalkLimits:
    """Limits of a walk."""

    rows: int
    entries: int = 5000
    read: int = 16 << 20
    """Bytes of entries read."""
    opened: int = 32 << 20
    """Bytes of decompressed messages."""
    opened_of_one: int = 16 << 20
    """Bytes of decompressed messages of one entry; larger entries are not opened."""
    shown: int = 4 << 20
    """Characters of payloads in the rows."""
    milliseconds: int = 2000


class BrowsedMessage(NamedTuple):
    """One message of a page, or one run of damaged entries."""

    ledger_id: int
    entry_id: int
    """The first one of a run of damaged entries."""
    batch_index: int
    """Index in the batch; WHOLE if the row is for the entire entry."""
    row: Row
    """The output of ``Make``."""


Wanted = Callable[[InspectedMessage], bool]
Make = Callable[[InspectedMessage, str], Row]
"""Makes the row of a message; the text says why its entry could not be opened, if so."""
Beside = Callable[[str, Callable[[], Any], Callable[[Any, Exception | None], None]], None]


@dataclass(slots=True)
class MessagePage:
    """The result of a walk."""

    found: list[BrowsedMessage] = field(default_factory=list)
    """Messages in the order of the walk."""
    on: PagePosition | None = None
    """Start of the next page in the same direction; None if there is none and never will be."""
    back: PagePosition | None = None
    """Start of the page in the opposite direction from this walk's start."""
    ended: bool = False
    """The walk reached the current end of the topic; otherwise the page is full or a bound was reached."""
    scanned: int = 0
    """Entries examined."""


class TopicWalk:
    """One walk through the visible entries of a topic."""

    def __init__(
        self,
        topic: "PersistentTopic",
        schemas: Schemas,
        wanted: Wanted | None,
        make: Make,
        bounds: WalkLimits,
        beside: Beside,
        *,
        forward: bool,
    ) -> None:
        """``beside`` runs a function in a thread; ``wanted`` and ``make`` are called there."""
        self._topic = topic
        self._make = make
        self._ledger = topic.ledger
        self._schemas = schemas
        self._wanted = wanted
        self._bounds = bounds
        self._run_in_thread = beside
        self._forward = forward
        self._end = topic.ledger.read_end
        self._page = MessagePage()
        self._left = bounds.rows
        self._deadline = 0.0
        self._read_bytes = 0
        self._opened = 0
        self._shown = 0

    def begin(
        self,
        place: PagePosition,
        done: Callable[[MessagePage, Now], None],
        failed: Callable[[Exception], None],
        now: Now,
    ) -> None:
        """Start the walk at ``place``, which need not exist."""
        self._done, self._failed, self._now = done, failed, now
        self._deadline = now.monotonic + self._bounds.milliseconds / 1000
        start = self._clamped(place)
        self._page.back = self._other_way(start if start is not None else place)
        self._continue(start)

    # Places

    def _clamped(self, place: PagePosition) -> PagePosition | None:
        at = Position(place.ledger_id, place.entry_id)
        if self._forward:
            found = self._ledger.clamp(*at)
            return place if found == at else PagePosition(*found)
        if at > self._end:
            there = self._end.entry_id >= 0 and self._end.ledger_id in self._ledger.ledgers
            return PagePosition(*self._end) if there else self._before(self._end)
        info = self._ledger.ledgers.get(at.ledger_id)
        if info is not None and 0 <= at.entry_id < info.confirmed:
            return place
        return self._before(at)

    def _before(self, at: Position) -> PagePosition | None:
        """Return the place of the entry before a position; None if there is none."""
        ledgers = self._ledger.ledgers
        info = ledgers.get(at.ledger_id)
        if info is not None and info.confirmed and at.entry_id > 0:
            return PagePosition(at.ledger_id, min(at.entry_id, info.confirmed) - 1)
        order = sorted(ledgers)
        for ledger_id in reversed(order[: bisect_left(order, at.ledger_id)]):
            if confirmed := ledgers[ledger_id].confirmed:
                return PagePosition(ledger_id, confirmed - 1)
        return None

    def _other_way(self, place: PagePosition) -> PagePosition | None:
        """Return where a walk in the opposite direction begins to adjoin this one."""
        if self._forward:
            if place.batch_index > 0:
                return place._replace(batch_index=place.batch_index - 1)
            return self._before(Position(place.ledger_id, place.entry_id))
        if place.batch_index >= 0:
            return place._replace(batch_index=place.batch_index + 1)
        return PagePosition(place.ledger_id, place.entry_id + 1)

    # Walking

    def _continue(self, place: PagePosition | None) -> None:
        page, bounds = self._page, self._bounds
        page.on = place
        if place is None or (self._forward and Position(*place[:2]) > self._end):
            page.ended = True
            self._done(page, self._now)
            return
        over = page.scanned >= bounds.entries or self._read_bytes >= bounds.read or self._opened >= bounds.opened
        if over or self._left <= 0 or self._shown >= bounds.shown or self._now.monotonic > self._deadline:
            self._done(page, self._now)
            return
        info = self._ledger.ledgers[place.ledger_id]
        mean = max(info.size // max(info.entries, 1), 1)
        count = max(min(READ_ENTRIES, READ_BYTES // mean, bounds.entries - page.scanned, 2 * self._left + 8), 1)
        if self._forward:
            last = self._end.entry_id if place.ledger_id == self._end.ledger_id else info.confirmed - 1
            self._read(place, place.entry_id, min(place.entry_id + count - 1, last))
        else:
            self._read(place, max(place.entry_id - count + 1, 0), place.entry_id)

    def _read(self, place: PagePosition, first: int, last: int) -> None:
        def answer(entries: list[Entry], error: Exception | None, when: Now) -> None:
            self._now = when
            if error is not None:
                self._lost(place, first, last, error)
                return
            self._read_bytes += sum(len(entry.body) for entry in entries)
            reached = entries[-1].entry_id
            if not self._forward and reached < last:  # the read hit its limit: retry with the half nearest to ``place``
                self._read(place, max(reached + 1, (first + last + 1) // 2), last)
                return
            self._open(place, entries if self._forward else entries[::-1])

        room = max(min(READ_BYTES, self._bounds.read - self._read_bytes), 1)
        self._topic.reader.read_run(Position(place.ledger_id, first), last, room, answer)

    def _lost(self, place: PagePosition, first: int, last: int, error: Exception) -> None:
        """Handle a failed read: skip trimmed entries and report damaged ones."""
        if place.ledger_id not in self._ledger.ledgers:  # trimmed meanwhile
            self._continue(self._clamped(place))
        elif not isinstance(error, EntryDamaged):
            self._failed(error)
        elif not self._forward and error.last < last:
            self._read(place, error.last + 1, last)
        else:
            self._page.scanned += 1
            at = first if self._forward else max(first, error.first)
            end = min(error.last, last)
            row = {"damaged": error.reason, "entries": end - at + 1}
            self._page.found.append(BrowsedMessage(place.ledger_id, at, WHOLE, row))
            self._left -= 1
            self._continue(self._next(Position(place.ledger_id, end if self._forward else at)))

    def _next(self, at: Position) -> PagePosition | None:
        """Return the place of the next entry in the direction of the walk."""
        return PagePosition(*self._ledger.next(*at)) if self._forward else self._before(at)

    def _open(self, place: PagePosition, entries: list[Entry]) -> None:
        behind = self._next(entries[-1].position)
        if self._topic.stored.has_aborted:
            ids = [entry.entry_id for entry in entries]
            runs = list(
                visible_runs(self._topic.stored, self._topic.core.catalog, place.ledger_id, min(ids), max(ids) + 1)
            )
            seen = [each for each in entries if any(first <= each.entry_id < end for first, end in runs)]
            self._page.scanned += len(entries) - len(seen)
            if not seen:
                self._continue(behind)
                return
            entries = seen
        opening = _Opening(self, place, entries)

        def opened(result: object, error: Exception | None) -> None:
            if error is not None:
                self._failed(error)
                return
            page = self._page
            page.found += opening.found
            page.scanned += opening.looked_at
            self._left -= len(opening.found)
            self._opened += opening.opened
            self._shown += opening.shown
            at = opening.stopped_at
            self._continue(at if at is not None else behind)

        self._run_in_thread("browse", opening.run, opened)


class _Opening:
    """Decodes the entries of one read in a thread; accesses no mutable broker state."""

    def __init__(self, walk: TopicWalk, place: PagePosition, entries: list[Entry]) -> None:
        self._place = place
        self._entries = entries
        self._forward = walk._forward
        self._wanted = walk._wanted
        self._schemas = walk._schemas
        self._source = str(walk._topic.name)
        self._rows = walk._left
        self._room = walk._bounds.opened - walk._opened
        self._make = walk._make
        self._most = walk._bounds.opened_of_one
        self._shown_room = walk._bounds.shown - walk._shown
        self.found: list[BrowsedMessage] = []
        self.looked_at = 0
        self.opened = 0
        self.shown = 0
        self.stopped_at: PagePosition | None = None
        """Position to resume at within these entries; None if all were examined."""

    def run(self) -> None:
        """Decode entries until the page is full."""
        for entry in self._entries:
            start = self._place.batch_index if entry.position == self._place[:2] else WHOLE
            if self.opened >= self._room or self.shown >= self._shown_room or len(self.found) >= self._rows:
                self.stopped_at = PagePosition(entry.ledger_id, entry.entry_id, start)
                return
            opened = opened_or_not(entry, self._source, self._schemas, self._most)
            self.looked_at += 1
            self.opened += sum(len(each.payload or b"") for each in opened.messages)
            if self._take(entry, opened, start):
                return

    def _take(self, entry: Entry, opened: Opened, start: int) -> bool:
        """Add the matching messages of an entry; return whether the page is full before its end."""
        messages = opened.messages
        if start >= 0:
            messages = [each for each in messages if (each.index >= start if self._forward else each.index <= start)]
        for each in messages if self._forward else messages[::-1]:
            if len(self.found) >= self._rows:
                self.stopped_at = PagePosition(entry.ledger_id, entry.entry_id, each.index)
                return True
            if self._wanted is None or self._wanted(each):
                row = self._make(each, opened.whole)
                self.found.append(BrowsedMessage(entry.ledger_id, entry.entry_id, each.index, row))
                self.shown += len(row.get("payload") or "")
        return False


def opened_or_not(entry: Entry, source: str, schemas: Schemas, most: int) -> Opened:
    """Return the messages of an entry; if its metadata is malformed, an empty message and the reason."""
    try:
        return open_entry(entry, source, schemas, most)
    except ProtocolError as error:
        from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata

        nothing = MessageMetadata(producer_name="", sequence_id=0, publish_time=entry.publish_time)
        return Opened(
            [InspectedMessage(entry, nothing, nothing, WHOLE, None, source, schemas)], f"it cannot be read: {error}"
        )
