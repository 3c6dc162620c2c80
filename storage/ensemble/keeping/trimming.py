"""Removes copies beyond those wanted from members that are full.

Other surplus copies stay until their ledgers are deleted: they do no harm, and they are the fastest repair if another
member fails.
"""

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping.auditor import Auditor
from pulsarbox.storage.ensemble.keeping.fragments import COUNTED
from pulsarbox.storage.ensemble.keeping.repair import STEP_BYTES, STEP_ENTRIES, read_verified
from pulsarbox.storage.ensemble.keeping.upkeep import Ensemble, Held, Maintained
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import Fragment


class Trimmer:
    """Trims one fragment per step, after all copies that remain were verified."""

    def __init__(self, ensemble: Ensemble, auditor: Auditor) -> None:
        self._ensemble = ensemble
        self._auditor = auditor

    def step(self) -> Maintained | None:
        """Trim a fragment; None if no full member has a surplus copy. Raises PersistenceError."""
        held = {each.name: each for each in self._ensemble.held()}
        surplus = self._auditor.surplus
        for at, fragment in enumerate(surplus):
            full = [name for name in fragment.have if name in held and held[name].place.state == MemberState.FULL]
            if full:
                del surplus[at]
                return self._trim(fragment, full[0], held)
        return None

    def _trim(self, fragment: Fragment, name: str, held: dict[str, Held]) -> Maintained:
        remaining = [each for each in fragment.have if each != name and each in held]
        intact = [each for each in remaining if held[each].place.state in COUNTED]
        ends = sorted((self._verified_end(held[each], fragment) for each in intact), reverse=True)
        # The wanted number of members have the entries before this end intact.
        end = ends[fragment.want - 1] if len(ends) >= fragment.want else fragment.first
        if end <= fragment.first:
            return Maintained("trimmed", f"{name} keeps a surplus copy: too few others are intact", 0)
        held[name].member.forget(fragment.ledger_id, fragment.first, end)
        if end < fragment.end:
            self._auditor.surplus.append(fragment._replace(first=end))
        return Maintained("trimmed", f"{name} is full: {end - fragment.first} surplus copies were removed", 0)

    def _verified_end(self, held: Held, fragment: Fragment) -> int:
        """Return the end of the entries from the first on that are intact in a member."""
        try:
            pieces = read_verified(held.member, fragment, STEP_BYTES, STEP_ENTRIES)
        except PersistenceError:
            return fragment.first
        return pieces[-1].entries[-1].entry_id + 1
