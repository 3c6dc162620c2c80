"""An ensemble for tests of maintenance: members in memory, and rows that say what exists."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from sortedcontainers import SortedDict

from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.keeping.expected_entries import CopiesOf
from pulsarbox.storage.ensemble.keeping.fragments import MemberPlace
from pulsarbox.storage.ensemble.keeping.upkeep import Held, Maintained
from pulsarbox.storage.ensemble.member import MemberState, PackedBatch
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from pulsarbox.storage.ensemble.status import MemberEvent
from pulsarbox.storage.memory_engine import MemoryRows
from tests.unit.storage.batches import batch_of, entry_of


class _Table(NamedTuple):
    rows: "SortedDict[bytes, bytes]"


class KeptEnsemble:
    """An Ensemble of members that the test writes directly."""

    def __init__(self, *names: str) -> None:
        self.disks = {name: MemberDisk(name) for name in names}
        self.members = {name: MemoryMember(disk) for name, disk in self.disks.items()}
        self.states = dict.fromkeys(names, MemberState.ACTIVE)
        self.table: SortedDict[bytes, bytes] = SortedDict()
        self.want: dict[int, int] = {}
        self.settled = self.covered = True
        self.events: list[MemberEvent] = []
        self.notes: dict[str, bytes] = {}
        self.gone: list[str] = []
        self.position = 0
        for member in self.members.values():
            member.open()

    def write(self, ledger_id: int, first: int, count: int, *names: str, size: int = 40) -> None:
        """Write entries in one batch to some members."""
        self.position += 1
        batch = batch_of(self.position, [(ledger_id, first, count)], size)
        for name in names:
            self.members[name].commit(PackedBatch(batch.position, batch.value(), batch.runs))

    def exists(self, ledger_id: int, entries: int | None, want: int = 2, kind: str = "ledger/%016x/%016x") -> None:
        """Store the row of a ledger."""
        row = {} if entries is None else {"entries": entries}
        self.table[(kind % ((1, ledger_id) if kind.count("%") > 1 else ledger_id)).encode()] = json.dumps(row).encode()
        self.want[ledger_id] = want

    def delete(self, ledger_id: int) -> None:
        """Delete a ledger."""
        for key in [key for key in self.table if key.endswith(b"%016x" % ledger_id)]:
            del self.table[key]
        for disk in self.disks.values():
            disk.dropped.add(ledger_id)

    def flip(self, name: str, ledger_id: int, entry: int) -> None:
        """Damage the stored bytes of an entry."""
        disk = self.disks[name]
        segment = disk.find(ledger_id, entry)[0]
        value = bytearray(disk.value(segment.position))
        value[segment.offsets[0] + 96 + 12] ^= 1
        (disk.log if segment.position in disk.log else disk.packed)[segment.position] = bytes(value)

    def runs(self, name: str, ledger_id: int) -> list[tuple[int, int]]:
        """The coverage of a member."""
        return list(self.members[name].coverage([ledger_id]).get(ledger_id, ()))

    def assert_copies(self, ledger_id: int, first: int, end: int, *names: str) -> None:
        """Check that exactly these members have entries, intact."""
        for name, member in self.members.items():
            found = [each for piece in _pieces(member, ledger_id, first, end) for each in piece]
            assert found == (name in names) * [entry_of(ledger_id, entry) for entry in range(first, end)], name

    # Ensemble

    def held(self) -> Sequence[Held]:
        return [
            Held(member, MemberPlace(name, self.states[name], self.disks[name].device, member.statistics()["bytes"]))
            for name, member in self.members.items()
            if name not in self.gone
        ]

    def rows(self) -> Rows:
        return MemoryRows(_Table(self.table))

    def is_settled(self) -> bool:
        return self.settled

    def is_covered(self) -> bool:
        return self.covered

    def copies_of(self) -> CopiesOf:
        return lambda ledger_id: self.want[ledger_id]

    def advance(self, monotonic: float, wall: int) -> Maintained | None:
        return None

    def release(self, name: str) -> bool:
        self.gone.append(name)
        return True

    def report(self, event: MemberEvent) -> None:
        self.events.append(event)

    def read_note(self, name: str) -> bytes:
        return self.notes.get(name, b"")

    def write_note(self, name: str, note: bytes) -> None:
        self.notes[name] = note


def _pieces(member: MemoryMember, ledger_id: int, first: int, end: int) -> list[Sequence[object]]:
    if not any(low <= first and end <= high for low, high in member.coverage([ledger_id]).get(ledger_id, ())):
        return []
    return [piece.entries for piece in member.pieces(ledger_id, first, end, 1 << 30)]
