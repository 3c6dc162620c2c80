"""Ranges of entries, and the choice of what to copy from where to where. Pure.

A *run* is the first entry and the end (exclusive) of consecutive entries of a ledger. Lists of runs are sorted and
disjoint.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import Fragment

Run = tuple[int, int]
Runs = list[Run]

READABLE = frozenset({MemberState.ACTIVE, MemberState.FULL, MemberState.LEAVING})
"""States in which the index of a member is valid, so that its copies can be read."""
COUNTED = frozenset({MemberState.ACTIVE, MemberState.FULL})
"""States in which the copies of a member count: those of a leaving member are about to go."""
WRITABLE = frozenset({MemberState.ACTIVE})
"""States in which a member receives copies."""


class MemberPlace(NamedTuple):
    """A member as the auditor sees it."""

    name: str
    state: str
    """One of MemberState."""
    device: int = 0
    """The number of its device, 0 if unknown: then no other member is on it."""
    bytes_used: int = 0

    @property
    def medium(self) -> str:
        """A name for the device, which members on the same device share."""
        return f"device {self.device}" if self.device else self.name


class Findings(NamedTuple):
    """The result of comparing the copies of a ledger with those wanted."""

    missing: list[Fragment]
    """Entries with too few counted copies, of which at least one member has one."""
    lost: Runs
    """Entries of which no readable member has a copy."""
    surplus: list[Fragment]
    """Entries with more counted copies than wanted."""


def merged(runs: Iterable[Run]) -> Runs:
    """Return the union of runs in any order, sorted and disjoint; empty ones are left out."""
    result: Runs = []
    for first, end in sorted(runs):
        if first >= end:
            continue
        if result and first <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((first, end))
    return result


def without(runs: Runs, taken: Runs) -> Runs:
    """Return ``runs`` minus ``taken``."""
    result: Runs = []
    for first, end in runs:
        begin = first
        for low, high in taken[bisect_right(taken, first, key=itemgetter(1)) :]:
            if low >= end:
                break
            if low > begin:
                result.append((begin, low))
            begin = high
        if begin < end:
            result.append((begin, end))
    return result


def common(runs: Runs, others: Runs) -> Runs:
    """Return the entries in both lists."""
    return without(runs, without(runs, others))


def length(runs: Iterable[Run]) -> int:
    """Return the number of entries in runs."""
    return sum(end - first for first, end in runs)


def compare(
    ledger_id: int, exists: Runs, want: int, coverage: Mapping[str, Runs], places: Mapping[str, MemberPlace]
) -> Findings:
    """Compare the copies of a ledger, by member, with the number wanted.

    ``coverage`` is that of the readable members. With fewer counted members than ``want``, that number is still
    reported as missing: it becomes possible when a member returns.
    """
    missing: list[Fragment] = []
    surplus: list[Fragment] = []
    lost: Runs = []
    for first, end, have in _pieces(exists, coverage):
        count = sum(places[name].state in COUNTED for name in have)
        if not have:
            lost.append((first, end))
        elif count != want:
            (missing if count < want else surplus).append(Fragment(ledger_id, first, end, have, want))
    return Findings(_joined(missing), merged(lost), _joined(surplus))


def _pieces(exists: Runs, coverage: Mapping[str, Runs]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the existing entries in pieces of which the same members have all or nothing."""
    bounds = sorted({each for runs in coverage.values() for run in runs for each in run})
    names = sorted(coverage)
    for first, end in exists:
        cuts = [first, *bounds[bisect_right(bounds, first) : bisect_left(bounds, end)], end]
        for low, high in itertools.pairwise(cuts):
            yield low, high, tuple(name for name in names if _has(coverage[name], low))


def _has(runs: Runs, entry: int) -> bool:
    at = bisect_right(runs, entry, key=itemgetter(0)) - 1
    return at >= 0 and entry < runs[at][1]


def _joined(fragments: list[Fragment]) -> list[Fragment]:
    """Merge consecutive fragments that the same members have."""
    result: list[Fragment] = []
    for each in fragments:
        if result and result[-1].end == each.first and result[-1].have == each.have:
            result[-1] = result[-1]._replace(end=each.end)
        else:
            result.append(each)
    return result


def target_of(
    have: Collection[str], want: int, places: Sequence[MemberPlace], refused: Collection[str] = ()
) -> MemberPlace | None:
    """Return the member that gets the next copy of entries that ``have`` have; None if no member can.

    It is writable and has no copy. Members on devices without a copy come first, then those with the fewest bytes. A
    second copy on a device is the last choice: only if the devices of all writable members are too few for ``want``
    copies.
    """
    taken = {place.medium for place in places if place.name in have and place.state in COUNTED}
    writable = [place for place in places if place.state in WRITABLE]
    free = [place for place in writable if place.name not in have and place.name not in refused]
    apart = [place for place in free if place.medium not in taken]
    if not apart and len({place.medium for place in writable} | taken) < want:
        apart = free
    return min(apart, key=lambda place: (place.bytes_used, place.name), default=None)


def sources_of(
    have: Collection[str], places: Sequence[MemberPlace], avoided: Collection[str] = ()
) -> list[MemberPlace]:
    """Return the readable members among ``have``, best first: active ones, then those without recent errors."""
    readable = [place for place in places if place.name in have and place.state in READABLE]
    return sorted(readable, key=lambda place: (place.name in avoided, place.state != MemberState.ACTIVE, place.name))
