"""An engine on members in memory with maintenance, and the entries that it must keep."""

import json
from typing import Any

from pulsarbox.clock import Now
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.keeping.memory_directories import MemoryDirectories
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from pulsarbox.storage.ensemble.status import MemberEvent
from pulsarbox.storage.record import Entry
from tests.unit.storage.batches import batch_of, entry_of

UNLIMITED = MaintenanceRates(0, 0, 0)


class KeptBox:
    """A box that publishes to a few ledgers with two copies each."""

    def __init__(self, *names: str, copies: int = 2, rates: MaintenanceRates = UNLIMITED) -> None:
        self.disks = {name: MemberDisk(name) for name in names}
        self.directories = MemoryDirectories(self.disks)
        self.copies = copies
        self.rates = rates
        self.ends: dict[int, int] = {}
        self.now = 0.0
        self.events: list[MemberEvent] = []
        self.engine: EnsembleEngine
        self.open(*names)

    def open(self, *names: str) -> None:
        """Open the engine on these directories; the log is replayed by none."""
        self.engine = EnsembleEngine(
            [MemoryMember(self.disks[name]) for name in names],
            limits=EnsembleLimits(segment_bytes=2000),
            directories=self.directories,
            rates=self.rates,
            monotonic=lambda: self.now,
        )
        self.engine.on_change = self.events.append
        assert self.engine.keeper is not None
        self.engine.keeper.wanted = lambda rows: lambda ledger_id: self.copies
        for _ in self.engine.recover().batches:
            pass

    def publish(self, ledger_id: int, count: int = 3, size: int = 40) -> None:
        """Commit a batch with entries of a ledger, on two of all members."""
        first = self.ends.get(ledger_id, 0)
        batch = batch_of(self.engine.next_position, [(ledger_id, first, count)], size)
        batch.ask(5, self.copies, self.copies)
        self.engine.commit(batch)
        self.ends[ledger_id] = first + count

    def checkpoint(self, dropped: tuple[int, ...] = ()) -> None:
        """Commit a batch without messages, and write a checkpoint that covers it."""
        rows: dict[bytes, bytes | None] = {b"ids": json.dumps({"next": 1000}).encode()}
        rows |= {_key(each): json.dumps({"entries": end}).encode() for each, end in self.ends.items()}
        for each in dropped:
            del self.ends[each]
            rows[_key(each)] = None
        self.engine.checkpoint(Checkpoint(self.engine.next_position - 1, rows, dropped))

    def maintain(self, steps: int = 500) -> int:
        """Run maintenance until nothing is due for a while; return the number of steps."""
        done = idle = 0
        last: list[object] = []
        while idle < 25 and done < steps:
            last = [*last[-7:], self.engine.maintain(Now(self.now, int(self.now * 1000) + 1))]
            if last[-1] is None:
                idle += 1
                self.now += 1.0
            else:
                idle, done = 0, done + 1
        assert done < steps, f"maintenance does not come to an end: {last}, {self.engine.status()}"
        return done

    def state(self, name: str) -> str:
        """The state of a member; empty if it is not one."""
        return {each.name: each.state for each in self.engine.status().members}.get(name, "")

    def read(self, ledger_id: int) -> list[Entry]:
        """All entries of a ledger, read through the engine."""
        return self.engine.read(ReadRequest(1, ledger_id, 0, self.ends[ledger_id] - 1, 1 << 30))

    def copies_of(self, ledger_id: int, entry: int) -> list[str]:
        """The members in use that have an intact copy of an entry."""
        found = []
        for slot in self.engine.table.slots:
            if slot.is_readable and slot.state != MemberState.LEAVING:
                try:
                    pieces = slot.member.pieces(ledger_id, entry, entry + 1, 1 << 20)
                except Exception:
                    continue
                if pieces[0].entries[0] == entry_of(ledger_id, entry, len(pieces[0].entries[0].body) - 6):
                    found.append(slot.name)
        return found

    def assert_complete(self) -> None:
        """Check that every entry has its copies and can be read."""
        for ledger_id, end in self.ends.items():
            for entry in range(end):
                copies = self.copies_of(ledger_id, entry)
                assert len(copies) >= self.copies, f"{ledger_id}:{entry} has copies in {copies}: {self.engine.status()}"
            assert [each.entry_id for each in self.read(ledger_id)] == list(range(end))
        assert self.engine.status().under_replicated == ()

    def flip(self, name: str, ledger_id: int, entry: int) -> None:
        """Damage the stored bytes of an entry."""
        flip(self.disks[name], ledger_id, entry)


def flip(disk: MemberDisk, ledger_id: int, entry: int) -> None:
    """Damage the stored bytes of an entry."""
    segment = disk.find(ledger_id, entry)[0]
    value = bytearray(disk.value(segment.position))
    value[segment.offsets[0] + 96 + 12] ^= 1
    stored: Any = disk.log if segment.position in disk.log else disk.packed
    stored[segment.position] = bytes(value)


def _key(ledger_id: int) -> bytes:
    return b"ledger/%016x/%016x" % (1, ledger_id)
