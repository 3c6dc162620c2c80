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

    __slots__ = ("_last", "_ledger_id", "_room", "entries", "next_entry", "open")

    def __init__(self, request: ReadRequest) -> None:
        self._ledger_id = request.ledger_id
        self._last = request.last
        self._room = request.max_bytes
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
                value = value_at(segment.position)
                for offset in segment.offsets:
                    if not self._take_one(value, offset):
                        self.open = False
                        return
            except EntryDamaged:
                self.open = False
                if not self.entries:
                    raise
                return
            except (PersistenceError, struct.error) as error:
                self.open = False
                if not self.entries:
                    # Where the batch is not what the index says, nothing of it can be found.
                    last = segment.first_entry + len(segment.offsets) - 1
                    raise EntryDamaged(self._ledger_id, self.next_entry, last, str(error)) from error
                return

    def nothing_more(self) -> None:
        """No engine has the next entry. Raises PersistenceError where it is the first."""
        self.open = False
        if not self.entries:
            raise PersistenceError(f"entry {self._ledger_id}:{self.next_entry} does not exist")

    def _take_one(self, value: bytes | memoryview, offset: int) -> bool:
        if self.next_entry > self._last:
            return False
        body_size = RECORD_PREFIX.unpack_from(value, offset)[3]
        if self.entries and body_size > self._room:
            return False
        entry = unpack_entry(value, offset)
        if entry.ledger_id != self._ledger_id or entry.entry_id != self.next_entry:
            raise PersistenceError(f"the index leads to entry {entry.ledger_id}:{entry.entry_id}")
        self.entries.append(entry)
        self._room -= body_size
        self.next_entry += 1
        return self.next_entry <= self._last
