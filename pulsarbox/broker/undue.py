"""The entries of a backlog that are not due yet: what a quota with ``excludeDelayed`` does not count.

They are known from the headers: of those that were there before, each is read once; what is published since is added.
So a topic whose quota counts everything has nothing of this.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.record import Entry, Position

if TYPE_CHECKING:
    from pulsarbox.broker.backlog import Backlog
    from pulsarbox.broker.topic import PersistentTopic

ENTRIES_AT_ONCE: Final = 500
BYTES_AT_ONCE: Final = 1 << 20


class Undue:
    """Of one topic in memory."""

    __slots__ = ("_backlog", "_by_place", "_by_time", "_sizes", "_topic", "known", "on", "reading", "size")

    def __init__(self, topic: "PersistentTopic", backlog: "Backlog") -> None:
        self._topic = topic
        self._backlog = backlog
        self.on = False
        """Somebody wants to know."""
        self.known = False
        """All that was there has been read."""
        self.reading = False
        self.size = 0
        """Bytes of the entries, as of the last ``settle``."""
        self._sizes: dict[tuple[int, int], int] = {}
        self._by_time: list[tuple[int, tuple[int, int]]] = []
        self._by_place: list[tuple[int, int]] = []

    def begin(self) -> None:
        """From now on they are wanted."""
        self.on = True
        if not self.known and not self.reading:
            self.reading = True
            self._topic.core.under_way += 1
            self._topic.core.commits.after_commit(self._read)  # what is on its way to the disk is there then

    def end(self) -> None:
        """They are not wanted any more."""
        self.on = self.known = False
        self.size = 0
        self._sizes.clear()
        self._by_time.clear()
        self._by_place.clear()

    def add(self, entry: Entry, now: Now) -> None:
        """An entry of the backlog."""
        place = (entry.ledger_id, entry.entry_id)
        if entry.deliver_at > now.wall and place not in self._sizes:
            size = self._sizes[place] = len(entry.body)
            self.size += size
            heappush(self._by_time, (entry.deliver_at, place))
            heappush(self._by_place, place)

    def settle(self, mark: Position, now: Now) -> int:
        """Forget what is due, and what everybody has acknowledged up to ``mark``; when the next is due (ms since 1970),
        0 for none."""
        while self._by_place and self._by_place[0] <= mark:
            self.size -= self._sizes.pop(heappop(self._by_place), 0)
        while self._by_time and (self._by_time[0][0] <= now.wall or self._by_time[0][1] not in self._sizes):
            self.size -= self._sizes.pop(heappop(self._by_time)[1], 0)
        return self._by_time[0][0] if self._by_time else 0

    # What was there before

    def _read(self, now: Now) -> None:
        marks = [cursor.mark_delete for cursor in self._topic.stored.cursors.values()]
        self._read_behind(min(marks, default=self._topic.ledger.last_confirmed), self._topic.ledger.last_confirmed, now)

    def _read_behind(self, after: Position, last: Position, now: Now) -> None:
        topic = self._topic
        first = topic.ledger.clamp(*topic.ledger.next(*after)) if topic.ledger.ledgers else last
        if first > last or not topic.stored.in_use or not self.on:
            self._finished(now)
            return
        end = topic.ledger.ledgers[first.ledger_id].confirmed - 1
        through = min(first.entry_id + ENTRIES_AT_ONCE - 1, end)

        def answer(entries: list[Entry], error: Exception | None, when: Now) -> None:
            for entry in entries:
                self.add(entry, when)
            at = Position(first.ledger_id, through)
            if entries:
                at = Position(entries[-1].ledger_id, entries[-1].entry_id)
            elif isinstance(error, EntryDamaged):
                at = Position(error.ledger_id, error.last)
            self._read_behind(at, last, when)

        topic.core.reads.ask(first.ledger_id, first.entry_id, through, BYTES_AT_ONCE, answer)

    def _finished(self, now: Now) -> None:
        self.reading = False
        self.known = self.on
        self._topic.core.under_way -= 1
        if self._topic.stored.in_use:
            self._backlog.aged(now)
