"""Selection of the images of a recording to open, and ways to corrupt a recording."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from tests.powercut import marks
from tests.powercut.disk import APPLIED, DROPPED, MIXED, SECTOR, Disk
from tests.powercut.record import SYNC_POINTS, Event, Op

_RETURNED: Final = tuple(
    f'["{kind}"'.encode()
    for kind in (marks.DONE, marks.CHECKPOINTED, marks.RECLAIMED, marks.REOPENED, marks.RECEIPTED, marks.ACKED)
)


class Image(NamedTuple):
    """Parameters that determine an image of a recording."""

    cut: int
    """Number of events before the cut."""
    kind: str
    dice: int


class Plan(NamedTuple):
    """Images of a recording, ordered by cut, and the numbers of candidates."""

    images: list[Image]
    boundaries: int
    """Number of images at sync boundaries."""
    boundaries_opened: int


def plan(disk: Disk, events: list[Event], count: int, dice: random.Random) -> Plan:
    """Return ``count`` images of the recorded events on ``disk``.

    Up to half of them are at sync boundaries, or all boundaries if these are fewer. The others are mixtures.

    A boundary has two cuts: before the sync returns, and right after. A cut just before the sync would add nothing, as
    the disk holds the same. Operations acknowledged without another disk access belong before the cut.
    """
    boundaries: list[Image] = []
    unsettled: list[int] = []
    for number, event in enumerate(events, 1):
        disk.apply(event)
        durable = disk.all_durable
        if event.op in SYNC_POINTS or (event.op == Op.WRITE and events[number : number + 1] == [_returns(event)]):
            cut = _past_marks(events, number)
            boundaries += [Image(cut, kind, 0) for kind in ((APPLIED,) if durable else (DROPPED, APPLIED))]
        if not durable:
            unsettled.append(number)
    half = count // 2
    chosen = boundaries if len(boundaries) <= half else dice.sample(boundaries, half)
    mixtures = [
        Image(_past_marks(events, dice.choice(unsettled)), MIXED, dice.getrandbits(32))
        for _ in range(count - len(chosen))
    ]
    return Plan(sorted(chosen + mixtures), len(boundaries), len(chosen))


def _returns(write: Event) -> Event:
    return Event(Op.DURABLE, write.inode)


def _past_marks(events: list[Event], cut: int) -> int:
    while cut < len(events) and events[cut].op == Op.MARK and events[cut].data.startswith(_RETURNED):
        cut += 1
    return cut


# Faulty disks


def without_data_syncs(events: list[Event]) -> Iterator[Event]:
    """Ignore fsync and fdatasync of files."""
    return (event for event in events if event.op not in (Op.SYNC_BEGIN, Op.SYNC_END) or event.directory)


def without_meta_syncs(events: list[Event]) -> Iterator[Event]:
    """Ignore O_DSYNC."""
    return (event for event in events if event.op != Op.DURABLE)


def without_directory_syncs_after_renames(events: list[Event]) -> Iterator[Event]:
    """Ignore the first sync of a directory after a rename."""
    renamed = False
    lost = -1
    for event in events:
        renamed = renamed or event.op == Op.RENAME
        if event.directory and event.op == Op.SYNC_BEGIN and renamed:
            lost, renamed = event.at, False
        if not (event.directory and event.at == lost):
            yield event


def with_torn_synced_writes(events: list[Event]) -> Iterator[Event]:
    """Drop one sector of every eighth write of several sectors, synced or not."""
    count = 0
    for event in events:
        if event.op == Op.WRITE and len(event.data) >= 4 * SECTOR:
            count += 1
            if count % 8 == 0:
                torn = count // 8 % (len(event.data) // SECTOR) * SECTOR
                yield event._replace(data=event.data[:torn])
                yield event._replace(at=event.at + torn + SECTOR, data=event.data[torn + SECTOR :])
                continue
        yield event


MUTANTS: Final[dict[str, Callable[[list[Event]], Iterable[Event]]]] = {
    "data-sync-lost": without_data_syncs,
    "meta-sync-lost": without_meta_syncs,
    "directory-sync-lost": without_directory_syncs_after_renames,
    "synced-write-torn": with_torn_synced_writes,
}
