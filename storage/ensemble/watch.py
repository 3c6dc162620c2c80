"""The ensemble as the rest of the box uses it: its status, operations, and what changed since the last look."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import EnsembleStatus, Fragment, MemberEvent, MemberStatus

UNDER_REPLICATED = "under-replicated"
COPIES_RESTORED = "copies-restored"
WRITABLE = frozenset({MemberState.ACTIVE, MemberState.JOINING})
"""States in which copies are written to a member, or will be."""

OUT_OF_USE = frozenset({MemberState.LOST, MemberState.LATE, MemberState.FENCED})
"""States in which a member is neither written nor read."""


class EnsembleControl(Protocol):
    """The part of an ensemble that operators see and change. All methods may be called from any thread."""

    on_change: Callable[[MemberEvent], None]
    """Called with each change, from any thread."""

    def status(self) -> EnsembleStatus:
        """Return a snapshot. Does not wait for a disk."""

    def add(self, path: str) -> None:
        """Add a directory. Raises PersistenceError, PulsarBoxError with the reason for a refusal."""

    def remove(self, name: str, *, force: bool = False) -> None:
        """Begin to copy the entries of a member elsewhere; it is released afterwards. Raises as ``add``.

        ``force`` accepts the loss of entries, and fewer copies than policies ask for.
        """

    def replace(self, old: str, new: str, *, force: bool = False) -> None:
        """Begin to rebuild the entries of a member in another directory. Raises as ``add``; ``force`` as ``remove``."""

    def scrub(self, name: str) -> None:
        """Begin to verify all entries of a member now. Raises as ``add``."""

    def ledgers_of_members(self) -> Mapping[str, Sequence[int]]:
        """Return the ledgers of which each readable member has entries, by its name. Slow."""

    def is_open(self, ledger_id: int) -> bool:
        """Return whether a ledger was being written at the last audit, or is newer. Cheap."""


class CopyProgress(NamedTuple):
    """Entries that lack a copy since they were first noticed."""

    since: int
    """Milliseconds since 1970; 0 if every entry has its copies."""
    entries: int
    """Entries that lack a copy."""
    most: int
    """The maximum of ``entries`` since then."""

    @property
    def percent(self) -> int:
        """Share of the copies that are restored; 100 if every entry has its copies."""
        return 100 * (self.most - self.entries) // self.most if self.most else 100


def lacking(status: EnsembleStatus) -> int:
    """Return the number of entries that lack a copy: as counted by the repair, or those in the listed fragments."""
    return status.repair.entries_left or sum(each.end - each.first for each in status.under_replicated)


class WatchedEnsemble:
    """An ensemble, with its events and the progress of its repair."""

    def __init__(self, control: EnsembleControl) -> None:
        self.control = control
        self.progress = CopyProgress(0, 0, 0)
        self._pending: deque[MemberEvent] = deque(maxlen=1000)
        control.on_change = self._pending.append

    def status(self) -> EnsembleStatus:
        """Return a snapshot."""
        return self.control.status()

    def look(self, now: int) -> list[MemberEvent]:
        """Update the progress, and return what happened since the last call. ``now``: milliseconds since 1970."""
        status, before = self.status(), self.progress
        entries = lacking(status) if status.under_replicated_count else 0
        events = [self._pending.popleft() for _ in range(len(self._pending))]
        if status.under_replicated_count:
            since = before.since or now
            self.progress = CopyProgress(since, entries, max(before.most, entries))
            if not before.since:
                events.append(MemberEvent(UNDER_REPLICATED, "", _lack(status, entries)))
        elif before.since:
            self.progress = CopyProgress(0, 0, 0)
            seconds = (now - before.since) // 1000
            text = f"every entry has its copies again, after {seconds} s: up to {before.most:,} entries lacked one"
            events.append(MemberEvent(COPIES_RESTORED, "", text))
        return events


def _lack(status: EnsembleStatus, entries: int) -> str:
    ledgers = len({each.ledger_id for each in status.under_replicated})
    gone = sum(each.end - each.first for each in status.under_replicated if not each.have)
    only = f", {gone:,} of them have none left" if gone else ""
    return f"{entries:,} entries of {ledgers:,} ledgers lack a copy{only}"


# Map


COMPLETE, WRITING, COPYING, LACKING, DAMAGED, ELSEWHERE = "KWCLD."
"""Letters of a cell: all entries here have their copies; so they have, and more are being written here; a missing copy
is written here or may be; a copy that was here is missing; no intact copy is left; the entries are in other
directories."""


class CopyMap(NamedTuple):
    """The ledgers of an ensemble in cells, and the state of each cell in each member."""

    firsts: tuple[int, ...]
    """The first ledger of each cell."""
    rows: Mapping[str, str]
    """A letter per cell, by the name of the member."""
    ledgers: int
    """The number of ledgers."""


def copy_map(
    status: EnsembleStatus, held: Mapping[str, Sequence[int]], cells: int, is_open: Callable[[int], bool]
) -> CopyMap:
    """Return the map of at most ``cells`` cells with equal numbers of ledgers. ``is_open``: see EnsembleControl."""
    lacks: dict[int, list[Fragment]] = {}
    for fragment in status.under_replicated:
        lacks.setdefault(fragment.ledger_id, []).append(fragment)
    ledgers = sorted({*lacks, *(each for some in held.values() for each in some)})
    count = min(cells, len(ledgers))
    groups = [ledgers[at * len(ledgers) // count : (at + 1) * len(ledgers) // count] for at in range(count)]
    having = {name: set(some) for name, some in held.items()}
    open_ledgers = set(filter(is_open, ledgers))
    written = dict.fromkeys(status.segment.members, open_ledgers)
    rows = {
        member.name: "".join(
            _cell(member, group, lacks, having.get(member.name, set()), written.get(member.name, set()))
            for group in groups
        )
        for member in status.members
    }
    return CopyMap(tuple(group[0] for group in groups), rows, len(ledgers))


def _cell(
    member: MemberStatus, group: list[int], lacks: dict[int, list[Fragment]], having: set[int], written: set[int]
) -> str:
    fragments = [each for ledger in group for each in lacks.get(ledger, ())]
    if any(not each.have for each in fragments):
        return DAMAGED
    if any(member.name not in each.have for each in fragments):
        return COPYING if member.state in WRITABLE else LACKING
    found = having.intersection(group)
    return WRITING if found & written else COMPLETE if found else ELSEWHERE
