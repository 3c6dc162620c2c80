"""Reading of entries: in place if the data directory is accessible, else over the network.

The worker that reads decides, as its file system may differ from the driver's.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from pulsarbox.errors import EntryDamaged
from pulsarbox.spark.access import extractor, mapped_reader, wire_reader
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.topic_segments import Lost, Reach, ReadPosition, TopicSegment

log = logging.getLogger(__name__)

Entry = wire_reader.Entry
Piece = wire_reader.Piece
Again = Callable[[TopicSegment], list[TopicSegment]]
"""Requests the runs of a segment's entries that the box still has."""


def entries(segment: TopicSegment, reach: Reach, lost: Callable[[Lost], None], again: Again) -> Iterator[list[Entry]]:
    """Yield the entries of a segment in order, verified: ledger, entry and bytes as the client sent them.

    ``lost`` is called with missing or damaged ranges, and may raise. Raises NotInPlace if reading in place is required
    and impossible, and the broker's errors.
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
        log.info("reading %s over the network: %s", segment.topic, error)
        yield from wire_reader.entries(left, reach, lost)


def pieces_of(
    segments: Sequence[TopicSegment], reach: Reach, lost: Callable[[Lost], None], again: Again
) -> Iterator[Piece]:
    """Yield the entries of several segments, in order per segment. Read in place, topics interleave as they do on disk.
    Otherwise as ``entries``."""
    left = list(segments)
    if reach.is_wire or not _is_at_hand(left, reach):
        yield from wire_reader.pieces({number: each for number, each in enumerate(left) if each.visible}, reach, lost)
        return
    if reach.data_dir:
        with suppress(extractor.NotInPlace):  # reported when the segments are read one by one
            yield from _swept(segments, left, reach)
    for number, segment in enumerate(left):
        if segment.visible:
            for found in entries(segment, reach, lost, again):
                yield number, found


def _is_at_hand(segments: Sequence[TopicSegment], reach: Reach) -> bool:
    """Return whether the data directory is accessible. Always true with access=mmap: reading reports errors."""
    if reach.access == "mmap" or not segments:
        return True
    try:
        mapped_reader.store_of(reach.data_dir, segments[0].instance, reach.plugins_dir)
    except extractor.NotInPlace as error:
        log.info("reading %s over the network: %s", segments[0].topic, error)
        return False
    return True


def _swept(segments: Sequence[TopicSegment], left: list[TopicSegment], reach: Reach) -> Iterator[Piece]:
    """Yield what a sweep of the volumes finds; ``left`` is updated to the rest of each segment."""
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
        # Updated before the yield, as the caller may stop there and never resume.
        left[number] = behind(segments[number], end)
        if found:
            yield number, found


def _want(segment: TopicSegment) -> mapped_reader.Want:
    is_whole = not (segment.from_batch or segment.to_batch or segment.compacted)
    return mapped_reader.Want(segment.ledger, *segment.visible[0], is_whole)


def rest_of(segment: TopicSegment, last: Entry, at: int) -> TopicSegment:
    """Return the rest of a segment from ``at`` on, after its entry with the message ID of ``last``."""
    if segment.end is not None:
        return segment._replace(start=ReadPosition(last[0], last[1] + 1))
    return behind(segment, at)


def behind(segment: TopicSegment, at: int) -> TopicSegment:
    """Return the rest of a segment of entries from ``at`` on, which is after its first entry."""
    hidden = tuple((max(low, at), high) for low, high in segment.hidden if high >= at)
    return segment._replace(first=at, hidden=hidden, from_batch=0)


def _in_place(
    store: mapped_reader.MappedStore, segment: TopicSegment, lost: Callable[[Lost], None], again: Again
) -> Iterator[tuple[list[Entry], int]]:
    """Yield entries, and the number of the first one after them."""
    asked = -1
    for first, last in segment.visible:
        at = first
        while at <= last:
            try:
                found, end = store.read(segment.ledger, at, last)
            except EntryDamaged as error:
                end = min(error.last, last) + 1
                _report(segment, at, end, f"are damaged: {error.reason}", lost)
                found = []
            except mapped_reader.Gone as error:
                if asked == at:
                    raise extractor.NotInPlace(f"{error}, although the box reports it") from error
                asked = at
                end = _still_there(segment, at, last, again)
                if end > at:
                    _report(segment, at, end, "no longer exist", lost)
                found = []
            if found:
                yield (extractor.compacted(found) if segment.compacted else found), end
            at = end


def _still_there(segment: TopicSegment, at: int, last: int, again: Again) -> int:
    """Return the first entry from ``at`` on that the box still has; ``last + 1`` if none."""
    if segment.compacted:
        return last + 1
    found = again(segment._replace(first=at, last=last, hidden=()))
    return min((each.visible[0][0] for each in found if each.visible), default=last + 1)


def _report(segment: TopicSegment, first: int, end: int, reason: str, lost: Callable[[Lost], None]) -> None:
    if segment.compacted:
        reason += " in the compacted view, which has been replaced: read it again"
    lost(Lost(segment.topic, ReadPosition(segment.ledger, first), ReadPosition(segment.ledger, end), reason))
