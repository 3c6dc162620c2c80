"""Which ledgers of a topic can be offloaded next, and what it still needs of those that are. Pure.

A ledger is offloaded when nothing about it changes any more: it is closed, all its entries can be read, so no open
transaction stands in it or in front of it. They go one after the other, so what is offloaded has one end.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pulsarbox.spark.decode.entry_decoder import BACK_ENTRIES
from pulsarbox.spark.offload.manifest import Gap, History
from pulsarbox.spark.source.offsets import Mark, parse
from pulsarbox.spark.topic_segments import Place, Segment


class Stretch(NamedTuple):
    """What can be read of a ledger, and what is known of all of it."""

    segment: Segment
    entries: int
    before: int
    after: int
    closed: int

    @property
    def is_whole(self) -> bool:
        """Whether all of it is there, can be read and stays as it is."""
        first, last = self.segment.first, self.segment.last
        return self.closed > 0 and first == 0 and last == self.entries - 1


class Due(NamedTuple):
    """What can be offloaded now, and what is gone behind that."""

    stretches: tuple[Stretch, ...]
    gap: Gap | None = None


def stretches(topic: str, instance: str, rows: Sequence[Mapping[str, Any]]) -> list[Stretch]:
    """Ledger by ledger what a box has told, also where it told of one in several answers."""
    found: list[Stretch] = []
    for row in rows:
        hidden = tuple((low, high) for low, high in row["hidden"])
        volumes = tuple(row["volumes"])
        place = (topic, row["ledger"], row["first"], row["last"])
        segment = Segment(*place, row["messages"], row["bytes"], hidden, instance=instance, volumes=volumes)
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
        found.append(Stretch(segment, row["entries"], row["before"], row["after"], row["closed"]))
    return found


def due(known: Mark, earliest: Mark, found: Sequence[Stretch], closed_before: int | None = None) -> Due:
    """What follows ``known``, the end of what is offloaded. ``earliest``: the first place that the topic has, and the
    messages before it. ``closed_before`` (ms since 1970): only ledgers that were closed earlier."""
    taken: list[Stretch] = []
    mark = known
    for each in found:
        if each.segment.ledger < mark.place.ledger or (each.segment.ledger, each.entries) == mark.place[:2]:
            continue
        if each.before != mark.seen:
            return Due(tuple(taken), _gap(mark, Mark(Place(each.segment.ledger, 0), each.before)))
        if not each.is_whole or (closed_before is not None and each.closed >= closed_before):
            return Due(tuple(taken))
        taken.append(each)
        mark = Mark(Place(each.segment.ledger, each.entries), each.after)
    if mark.place < earliest.place and mark.seen != earliest.seen:
        return Due(tuple(taken), _gap(mark, earliest))
    return Due(tuple(taken))


def _gap(mark: Mark, end: Mark) -> Gap:
    if end.seen < mark.seen:
        return Gap(mark.place, end, "are not there any more: the topic was made anew")
    return Gap(mark.place, end, f"are not there any more: {end.seen - mark.seen} messages")


def held_from(history: History, until: int) -> Place:
    """From where on the box has to keep a topic: behind what was offloaded by ``until`` (ms since 1970), and not behind
    the first chunk of a message whose last one is still to be read. Chunks are looked for 100,000 entries back."""
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
