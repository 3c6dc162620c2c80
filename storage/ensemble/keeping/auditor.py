"""The auditor: compares the copies that members have with those that policies want.

The index of each member is the truth about its copies, and the rows of the last checkpoint about what exists. Entries
behind the checkpoint are not audited: their copies may still be on the way. A pass runs in steps of some hundred
ledgers, so that it delays nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping.expected_entries import CopiesOf, ExpectedLedger, expected_ledgers
from pulsarbox.storage.ensemble.keeping.fragments import (
    COUNTED,
    READABLE,
    Findings,
    MemberPlace,
    Runs,
    common,
    compare,
    length,
    merged,
)
from pulsarbox.storage.ensemble.keeping.upkeep import Ensemble, Held, Maintained
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import Fragment, MemberEvent

LEDGERS_AT_ONCE: Final = 250
"""Ledgers compared in one step."""
SECOND_PASS_SECONDS: Final = 2.0
"""Time from a requested pass to another one, if there are ledgers being written: only that one knows their entries."""
LISTED_MAX: Final = 10_000
"""Fragments remembered between two passes; a further pass finds the others."""


class MemberContents(NamedTuple):
    """The numbers of ledgers and entries of a member at the last pass."""

    ledgers: int
    entries: int


class _Pass:
    """A pass in progress, or the last complete one."""

    def __init__(self, members: tuple[tuple[str, str], ...] = (), *, is_covered: bool = False) -> None:
        self.members = members
        """Names and states when it began."""
        self.is_covered = is_covered
        """Whether the checkpoint covered then what was written before the last change of the members."""
        self.missing: list[Fragment] = []
        self.missing_count = self.missing_entries = 0
        self.surplus: list[Fragment] = []
        self.lost: dict[int, Runs] = {}
        self.contents: dict[str, MemberContents] = {}
        self.newest = 0
        """The highest ledger compared."""
        self.unfinished: dict[int, Runs] = {}
        """Entries of ledgers without a known number of entries."""
        self.most_wanted = 1

    def count(self, name: str, coverage: Mapping[int, Runs]) -> None:
        """Add ledgers to what a member has."""
        ledgers, entries = self.contents.get(name, MemberContents(0, 0))
        more = sum(length(runs) for runs in coverage.values())
        self.contents[name] = MemberContents(ledgers + len(coverage), entries + more)


class Auditor:
    """The results of the last complete pass, updated by repairs."""

    def __init__(self, ensemble: Ensemble, period: float) -> None:
        """A pass begins ``period`` seconds after the end of the last one, and whenever the members have changed."""
        self._ensemble = ensemble
        self._period = period
        self._last = _Pass()
        self._steps: Iterator[_Pass | None] | None = None
        self._members: tuple[tuple[str, str], ...] = ()
        self._next = float("-inf")
        self._is_requested = True
        """Whether another pass was requested since the last one began."""
        self._is_first = False
        """Whether the pass in progress was requested."""
        self.ended = 0
        """The end of the last pass that compared all entries from before the last change of the members.

        In milliseconds since 1970; 0 if there was none.
        """
        self.passes = 0

    @property
    def missing(self) -> list[Fragment]:
        """Fragments with too few copies, at most LISTED_MAX."""
        return self._last.missing

    @property
    def missing_count(self) -> int:
        """Number of fragments with too few copies, listed or not."""
        return self._last.missing_count

    @property
    def missing_entries(self) -> int:
        """Number of entries with too few copies."""
        return self._last.missing_entries

    @property
    def surplus(self) -> list[Fragment]:
        """Fragments with more copies than wanted, at most LISTED_MAX."""
        return self._last.surplus

    @property
    def contents(self) -> Mapping[str, MemberContents]:
        """The contents of each readable member at the last pass, by name."""
        return self._last.contents

    def is_open(self, ledger_id: int) -> bool:
        """Return whether a ledger was being written at the last pass, or is newer."""
        return ledger_id > self._last.newest or ledger_id in self._last.unfinished

    @property
    def most_wanted(self) -> int:
        """The highest number of copies wanted of any ledger."""
        return self._last.most_wanted

    @property
    def without_copy(self) -> int:
        """Number of entries that only members which cannot be read may have; also 1 if they are too many to list."""
        last = self._last
        known = sum(each.end - each.first for each in last.missing if not each.have)
        return known or int(last.missing_count > len(last.missing))

    def lost_until(self, ledger_id: int, entry: int) -> int:
        """Return the end (exclusive) of the run of lost entries with this one; 0 if it is not known as lost."""
        runs = self._last.lost.get(ledger_id, ())
        return next((end for first, end in runs if first <= entry < end), 0)

    def released(self, forced: Collection[str] = ()) -> list[str]:
        """Return the leaving members whose entries all have enough copies elsewhere, as of a pass with these members.

        Of the entries of a ``forced`` one, every other counted member needs to have a copy at most. None is returned
        while some fragments are not listed.
        """
        last = self._last
        held = self._ensemble.held()
        members = tuple((each.name, each.place.state) for each in held)
        if not self.passes or members != last.members or last.missing_count > len(last.missing):
            return []
        counted = {each.name for each in held if each.place.state in COUNTED}
        needed: set[str] = set()
        for fragment in last.missing:
            names = set(fragment.have)
            possible = len(names & counted) >= len(counted)  # there is no member left for another copy
            needed |= {name for name in names if name not in forced or not possible}
        return [name for name, state in members if state == MemberState.LEAVING and name not in needed]

    def request(self) -> int:
        """Begin another pass soon; return the number of complete passes once it has ended."""
        self._next = float("-inf")
        self._is_requested = True
        return self.passes + (1 if self._steps is None else 2)

    def step(self, monotonic: float, wall: int) -> Maintained | None:
        """Run one step of a pass; None if none is due or possible. Raises PersistenceError; the pass starts again."""
        members = tuple((held.name, held.place.state) for held in self._ensemble.held())
        if members != self._members:
            self._members, self._steps = members, None
            self.request()
        if self._steps is None:
            if monotonic < self._next or not self._ensemble.is_settled():
                return None
            self._steps = self._audit()
            self._is_first, self._is_requested = self._is_requested, False
        return self._go_on(self._steps, monotonic, wall)

    def _go_on(self, steps: "Iterator[_Pass | None]", monotonic: float, wall: int) -> Maintained | None:
        try:
            found = next(steps)
        except PersistenceError:
            self._steps, self._next = None, monotonic + min(self._period, 10.0)
            self._is_requested = self._is_requested or self._is_first
            raise
        if found is None:
            return Maintained("audited", "some ledgers were compared", 0)
        is_half = self._is_first and bool(found.unfinished)  # ledgers being written are compared by the next pass
        self._steps = None
        if not self._is_requested:
            self._next = monotonic + (min(self._period, SECOND_PASS_SECONDS) if is_half else self._period)
        return self._finish(found, wall if found.is_covered and not is_half else self.ended)

    def _finish(self, found: _Pass, ended: int) -> Maintained:
        before, self._last = self._last, found
        self.ended = ended
        self.passes += 1
        new = {ledger_id: runs for ledger_id, runs in found.lost.items() if runs != before.lost.get(ledger_id)}
        if new:
            self._ensemble.report(MemberEvent("entries-lost", "", _lost_text(new)))
        text = f"{found.missing_entries} entries in {found.missing_count} fragments have too few copies"
        return Maintained("audited", text, 0)

    def _audit(self) -> "Iterator[_Pass | None]":
        """Compare some ledgers per step; the last value is the result."""
        ensemble = self._ensemble
        found = _Pass(self._members, is_covered=ensemble.is_covered())
        copies_of = ensemble.copies_of()
        ledgers = expected_ledgers(ensemble.rows())
        while some := list(islice(ledgers, LEDGERS_AT_ONCE)):
            self._compare(found, some, copies_of)
            yield None
        yield found

    def _compare(self, found: _Pass, ledgers: list[ExpectedLedger], copies_of: CopiesOf) -> None:
        readable = readable_members(self._ensemble)
        places = {held.name: held.place for held in readable}
        coverage = {held.name: held.member.coverage([each.ledger_id for each in ledgers]) for held in readable}
        for name, runs in coverage.items():
            found.count(name, runs)
        for ledger in ledgers:
            want = copies_of(ledger.ledger_id)
            found.most_wanted = max(found.most_wanted, want)
            found.newest = max(found.newest, ledger.ledger_id)
            covered = {name: list(runs.get(ledger.ledger_id, ())) for name, runs in coverage.items()}
            exists = self._exists(found, ledger, covered, places)
            result = compare(ledger.ledger_id, exists, want, covered, places)
            _add(found, ledger.ledger_id, result if self._is_complete() else _unavailable(ledger.ledger_id, result))

    def _is_complete(self) -> bool:
        """Return whether all members are read, so that entries without a copy are lost."""
        return all(held.place.state in READABLE for held in self._ensemble.held())

    def _exists(
        self, found: _Pass, ledger: ExpectedLedger, covered: Mapping[str, Runs], places: Mapping[str, MemberPlace]
    ) -> Runs:
        """Return the entries that exist, of which all copies are written.

        For a ledger without a known number of entries, those that were there at the previous pass. A leaving member
        receives nothing, so whatever it has exists.
        """
        leaving = [run for name, runs in covered.items() if places[name].state == MemberState.LEAVING for run in runs]
        if ledger.entries is not None:
            return merged([(0, ledger.entries), *leaving])
        now = merged(run for runs in covered.values() for run in runs)
        found.unfinished[ledger.ledger_id] = now
        return merged([*common(now, self._last.unfinished.get(ledger.ledger_id, [])), *leaving])

    def replace(self, fragment: Fragment, remaining: Iterable[Fragment]) -> None:
        """Replace a listed fragment by what still has too few copies of it."""
        last = self._last
        at = last.missing.index(fragment)
        rest = list(remaining)
        last.missing[at : at + 1] = rest
        last.missing_count += len(rest) - 1
        last.missing_entries += sum(each.end - each.first for each in rest) - (fragment.end - fragment.first)
        if not last.missing:
            self.request()  # for those that were not listed, and to confirm

    def add(self, fragment: Fragment) -> None:
        """Add a fragment that was found outside a pass."""
        last = self._last
        last.missing_count += 1
        last.missing_entries += fragment.end - fragment.first
        last.missing.append(fragment)


def readable_members(ensemble: Ensemble) -> list[Held]:
    """Return the members whose index is valid."""
    return [held for held in ensemble.held() if held.place.state in READABLE]


def _unavailable(ledger_id: int, result: Findings) -> Findings:
    """Return the findings with lost entries as fragments without a copy: a member that is not read may have them."""
    gone = [Fragment(ledger_id, first, end, (), 1) for first, end in result.lost]
    return Findings([*result.missing, *gone], [], result.surplus)


def _lost_text(lost: Mapping[int, Runs]) -> str:
    some = [f"{ledger_id}:{first} to {end - 1}" for ledger_id, runs in lost.items() for first, end in runs]
    count = sum(map(length, lost.values()))
    return f"no data directory has a copy of {count} entries: {', '.join(some[:5])}{', ...' if some[5:] else ''}"


def _add(found: _Pass, ledger_id: int, result: Findings) -> None:
    missing, lost, surplus = result
    found.missing_count += len(missing)
    found.missing_entries += sum(each.end - each.first for each in missing)
    found.missing += missing[: max(LISTED_MAX - len(found.missing), 0)]
    found.surplus += surplus[: max(LISTED_MAX - len(found.surplus), 0)]
    if lost:
        found.lost[ledger_id] = lost
