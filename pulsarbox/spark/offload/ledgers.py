"""Selection of the ledgers to offload next and of the position to retain. Pure.

A ledger is offloaded once it is immutable: closed, and entirely readable, so no open transaction has entries in it or
before it. Ledgers are offloaded in order, so the history has a single end.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pulsarbox.spark.decode.entry_decoder import BACK_ENTRIES
from pulsarbox.spark.offload.manifest import Gap, OffloadedTopic
from pulsarbox.spark.source.offsets import Mark, parse
from pulsarbox.spark.topic_segments import ReadPosition, TopicSegment


class ReadableLedger(NamedTuple):
    """Readable entries of a ledger, and facts about the whole ledger."""

    segment: TopicSegment
    entries: int
    before: int
    after: int
    closed: int

    @property
    def is_whole(self) -> bool:
        """Whether the ledger is complete, readable and immutable."""
        first, last = self.segment.first, self.segment.last
        return self.closed > 0 and first == 0 and last == self.entries - 1


class Due(NamedTuple):
    """Ledgers to offload now, and the gap after them, if any."""

    stretches: tuple[ReadableLedger, ...]
    gap: Gap | None = None


def stretches(topic: str, instance: str, rows: Sequence[Mapping[str, Any]]) -> list[ReadableLedger]:
    """Merge a box's rows by ledger, as one ledger may span several answers."""
    found: list[ReadableLedger] = []
    for row in rows:
        hidden = tuple((low, high) for low, high in row["hidden"])
        volumes = tuple(row["volumes"])
        place = (topic, row["ledger"], row["first"], row["last"])
        segment = TopicSegment(*place, row["messages"], row["bytes"], hidden, instance=instance, volumes=volumes)
        before = found[-1].segment if found else None
        if before is not None and before.ledger == segment.ledger and before.last + 1 == segment.first:
            segment = before._replace(
                last=segment.last,
                messages=before.messages + segment.messages,
                bytes=before.bytes + segment.bytes,
                hidden=before.hidden + segment.hidden,
                volumes=tuple(dict.fromkeys(before.volumes + segment.volumes)),
            )
            found.pop()
        found.append(ReadableLedger(segment, row["entries"], row["before"], row["after"], row["closed"]))
    return found


def due(known: Mark, earliest: Mark, found: Sequence[ReadableLedger], closed_before: int | None = None) -> Due:
    """Return what follows ``known``, the end of the history. ``earliest``: the first position of the topic, and the
    messages before it. ``closed_before``: only ledgers closed before this time, in ms since 1970."""
    taken: list[ReadableLedger] = []
    mark = known
    for each in found:
        if each.segment.ledger < mark.place.ledger or (each.segment.ledger, each.entries) == mark.place[:2]:
            continue
        if each.before != mark.seen:
            return Due(tuple(taken), _gap(mark, Mark(ReadPosition(each.segment.ledger, 0), each.before)))
        if not each.is_whole or (closed_before is not None and each.closed >= closed_before):
            return Due(tuple(taken))
        taken.append(each)
        mark = Mark(ReadPosition(each.segment.ledger, each.entries), each.after)
    if mark.place < earliest.place and mark.seen != earliest.seen:
        return Due(tuple(taken), _gap(mark, earliest))
    return Due(tuple(taken))


def _gap(mark: Mark, end: Mark) -> Gap:
    if end.seen < mark.seen:
        return Gap(mark.place, end, "no longer exist: the topic was recreated")
    return Gap(mark.place, end, f"no longer exist: {end.seen - mark.seen} messages")


def offloaded_range(begin: ReadPosition, end: ReadPosition) -> str:
    """Return the IDs of the first and the last ledger from ``begin`` to ``end``, such as ``12-345``; empty if none."""
    last = end.ledger if end.entry > 0 else end.ledger - 1
    return f"{max(begin.ledger, 0)}-{last}" if end > begin and last >= begin.ledger else ""


def held_from(history: OffloadedTopic, until: int) -> ReadPosition:
    """Return the position from which the box must retain a topic.

    That is after the ledgers offloaded by ``until`` (ms since 1970), but not after the first chunk of a message that
    ends later. Readers search for chunks in the last 100,000 entries.
    """
    held = history.begin.place
    for gap in history.gaps:
        held = max(held, gap.end.place)
    left = BACK_ENTRIES
    released = [each for each in history.ledgers if each.at <= until]
    if released:
        held = max(held, released[-1].end.place)
    for each in reversed(released):
        if left <= 0:
            break
        held = min([held, *(first for text in each.unfinished if each.entries - (first := parse(text)).entry <= left)])
        left -= each.entries
    return held
