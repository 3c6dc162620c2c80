"""Everything that keeps the copies of an ensemble complete: maintenance and operations, on the table of an engine."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from pulsarbox.errors import NotFound
from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.keeping.directories import Directories
from pulsarbox.storage.ensemble.keeping.engine_upkeep import Checkpointed, EngineUpkeep
from pulsarbox.storage.ensemble.keeping.expected_entries import Wanted
from pulsarbox.storage.ensemble.keeping.maintenance import Maintenance, MaintenanceRates
from pulsarbox.storage.ensemble.keeping.operations import Operations
from pulsarbox.storage.ensemble.keeping.rejoin import Rejoining
from pulsarbox.storage.ensemble.keeping.repair import Damage
from pulsarbox.storage.ensemble.keeping.upkeep import Maintained
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot
from pulsarbox.storage.ensemble.reader import EnsembleReader
from pulsarbox.storage.ensemble.status import FRAGMENTS_MAX, EnsembleStatus


class KeeperServices(NamedTuple):
    """The parts of an engine that its keeper works with."""

    table: MemberTable
    rows_lock: AbstractContextManager[Any]
    rows: Rows
    reader: EnsembleReader
    checkpointed: Checkpointed
    monotonic: Callable[[], float]
    new_id: Callable[[], str]


class Keeper:
    """``step`` and ``wait`` are called by the thread of maintenance, the rest by any thread."""

    def __init__(self, engine: KeeperServices, directories: Directories, rates: MaintenanceRates) -> None:
        self._engine = engine
        table, checkpointed = engine.table, engine.checkpointed
        self._rejoining = Rejoining(table, engine.rows_lock, engine.rows, lambda: checkpointed.mark, directories)
        self._upkeep = EngineUpkeep(table, engine.rows, checkpointed, directories, self._rejoining)
        self.maintenance = Maintenance(self._upkeep, rates, engine.monotonic)
        auditor = self.maintenance.auditor
        self._upkeep.passes = lambda: auditor.passes
        self._upkeep.audit = auditor.request
        self.operations = Operations(table, directories, auditor, engine.new_id, self._retire)
        engine.reader.lost_until = auditor.lost_until
        self.maintenance.forced = self.operations.forced

    @property
    def wanted(self) -> Wanted | None:
        """Builds the function of the number of copies wanted from rows; None for one copy of everything."""
        return self._upkeep.wanted

    @wanted.setter
    def wanted(self, wanted: Wanted) -> None:
        self._upkeep.wanted = wanted

    def step(self, monotonic: float, wall: int) -> Maintained | None:
        """Run one step of maintenance; None if nothing is due. ``wall`` is in milliseconds since 1970."""
        damaged = self._engine.reader.damaged
        while damaged:
            name, ledger_id, first, last = damaged.popleft()
            self.maintenance.repairer.damaged(Damage(name, ledger_id, first, last + 1, "found by a read"))
        done = self.maintenance.step(monotonic, wall)
        self._count()
        return done

    def wait(self, monotonic: float) -> float:
        """Return the seconds until a step may be due."""
        return self.maintenance.wait(monotonic)

    def scrub(self, name: str) -> None:
        """Begin to verify all entries of a member soon. Raises NotFound."""
        if not any(slot.name == name for slot in self._engine.table.slots):
            raise NotFound(f"{name} is not a data directory of the box")
        self.maintenance.scrubber.request(name)

    def ledgers_of_members(self) -> Mapping[str, Sequence[int]]:
        """Return the ledgers of which each readable member has entries. Raises PersistenceError."""
        slots = self._engine.table.slots
        return {slot.name: slot.member.ledgers() for slot in slots if slot.is_readable}

    def is_open(self, ledger_id: int) -> bool:
        """See Auditor."""
        return self.maintenance.auditor.is_open(ledger_id)

    def complete(self, status: EnsembleStatus) -> EnsembleStatus:
        """Return a status with the results of audit, repair and scrub."""
        maintenance = self.maintenance
        auditor = maintenance.auditor
        members = tuple(each._replace(scrub=maintenance.scrubber.status(each.name)) for each in status.members)
        return status._replace(
            members=members,
            under_replicated=tuple(auditor.missing[:FRAGMENTS_MAX]),
            under_replicated_count=auditor.missing_count,
            audited=auditor.ended,
            repair=maintenance.status,
            copies_wanted=auditor.most_wanted,
        )

    def close(self) -> None:
        """Store the progress, and close what is no longer used. No step may be running."""
        self.maintenance.close()
        self._rejoining.close()

    def _retire(self, slot: Slot) -> None:
        self._rejoining.retire(slot, self._engine.monotonic())

    def _count(self) -> None:
        contents = self.maintenance.auditor.contents
        for slot in self._engine.table.slots:
            if slot.name in contents:
                slot.ledgers, slot.entries = contents[slot.name]
