"""The directories of a simulated ensemble, with the faults that they may have."""

from __future__ import annotations

from typing import Any

from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember, no_faults
from pulsarbox.storage.record import Entry
from tests.simulation.disk import PowerCut
from tests.simulation.ensemble.pledges import Pledge
from tests.simulation.world import World

WRITES = ("write_membership", "commit", "erase_from", "checkpoint", "replace_rows", "adopt", "forget", "reclaim")


class Directory:
    """One directory in memory, across all lives of the box."""

    def __init__(self, world: World, name: str, device: int) -> None:
        self.world = world
        self.name = name
        self.disk = MemberDisk(name, device, self._fault)
        self.failing = 0.0
        """Probability that a write fails."""
        self.full = False
        self.late = False
        self.lying = False
        self.steps_left = 0
        """Writes up to a power failure in the next one; 0: none."""
        self._old: MemberDisk | None = None
        self._probe = MemoryMember(self.disk)

    def member(self) -> Member:
        """Return a member on the directory, for one life of the box."""
        return MemoryMember(self.disk)

    def _fault(self, operation: str, argument: Any) -> str:
        if operation not in WRITES:
            return FaultOutcome.DONE
        if self.steps_left:
            self.steps_left -= 1
            if not self.steps_left:
                self.world.note("the power goes in", operation, "of", self.name)
                raise PowerCut(operation)
        if operation in ("commit", "adopt", "check_room") and self.full:
            raise StoreFull(f"{self.name} is full")
        if self.world.chance(self.failing):
            raise PersistenceError(f"{self.name} does not answer")
        if operation == "commit" and self.late:
            return FaultOutcome.LATE
        return FaultOutcome.LIE if operation == "commit" and self.lying else FaultOutcome.DONE

    @property
    def is_well(self) -> bool:
        """Return whether it has no fault at present."""
        return self.disk.present and not (self.failing or self.full or self.late or self.lying)

    def mend(self) -> None:
        """End all faults; the directory is there again."""
        self.failing, self.full, self.late, self.lying = 0.0, False, False, False
        self.disk.present = True
        self.disk.settle()

    def holds(self, pledge: Pledge) -> bool:
        """Return whether it has a batch, or the first entry of it, and not another one at its position."""
        if self.disk.log.get(pledge.position) == pledge.value:
            return True
        return bool(pledge.entries) and self.reads(pledge.entries[0])

    def has(self, entry: Entry) -> bool:
        """Return whether it has an entry, whatever state its member is in."""
        return self.disk.segment_of(entry.ledger_id, entry.entry_id) is not None

    def reads(self, entry: Entry) -> bool:
        """Return whether it has an entry undamaged."""
        if not self.has(entry):
            return False
        disk, probe = self.disk, self._probe
        faults, present = disk.faults, disk.present
        disk.faults, disk.present, probe._incarnation = no_faults, True, disk.incarnation
        try:
            return probe.read(ReadRequest(0, entry.ledger_id, entry.entry_id, entry.entry_id, 1)) == [entry]
        except PersistenceError:
            return False
        finally:
            disk.faults, disk.present = faults, present

    def lose_power(self) -> list[int]:
        """Lose what was not durable; return the positions that it had reported as stored."""
        lost = sorted(self.disk.unsynced)
        self.disk.power_failure()
        self.steps_left = 0
        return lost

    def wipe(self) -> None:
        """Replace the directory by an empty one."""
        self.disk.wipe()

    def remember(self) -> None:
        """Copy the state, to return to it later."""
        self._old = self.disk.copy()

    @property
    def has_old(self) -> bool:
        """Return whether there is a state to return to."""
        return self._old is not None

    def go_back(self) -> None:
        """Return to the copied state."""
        assert self._old is not None
        old, self._old = self._old, None
        old.faults, old.incarnation, old.present = self._fault, self.disk.incarnation + 1, self.disk.present
        self.disk.__dict__.update(old.__dict__)

    def damage(self, entry: Entry) -> bool:
        """Flip a bit in a stored entry; False if it is not here, or not stored as published."""
        found = self.disk.find(entry.ledger_id, entry.entry_id)
        if not found:
            return False
        key = found[0].position
        values: Any = self.disk.log if key in self.disk.log else self.disk.packed
        at = values[key].find(entry.body)
        if at < 0:
            return False
        value = bytearray(values[key])
        value[at + len(entry.body) - 1] ^= 1
        values[key] = bytes(value)
        return True
