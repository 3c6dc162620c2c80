"""Admission limits of a micro-batch. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pulsarbox.spark.source.offsets import IN_FRONT, Mark
from pulsarbox.spark.topic_segments import ReadPosition, TopicSegment


class Available(NamedTuple):
    """Segments of one topic between the last offset and its end."""

    start: Mark
    segments: Sequence[TopicSegment]
    end: Mark

    @property
    def messages(self) -> int:
        """Approximate number of messages; one per entry if the broker does not report it."""
        return sum(max(each.messages, 1) for each in self.segments)

    @property
    def bytes(self) -> int:
        """Approximate number of stored bytes."""
        return sum(each.bytes for each in self.segments)


def admitted(
    found: Mapping[str, Available], max_messages: int | None, max_bytes: int | None, turn: int = 0
) -> dict[str, Mark]:
    """Return the end mark of each topic, so that a micro-batch stays near the limits, with a fair share per topic.

    Entries are not split, and at least one is read if there are any. ``turn`` rotates the first topic, so that each
    gets its turn when the limit is below one entry per topic.
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
    """Return the mark reached after ``allowed`` messages, and their number."""
    taken = 0.0
    for segment in found.segments:
        messages = max(segment.messages, 1)
        if taken + messages <= allowed:
            taken += messages
            continue
        if segment.end is not None:  # cannot be cut: its contents are unknown
            return (found.end, taken + messages) if at_least else (_mark(found, segment, 0), taken)
        entries = segment.last - segment.first + 1
        each = messages / entries
        # a float may be slightly below a whole number
        count = max(at_least, int((allowed - taken) / each + 1e-9))
        return _mark(found, segment, min(count, entries)), taken + count * each
    return found.end, taken


def _mark(found: Available, segment: TopicSegment, entries: int) -> Mark:
    """Return the mark after the first ``entries`` entries of a segment."""
    if not entries and segment is found.segments[0]:
        return found.start
    if not entries:
        return Mark(ReadPosition(segment.ledger, segment.first), IN_FRONT)
    place = ReadPosition(segment.ledger, segment.first + entries)
    if place.entry > segment.last and segment is found.segments[-1]:
        return found.end
    return Mark(place, IN_FRONT)
