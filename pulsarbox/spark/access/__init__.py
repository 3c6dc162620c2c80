"""How entries are read: in place where the data directory is at hand, else over the network.

Decided where it is read, by a worker: what a driver can reach need not be what a worker can.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from pulsarbox.errors import EntryDamaged
from pulsarbox.spark.access import extractor, mapped_reader, wire_reader
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.topic_segments import Lost, Place, Reach, Segment

log = logging.getLogger(__name__)

Entry = wire_reader.Entry
Piece = wire_reader.Piece
Again = Callable[[Segment], list[Segment]]
"""Asks the box which of a segment's entries are still there."""


def entries(segment: Segment, reach: Reach, lost: Callable[[Lost], None], again: Again) -> Iterator[list[Entry]]:
    """What a segment has, in order, verified: ledger, entry and bytes as the client sent them.

    ``lost`` is told what is missing or damaged, and may raise. Raises NotInPlace where it must be read in place and
    cannot be, and what the broker tells.
    """
    if reach.is_wire:
        yield from wire_reader.entries(segment, reach, lost)
        return
    left = segment
    try:
        store = mapped_reader.store_of(reach.data_dir, segment.instance, reach.plugins_dir)
        for found, end in _in_place(store, segment, lost, again):
            yield found
            left = rest_of(segment, found[-1], end)
    except extractor.NotInPlace as error:
        if reach.access == "mmap":
            raise
        log.info("%s is read over the network: %s", segment.topic, error)
        yield from wire_reader.entries(left, reach, lost)


def pieces_of(segments: Sequence[Segment], reach: Reach, lost: Callable[[Lost], None], again: Again) -> Iterator[Piece]:
    """What several segments have. The entries of each are in order; where they are read in place, topics that take
    turns on the disk do so here. Otherwise as ``entries``.
    """
    left = list(segments)
    if reach.is_wire or not _is_at_hand(left, reach):
        yield from wire_reader.pieces({number: each for number, each in enumerate(left) if each.visible}, reach, lost)
        return
    if reach.data_dir:
        with suppress(extractor.NotInPlace):  # which is said where it is read one by one
            yield from _swept(segments, left, reach)
    for number, segment in enumerate(left):
        if segment.visible:
            for found in entries(segment, reach, lost, again):
                yield number, found


def _is_at_hand(segments: Sequence[Segment], reach: Reach) -> bool:
    """Whether the data directory is, as far as that matters: who wants nothing else is told what is wrong with it."""
    if reach.access == "mmap" or not segments:
        return True
    try:
        mapped_reader.store_of(reach.data_dir, segments[0].instance, reach.plugins_dir)
    except extractor.NotInPlace as error:
        log.info("%s is read over the network: %s", segments[0].topic, error)
        return False
    return True


def _swept(segments: Sequence[Segment], left: list[Segment], reach: Reach) -> Iterator[Piece]:
    """What can be had in one go; afterwards ``left`` is what remains of each segment."""
    wanted = [number for number, each in enumerate(segments) if each.end is None and len(each.visible) == 1]
    wanted = [number for number in wanted if segments[number].instance == segments[wanted[0]].instance]
    if not wanted:
        return
    store = mapped_reader.store_of(reach.data_dir, segments[wanted[0]].instance, reach.plugins_dir)
    for piece in store.sweep({number: _want(segments[number]) for number in wanted}):
        if isinstance(piece, Block):
            yield piece
            continue
        number, found, end = piece
        # Before it is yielded: where who reads it has had enough, nobody asks what is left.
        left[number] = _behind(segments[number], end)
        if found:
            yield number, found


def _want(segment: Segment) -> mapped_reader.Want:
    is_whole = not (segment.from_batch or segment.to_batch or segment.compacted)
    return mapped_reader.Want(segment.ledger, *segment.visible[0], is_whole)


def rest_of(segment: Segment, last: Entry, at: int) -> Segment:
    """What of a segment is behind its entry before ``at``, which was published as ``last``."""
    if segment.end is not None:
        return segment._replace(start=Place(last[0], last[1] + 1))
    return _behind(segment, at)


def _behind(segment: Segment, at: int) -> Segment:
    hidden = tuple((max(low, at), high) for low, high in segment.hidden if high >= at)
    return segment._replace(first=at, hidden=hidden, from_batch=0)


def _in_place(
    store: mapped_reader.Store, segment: Segment, lost: Callable[[Lost], None], again: Again
) -> Iterator[tuple[list[Entry], int]]:
    """Entries, and the first that is not among them."""
    asked = -1
    for first, last in segment.visible:
        at = first
        while at <= last:
            try:
                found, end = store.read(segment.ledger, at, last)
            except EntryDamaged as error:
                end = min(error.last, last) + 1
                _tell(segment, at, end, f"are damaged: {error.reason}", lost)
                found = []
            except mapped_reader.Gone as error:
                if asked == at:
                    raise extractor.NotInPlace(f"{error}, but the box has it") from error
                asked = at
                end = _still_there(segment, at, last, again)
                if end > at:
                    _tell(segment, at, end, "are not there any more", lost)
                found = []
            if found:
                yield (extractor.compacted(found) if segment.compacted else found), end
            at = end


def _still_there(segment: Segment, at: int, last: int, again: Again) -> int:
    """The first entry from ``at`` on that the box still has; behind ``last`` where there is none."""
    if segment.compacted:
        return last + 1
    found = again(segment._replace(first=at, last=last, hidden=()))
    return min((each.visible[0][0] for each in found if each.visible), default=last + 1)


def _tell(segment: Segment, first: int, end: int, reason: str, lost: Callable[[Lost], None]) -> None:
    if segment.compacted:
        reason += " in its compacted view, which was replaced meanwhile: read it again"
    lost(Lost(segment.topic, Place(segment.ledger, first), Place(segment.ledger, end), reason))
