"""How much of what is there one micro-batch reads. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pulsarbox.spark.source.offsets import IN_FRONT, Mark
from pulsarbox.spark.topic_segments import Place, Segment


class Available(NamedTuple):
    """What one topic has between the last offset and its end."""

    start: Mark
    segments: Sequence[Segment]
    end: Mark

    @property
    def messages(self) -> int:
        """About so many; of a broker that does not tell, one an entry."""
        return sum(max(each.messages, 1) for each in self.segments)

    @property
    def bytes(self) -> int:
        """Stored bytes, about."""
        return sum(each.bytes for each in self.segments)


def admitted(
    found: Mapping[str, Available], max_messages: int | None, max_bytes: int | None, turn: int = 0
) -> dict[str, Mark]:
    """Where each topic is read to, so that about so many messages and bytes are read: from each topic its share.

    Entries are not torn apart, and of something at least one entry is read. ``turn``: with which topic to begin, so
    that where the limit is below one entry of each, all have their turn.
    """
    share = _share(found, max_messages, max_bytes)
    if share >= 1:
        return {topic: each.end for topic, each in found.items()}
    topics = sorted(topic for topic, each in found.items() if each.segments)
    topics = topics[turn % len(topics) :] + topics[: turn % len(topics)]
    marks = {topic: each.start if each.segments else each.end for topic, each in found.items()}
    allowed = 0.0
    for topic in topics:
        allowed += share * found[topic].messages
        marks[topic], taken = _reached(found[topic], allowed)
        allowed -= taken
    if all(marks[topic] == found[topic].start for topic in topics):
        marks[topics[0]], _ = _reached(found[topics[0]], 0.0, at_least=1)
    return marks


def _share(found: Mapping[str, Available], max_messages: int | None, max_bytes: int | None) -> float:
    shares = [1.0]
    for limit, there in (
        (max_messages, sum(each.messages for each in found.values())),
        (max_bytes, sum(each.bytes for each in found.values())),
    ):
        if limit is not None and there > limit:
            shares.append(limit / there)
    return min(shares)


def _reached(found: Available, allowed: float, at_least: int = 0) -> tuple[Mark, float]:
    """Where so many messages lead to, and how many these are."""
    taken = 0.0
    for segment in found.segments:
        messages = max(segment.messages, 1)
        if taken + messages <= allowed:
            taken += messages
            continue
        if segment.end is not None:  # it cannot be cut: nobody tells what is in it
            return (found.end, taken + messages) if at_least else (_mark(found, segment, 0), taken)
        entries = segment.last - segment.first + 1
        each = messages / entries
        # a float may be a hair below a whole number
        count = max(at_least, int((allowed - taken) / each + 1e-9))
        return _mark(found, segment, min(count, entries)), taken + count * each
    return found.end, taken


def _mark(found: Available, segment: Segment, entries: int) -> Mark:
    """The place behind so many entries of a segment."""
    if not entries and segment is found.segments[0]:
        return found.start
    if not entries:
        return Mark(Place(segment.ledger, segment.first), IN_FRONT)
    place = Place(segment.ledger, segment.first + entries)
    if place.entry > segment.last and segment is found.segments[-1]:
        return found.end
    return Mark(place, IN_FRONT)
