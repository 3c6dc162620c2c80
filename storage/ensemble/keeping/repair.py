"""Repair: copies entries with too few copies to members that lack them.

Entries are verified by their checksums when they are read from the source, and compared after they were written to
the target. Nothing is remembered about the work: what is left to do follows from the indexes of the members.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from pulsarbox.errors import EntryDamaged, PersistenceError, StoreFull
from pulsarbox.storage.ensemble.keeping.auditor import Auditor, readable_members
from pulsarbox.storage.ensemble.keeping.fragments import COUNTED, MemberPlace, common, length, sources_of, target_of
from pulsarbox.storage.ensemble.keeping.pace import Pace
from pulsarbox.storage.ensemble.keeping.upkeep import Ensemble, Held, Maintained
from pulsarbox.storage.ensemble.member import Member, Piece
from pulsarbox.storage.ensemble.status import Fragment, MemberEvent, RepairStatus
from pulsarbox.storage.record import verify_entry

STEP_BYTES: Final = 8 << 20
"""Bytes of entries copied in one step."""
STEP_ENTRIES: Final = 20_000
"""Entries copied in one step: small ones take longer than their bytes."""
STEP_FRAGMENTS: Final = 500
STEP_SECONDS: Final = 0.3
"""A step reads no further fragment after this time."""
RETRY_SECONDS: Final = 30.0
"""After an error, a member is not used for this long where another one can be."""
_REPORTED_MAX: Final = 10_000


class Damage(NamedTuple):
    """Entries of which the copy of a member is damaged."""

    name: str
    ledger_id: int
    first: int
    end: int
    reason: str


class _Copy(NamedTuple):
    """Entries read for a fragment."""

    fragment: Fragment
    source: str
    pieces: list[Piece]

    @property
    def end(self) -> int:
        return self.pieces[-1].entries[-1].entry_id + 1


class Repairer:
    """Copies the fragments that the auditor lists, and replaces damaged copies by intact ones."""

    def __init__(self, ensemble: Ensemble, auditor: Auditor, bytes_per_second: int, clock: Callable[[], float]) -> None:
        """``clock`` is monotonic, in seconds; it ends a step that takes long. A rate of 0 means no limit."""
        self._ensemble = ensemble
        self._auditor = auditor
        self.pace = Pace(bytes_per_second)
        self._clock = clock
        self._damages: deque[Damage] = deque(maxlen=_REPORTED_MAX)
        self._known: set[Damage] = set()
        """Damage without another copy, which was reported once."""
        self._avoided: dict[str, float] = {}
        """Members with a recent error, and until when they are avoided."""
        self._stuck: set[tuple[int, int, int]] = set()
        """Ledger, first entry and end of fragments without an intact copy."""
        self._pass = 0
        """The pass of the auditor that they are from."""
        self._done = 0
        self._error = ""

    @property
    def status(self) -> RepairStatus:
        """The progress."""
        return RepairStatus(self._done, self._auditor.missing_count, self._auditor.missing_entries, self._error)

    def damaged(self, damage: Damage) -> None:
        """Queue a damaged copy to be replaced. Thread-safe."""
        self._damages.append(damage)

    def step(self, monotonic: float) -> Maintained | None:
        """Replace a damaged copy or copy some entries; None if there is nothing to do that is possible."""
        if not self.pace.is_due(monotonic):
            return None
        self._avoided = {name: until for name, until in self._avoided.items() if until > monotonic}
        done = self._replace_damaged() if self._damages else self._copy_some(monotonic)
        if done is None and self._damages:
            return Maintained("repaired", "damaged copies were found", 0)
        if done is not None:
            self.pace.spend(done.bytes, monotonic)
        return done

    # Copying

    def _copy_some(self, monotonic: float) -> Maintained | None:
        target, copies = self._read_some(monotonic)
        if target is None:
            return None
        size = self._write(target, copies, monotonic)
        if not size:
            return Maintained("repaired", f"entries could not be copied to {target.name}: {self._error}", 0)
        entries = sum(each.end - each.fragment.first for each in copies)
        return Maintained("repaired", f"{entries} entries were copied to {target.name}", size)

    def _read_some(self, monotonic: float) -> tuple[Held | None, list[_Copy]]:
        """Read fragments that go to the same member, up to the limits of a step."""
        held = list(self._ensemble.held())
        places = [each.place for each in held]
        members = {each.name: each for each in held}
        target: MemberPlace | None = None
        copies: list[_Copy] = []
        read: set[int] = set()
        """Ledgers in this step: one fragment each, in case two of them overlap."""
        budget = _Budget(self._clock)
        if self._pass != self._auditor.passes:
            self._pass, self._stuck = self._auditor.passes, set()
        for fragment in tuple(self._auditor.missing):
            if fragment[:3] in self._stuck:
                continue
            found = target_of(fragment.have, fragment.want, places, self._avoided) if fragment.have else None
            if found is None or (target is not None and found != target) or fragment.ledger_id in read:
                continue
            copy = self._read(fragment, members, budget, monotonic)
            if copy is not None:
                target = found
                copies.append(copy)
                read.add(fragment.ledger_id)
                budget.spend(copy)
            if budget.is_spent:
                break
        return (None if target is None else members[target.name]), copies

    def _read(self, fragment: Fragment, members: dict[str, Held], budget: "_Budget", monotonic: float) -> _Copy | None:
        """Read the beginning of a fragment from the first source that has an intact copy."""
        places = [each.place for each in members.values()]
        ends: list[int] = []
        for place in sources_of(fragment.have, places, self._avoided):
            try:
                pieces = read_verified(members[place.name].member, fragment, budget.bytes, budget.entries)
            except EntryDamaged as error:
                ends.append(min(max(error.last, fragment.first) + 1, fragment.end))
                self.damaged(Damage(place.name, fragment.ledger_id, fragment.first, ends[-1], error.reason))
            except PersistenceError as error:
                self._failed(place.name, error, monotonic)
                self._auditor.request()  # its index may have changed
            else:
                return _Copy(fragment, place.name, pieces)
        if ends:
            self._set_aside(fragment, min(ends))
        return None

    def _set_aside(self, fragment: Fragment, end: int) -> None:
        """Leave out entries of which no intact copy was found, until the next pass, and go on behind them."""
        self._stuck.add((fragment.ledger_id, fragment.first, end))
        parts = [fragment._replace(end=end), fragment._replace(first=end)]
        self._auditor.replace(fragment, [part for part in parts if part.first < part.end])

    def _write(self, target: Held, copies: list[_Copy], monotonic: float) -> int:
        """Store copies in a member, and compare what it has then with what was read."""
        try:
            pieces = [piece for copy in copies for piece in copy.pieces]
            size = target.member.adopt(sorted(pieces, key=_order))
            deleted = self._deleted(target.member, copies)
            wrong = [copy for copy in copies if copy not in deleted and not self._is_written(target.member, copy)]
        except PersistenceError as error:
            self._failed(target.name, error, monotonic)
            if not isinstance(error, StoreFull):
                self._auditor.request()
            return 0
        self._done += size
        for copy in copies:
            if copy in deleted:
                self._stuck.add(copy.fragment[:3])
            elif copy in wrong:
                self._undo(target, copy, monotonic)
            else:
                self._auditor.replace(copy.fragment, self._remaining(target.name, copy))
        self._report_end(target.name)
        return size

    def _deleted(self, member: Member, copies: list[_Copy]) -> list[_Copy]:
        """Return the copies that were left out, because a checkpoint has deleted their ledgers meanwhile."""
        known = member.coverage([copy.fragment.ledger_id for copy in copies])
        return [copy for copy in copies if not known.get(copy.fragment.ledger_id)]

    def _is_written(self, member: Member, copy: _Copy) -> bool:
        """Return whether a member has what was read."""
        first = copy.fragment.first
        runs = member.coverage([copy.fragment.ledger_id]).get(copy.fragment.ledger_id, ())
        if length(common([(first, copy.end)], list(runs))) < copy.end - first:
            return False
        wanted = [entry for piece in copy.pieces for entry in piece.entries]
        try:
            return wanted == [*_entries(member, copy.fragment.ledger_id, first, copy.end)]
        except EntryDamaged:
            return False

    def _undo(self, target: Held, copy: _Copy, monotonic: float) -> None:
        """Forget a copy that cannot be read back, and avoid the member for a while."""
        self._failed(target.name, PersistenceError("entries read back differ from those written"), monotonic)
        try:
            target.member.forget(copy.fragment.ledger_id, copy.fragment.first, copy.end)
        except PersistenceError as error:
            self._error = f"{target.name}: {error}"

    def _remaining(self, target: str, copy: _Copy) -> Iterator[Fragment]:
        """Yield what still has too few copies of a fragment."""
        fragment = copy.fragment
        have = tuple(sorted({*fragment.have, target}))
        states = {held.name: held.place.state for held in self._ensemble.held()}
        if sum(states.get(name) in COUNTED for name in have) < fragment.want:
            yield fragment._replace(end=copy.end, have=have)
        if copy.end < fragment.end:
            yield fragment._replace(first=copy.end)

    def _report_end(self, target: str) -> None:
        if not self._auditor.missing:
            text = f"all entries have enough copies again: {self._done} bytes were copied since the start"
            self._ensemble.report(MemberEvent("fragments-repaired", target, text))

    def _failed(self, name: str, error: PersistenceError, monotonic: float) -> None:
        self._error = f"{name}: {error}"
        self._avoided[name] = monotonic + RETRY_SECONDS

    # Damaged copies

    def _replace_damaged(self) -> Maintained:
        """Forget a damaged copy if another member has an intact one, which is then copied like any other."""
        damage = self._damages.popleft()
        size = 0
        try:
            size = self._replace(damage)
        except PersistenceError as error:
            self._error = f"{damage.name}: {error}"
        return Maintained("repaired", f"{_text(damage)} of {damage.name} were examined", size)

    def _replace(self, damage: Damage) -> int:
        held = {each.name: each for each in readable_members(self._ensemble)}
        fragment = Fragment(damage.ledger_id, damage.first, damage.end, (), 1)
        if damage.name not in held or not _covers(held[damage.name].member, fragment):
            return 0  # forgotten or deleted meanwhile
        for name, other in held.items():
            if name == damage.name or not covers_first(other.member, fragment):
                continue
            try:
                pieces = read_verified(other.member, fragment, STEP_BYTES, STEP_ENTRIES)
            except PersistenceError:
                continue
            self._forget(held[damage.name], damage, pieces[-1].entries[-1].entry_id + 1)
            return sum(len(entry.body) for piece in pieces for entry in piece.entries)
        self._report_unrepairable(damage)
        return 0

    def _forget(self, held: Held, damage: Damage, end: int) -> None:
        """Forget the part of a damaged run that another member has intact, and list it for repair."""
        held.member.forget(damage.ledger_id, damage.first, end)
        if end < damage.end:
            self.damaged(damage._replace(first=end))
        text = f"{held.name}: {_text(damage)} are damaged ({damage.reason}); another directory has them"
        self._ensemble.report(MemberEvent("entries-damaged", held.name, text))
        have = tuple(
            each.name
            for each in readable_members(self._ensemble)
            if _covers(each.member, Fragment(damage.ledger_id, damage.first, end, (), 1))
        )
        want = self._ensemble.copies_of()(damage.ledger_id)
        if have and len(have) < want:
            self._auditor.add(Fragment(damage.ledger_id, damage.first, end, have, want))
        elif not have:
            self._auditor.request()

    def _report_unrepairable(self, damage: Damage) -> None:
        """Keep a damaged copy that is the only one: reads report it, and what is left of it stays readable."""
        if damage not in self._known and len(self._known) < _REPORTED_MAX:
            self._known.add(damage)
            text = f"{damage.name}: {_text(damage)} are damaged ({damage.reason}); no other directory has them intact"
            self._ensemble.report(MemberEvent("entries-damaged", damage.name, text))


class _Budget:
    """The bytes, entries, fragments and time that are left for a step."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.bytes, self.entries, self._fragments = STEP_BYTES, STEP_ENTRIES, STEP_FRAGMENTS
        self._clock = clock
        self._end = clock() + STEP_SECONDS

    @property
    def is_spent(self) -> bool:
        return min(self.bytes, self.entries, self._fragments) <= 0 or self._clock() >= self._end

    def spend(self, copy: _Copy) -> None:
        """Count what was read."""
        self._fragments -= 1
        for piece in copy.pieces:
            self.entries -= len(piece.entries)
            self.bytes -= sum(len(entry.body) for entry in piece.entries)


