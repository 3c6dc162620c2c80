"""Answers to reads that remember the position of each entry. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import groupby

from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.member import Piece
from pulsarbox.storage.entry_index import IndexSegment
from pulsarbox.storage.entry_read import Answer
from pulsarbox.storage.record import Entry, Unpacker


class PlacedAnswer(Answer):
    """An answer whose entries are known by the batches that hold them. Nothing is cached."""

    __slots__ = ("_firsts", "_positions")

    def __init__(self, request: ReadRequest, unpacker: Unpacker) -> None:
        super().__init__(request, unpacker)
        self._firsts: list[int] = []
        self._positions: list[int] = []

    def collect(self, segments: Iterable[IndexSegment], value_at: Callable[[int], bytes | memoryview]) -> None:
        """See Answer."""
        taken = list(segments)
        self._firsts += [segment.first_entry for segment in taken]
        self._positions += [segment.position for segment in taken]
        super().collect(taken, value_at)

    def pieces(self) -> list[Piece]:
        """Return the entries by batch."""
        return [Piece(position, list(entries)) for position, entries in groupby(self.entries, self._position_of)]

    def _position_of(self, entry: Entry) -> int:
        return self._positions[bisect_right(self._firsts, entry.entry_id) - 1]
