"""Progress of an offload into a table, by topic and partition, as JSON in the properties of a snapshot. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pulsarbox.spark.decode.entry_decoder import BACK_ENTRIES
from pulsarbox.spark.offload.manifest import Gap, OffloadError
from pulsarbox.spark.source.offsets import Mark, parse, text
from pulsarbox.spark.topic_segments import ReadPosition

VERSION: Final = 1
_CHUNKED: Final = 64
"""Largest number of unfinished messages that are recorded one by one."""


@dataclass
class PartitionProgress:
    """The part of an unpartitioned topic or a partition that is in a table."""

    instance: str
    """ID of the box's data directory, as ledger IDs are unique only within one."""
    begin: Mark
    next: Mark
    """The first position that the table lacks, and the messages ever published before it."""
    unfinished: list[tuple[ReadPosition, int]] = field(default_factory=list)
    """First chunks of messages that were unfinished at the end of their ledger, and the entries since; by position."""

    def add(self, ledger: int, entries: int, after: int, unfinished: Sequence[ReadPosition]) -> None:
        """Add the ledger that follows. ``after``: messages ever published up to its end."""
        known = [(place, since + entries) for place, since in self.unfinished]
        known += [(place, entries - place.entry) for place in sorted(unfinished)]
        self.unfinished = _bounded([each for each in known if each[1] <= BACK_ENTRIES])
        self.next = Mark(ReadPosition(ledger, entries), after)

    def skip(self, gap: Gap) -> None:
        """Continue after a lost range."""
        self.next = gap.end

    @property
    def held(self) -> ReadPosition:
        """The position from which the box must retain the topic: readers search for chunks in the last entries."""
        return min([self.next.place, *(place for place, _ in self.unfinished)])


def _bounded(found: list[tuple[ReadPosition, int]]) -> list[tuple[ReadPosition, int]]:
    """Merge neighbours until there are few: the earlier position is held as long as the later one must be."""
    while len(found) > _CHUNKED:
        found = [(found[at][0], found[min(at + 1, len(found) - 1)][1]) for at in range(0, len(found), 2)]
    return found


Progress = dict[str, PartitionProgress]
"""By full name of the topic or partition."""


def encode(progress: Progress) -> str:
    """Return progress as JSON."""
    topics = {
        topic: {
            "instance": each.instance,
            "begin": _mark(each.begin),
            "next": _mark(each.next),
            "unfinished": [[text(place), since] for place, since in each.unfinished],
        }
        for topic, each in sorted(progress.items())
    }
    return json.dumps({"version": VERSION, "topics": topics}, separators=(",", ":"))


def decode(stored: str, table: str) -> Progress:
    """Return progress from JSON. ``table``: its name, for errors. Raises OffloadError."""
    try:
        known = json.loads(stored)
        if known["version"] != VERSION:
            raise ValueError(f"version {known['version']}")
        return {topic: _partition(each) for topic, each in known["topics"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OffloadError(
            f"table {table}: invalid progress in its properties: {error!r}. Roll the table back to an earlier "
            "snapshot, or offload into another table"
        ) from None


def _partition(known: dict[str, Any]) -> PartitionProgress:
    unfinished = [(parse(place), int(since)) for place, since in known["unfinished"]]
    return PartitionProgress(str(known["instance"]), _marked(known["begin"]), _marked(known["next"]), unfinished)


def _mark(mark: Mark) -> list[Any]:
    return [text(mark.place), mark.seen]


def _marked(known: list[Any]) -> Mark:
    return Mark(parse(known[0]), int(known[1]))


def ranges(before: Progress, after: Progress) -> str:
    """Return what was added, as JSON: the first position and the position after the last, by topic or partition."""
    found = {}
    for topic, each in sorted(after.items()):
        start = before[topic].next if topic in before else each.begin
        if start != each.next:
            found[topic] = [text(start.place), text(each.next.place)]
    return json.dumps(found, separators=(",", ":"))


def encode_positions(places: Mapping[str, ReadPosition]) -> str:
    """Return positions by topic or partition as JSON."""
    return json.dumps({topic: text(place) for topic, place in sorted(places.items())}, separators=(",", ":"))


def positions(stored: str, table: str) -> dict[str, ReadPosition]:
    """Return positions from JSON. ``table``: its name, for errors. Raises OffloadError."""
    try:
        return {topic: parse(place) for topic, place in json.loads(stored).items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise OffloadError(f"table {table}: invalid positions in its properties: {error!r}") from None