def read_verified(member: Member, fragment: Fragment, max_bytes: int, max_entries: int) -> list[Piece]:
    """Return the beginning of a fragment as a member has it, verified; at least one entry.

    Raises EntryDamaged if the first entry is damaged, PersistenceError if it is not there.
    """
    end = min(fragment.end, fragment.first + max_entries)
    pieces = member.pieces(fragment.ledger_id, fragment.first, end, max_bytes)
    expected = fragment.first
    intact: list[Piece] = []
    for piece in pieces:
        for entry in piece.entries:
            if (entry.ledger_id, entry.entry_id) != (fragment.ledger_id, expected):
                raise PersistenceError(f"{member.name}: expected entry {fragment.ledger_id}:{expected}")
            expected += 1
        try:
            _verify(piece)
        except EntryDamaged:
            if not intact:
                raise
            return intact
        intact.append(piece)
    if not intact:
        raise PersistenceError(f"{member.name}: entry {fragment.ledger_id}:{fragment.first} does not exist")
    return intact


def _order(piece: Piece) -> tuple[int, int, int]:
    return piece.position, piece.entries[0].ledger_id, piece.entries[0].entry_id


def _verify(piece: Piece) -> None:
    for entry in piece.entries:
        verify_entry(entry)


def _entries(member: Member, ledger_id: int, first: int, end: int) -> Iterable[object]:
    """Yield the entries of a member, verified."""
    while first < end:
        pieces = read_verified(member, Fragment(ledger_id, first, end, (), 1), STEP_BYTES, STEP_ENTRIES)
        for piece in pieces:
            yield from piece.entries
        first = pieces[-1].entries[-1].entry_id + 1


def _covers(member: Member, fragment: Fragment) -> bool:
    """Return whether the index of a member has all entries of a fragment."""
    runs = list(member.coverage([fragment.ledger_id]).get(fragment.ledger_id, ()))
    return length(common([(fragment.first, fragment.end)], runs)) == fragment.end - fragment.first


def covers_first(member: Member, fragment: Fragment) -> bool:
    """Return whether the index of a member has the first entry of a fragment."""
    return _covers(member, fragment._replace(end=fragment.first + 1))


def _text(damage: Damage) -> str:
    return f"entries {damage.ledger_id}:{damage.first} to {damage.end - 1}"
