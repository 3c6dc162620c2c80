"""Reads from several members: the next one takes over where one has no copy or a damaged one."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot
from pulsarbox.storage.entry_read import EntryMissing
from pulsarbox.storage.record import Entry

REMEMBERED_MAX = 4096
"""Ledgers whose last member is remembered."""
DAMAGED_MAX = 1000
"""Damaged entries that wait for repair."""


class DamagedCopy(NamedTuple):
    """Entries that one member could not read."""

    name: str
    ledger_id: int
    first: int
    last: int


class EnsembleReader:
    """Answers reads from the copies."""

    def __init__(self, table: MemberTable) -> None:
        self._table = table
        self._last: dict[int, str] = {}
        """The member that had the last entry read, by ledger."""
        self.damaged: deque[DamagedCopy] = deque(maxlen=DAMAGED_MAX)
        """Copies to repair."""
        self.lost_until: Callable[[int, int], int] = _none_lost
        """Returns the end of the run of lost entries with an entry of a ledger; 0 if it is not known as lost."""

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Engine.read."""
        plain = request._replace(work=None)
        entries = self._read_some(plain)
        while entries and (rest := _rest(plain, entries)) is not None:
            try:
                more = self._read_some(rest)
            except PersistenceError:
                break
            if len(more[0].body) > rest.max_bytes:
                break
            entries += more
        return request.answer(entries)

    def _read_some(self, request: ReadRequest) -> list[Entry]:
        """Return the first entries, from one member. Raises PersistenceError if none has the first."""
        found: PersistenceError | None = None
        for slot in self._slots(request.ledger_id):
            try:
                entries = slot.member.read(request)
            except PersistenceError as error:
                self._note(slot, error)
                found = _worse(found, error)
            else:
                self._remember(request.ledger_id, slot.member_id)
                return entries
        if found is None:
            raise PersistenceError(f"entry {request.ledger_id}:{request.first}: no data directory can be read")
        raise self._lost(request) or found

    def _lost(self, request: ReadRequest) -> EntryDamaged | None:
        """Return the error for entries that exist and of which no member has a copy."""
        end = self.lost_until(request.ledger_id, request.first)
        if not end:
            return None
        last = min(end - 1, request.last)
        return EntryDamaged(request.ledger_id, request.first, last, "no data directory has a copy")

    def _slots(self, ledger_id: int) -> list[Slot]:
        """Return the readable members, those of this machine first; among these, the one that was read last."""
        slots = [slot for slot in self._table.slots if slot.is_readable]
        last = self._last.get(ledger_id)
        return sorted(slots, key=lambda slot: (slot.member.is_remote, slot.member_id != last))

    def _remember(self, ledger_id: int, member_id: str) -> None:
        if self._last.get(ledger_id) != member_id:
            self._last.pop(ledger_id, None)
            self._last[ledger_id] = member_id
            if len(self._last) > REMEMBERED_MAX:
                del self._last[next(iter(self._last))]

    def _note(self, slot: Slot, error: PersistenceError) -> None:
        if isinstance(error, EntryMissing):
            return
        slot.read_errors += 1
        if isinstance(error, EntryDamaged):
            self.damaged.append(DamagedCopy(slot.name, error.ledger_id, error.first, error.last))


def _none_lost(ledger_id: int, entry: int) -> int:
    return 0


def _rest(request: ReadRequest, entries: list[Entry]) -> ReadRequest | None:
    """Return the request for what an answer does not have yet; None if it is complete."""
    size = sum([len(entry.body) for entry in entries])
    first = entries[-1].entry_id + 1
    for low, high in request.left_out:
        if low <= first <= high:
            first = high + 1
    if first > request.last or size >= request.max_bytes:
        return None
    return request._replace(first=first, max_bytes=request.max_bytes - size)


def _worse(found: PersistenceError | None, error: PersistenceError) -> PersistenceError:
    """Return the error to report: damage before failures, and failures before a missing entry."""
    rank = [isinstance(each, EntryDamaged) * 2 + (not isinstance(each, EntryMissing)) for each in (found, error)]
    return error if found is None or rank[1] > rank[0] else found
