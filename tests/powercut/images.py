"""Which images of a recording are opened, and the ways in which a recording can be made to lie."""

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
    """What makes an image, together with a recording."""

    cut: int
    """Events before the cut."""
    kind: str
    dice: int


class Plan(NamedTuple):
    """Images of a recording, by their cuts, and what they were chosen from."""

    images: list[Image]
    boundaries: int
    """Sync boundaries, in images."""
    boundaries_opened: int


def plan(disk: Disk, events: list[Event], count: int, dice: random.Random) -> Plan:
    """``count`` images of what happens to ``disk``.

    Up to half of them are at sync boundaries (all of those, where they are fewer), the others are mixtures.

    A boundary is a cut while the sync has not returned, and one right after. The cut just before the sync is no third
    one: the disk holds the same. What was acknowledged without touching the disk again belongs before the cut.
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


# Lies


def without_data_syncs(events: list[Event]) -> Iterator[Event]:
    """fsync and fdatasync of files do nothing."""
    return (event for event in events if event.op not in (Op.SYNC_BEGIN, Op.SYNC_END) or event.directory)


def without_meta_syncs(events: list[Event]) -> Iterator[Event]:
    """O_DSYNC does nothing."""
    return (event for event in events if event.op != Op.DURABLE)


def without_directory_syncs_after_renames(events: list[Event]) -> Iterator[Event]:
    """The first sync of a directory after a rename does nothing."""
    renamed = False
    lost = -1
    for event in events:
        renamed = renamed or event.op == Op.RENAME
        if event.directory and event.op == Op.SYNC_BEGIN and renamed:
            lost, renamed = event.at, False
        if not (event.directory and event.at == lost):
            yield event


def with_torn_synced_writes(events: list[Event]) -> Iterator[Event]:
    """Each eighth write of several sectors has lost one of them, synced or not."""
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
