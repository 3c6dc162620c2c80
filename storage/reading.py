"""Answering a read: which entries are taken, where the list ends, when it is an error. The same for every engine."""

import struct
from collections.abc import Callable, Iterable

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.format import RECORD_PREFIX
from pulsarbox.storage.index import Segment
from pulsarbox.storage.record import Entry, unpack_entry


class Answer:
    """The entries of a read so far. An engine feeds it segments until it is no longer ``open``."""

    __slots__ = ("_last", "_ledger_id", "_left_out", "_room", "entries", "next_entry", "open")

    def __init__(self, request: ReadRequest) -> None:
        self._ledger_id = request.ledger_id
        self._last = request.last
        self._room = request.max_bytes
        self._left_out = list(reversed(request.left_out))
        self.entries: list[Entry] = []
        self.next_entry = request.first
        self.open = True
        if request.first > request.last:
            raise PersistenceError(f"read of ledger {request.ledger_id} from {request.first} to {request.last}")

    def take(self, segments: Iterable[Segment], value_at: Callable[[int], bytes | memoryview]) -> None:
        """Take what is wanted of ``segments``, which start at ``next_entry``, out of the batches ``value_at`` gives.

        Raises EntryDamaged where not even the first entry can be given; a later bad one closes the answer.
        """
        for segment in segments:
            try:
                self._take_of(segment, value_at)
            except EntryDamaged:
                self.open = False
                if not self.entries:
                    raise
            except (PersistenceError, struct.error) as error:
                self.open = False
                if not self.entries:
                    # Where the batch is not what the index says, nothing of it can be found.
                    last = segment.first_entry + len(segment.offsets) - 1
                    raise EntryDamaged(self._ledger_id, self.next_entry, last, str(error)) from error
            if not self.open:
                return

    def _take_of(self, segment: Segment, value_at: Callable[[int], bytes | memoryview]) -> None:
        first, offsets = segment.first_entry, segment.offsets
        end = min(first + len(offsets), self._last + 1)
        value: bytes | memoryview | None = None
        while (border := self._border(end)) > self.next_entry:
            if value is None:
                value = value_at(segment.position)
            for offset in offsets[self.next_entry - first : border - first]:
                if not self._take_one(value, offset):
                    self.open = False
                    return
        self.open = self.next_entry <= self._last

    def _border(self, end: int) -> int:
        """Step over what is left out; up to where all is wanted from there on, ``end`` at most."""
        left_out = self._left_out
        while left_out and left_out[-1][0] <= self.next_entry:
            self.next_entry = max(self.next_entry, left_out.pop()[1] + 1)
        return min(end, left_out[-1][0]) if left_out else end

    def nothing_more(self) -> None:
        """No engine has the next entry. Raises PersistenceError where it is the first."""
        self.open = False
        if not self.entries:
            raise PersistenceError(f"entry {self._ledger_id}:{self.next_entry} does not exist")

    def _take_one(self, value: bytes | memoryview, offset: int) -> bool:
        body_size = RECORD_PREFIX.unpack_from(value, offset)[3]
        if self.entries and body_size > self._room:
            return False
        entry = unpack_entry(value, offset)
        if entry.ledger_id != self._ledger_id or entry.entry_id != self.next_entry:
            raise PersistenceError(f"the index leads to entry {entry.ledger_id}:{entry.entry_id}")
        self.entries.append(entry)
        self._room -= body_size
        self.next_entry += 1
        return True
