"""The engine of a box with several data directories: each batch is stored in as many of them as it asks for.

A member that fails leaves the ensemble, and the next batch is confirmed only when all remaining members have recorded
that. ``recovery`` states which batches are part of the log after a crash; `placement` chooses the members of a batch.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, NotEnoughBookies, PersistenceError, StoreFull
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.engine import Checkpoint, Compressing, ReadRequest, Reclaimed, Recovery
from pulsarbox.storage.ensemble.commit import Commit
from pulsarbox.storage.ensemble.copy_writes import InlineWriters, Writers
from pulsarbox.storage.ensemble.keeping.directories import Directories
from pulsarbox.storage.ensemble.keeping.engine_upkeep import Checkpointed
from pulsarbox.storage.ensemble.keeping.keeper import Keeper, KeeperServices
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.keeping.upkeep import Maintained
from pulsarbox.storage.ensemble.member import Member, MemberState, PackedBatch
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot
from pulsarbox.storage.ensemble.opening import EnsembleOpening, OpenedLog
from pulsarbox.storage.ensemble.placement import Placement
from pulsarbox.storage.ensemble.reader import EnsembleReader
from pulsarbox.storage.ensemble.recovery import merged
from pulsarbox.storage.ensemble.rows import EnsembleRows
from pulsarbox.storage.ensemble.statistics import combined
from pulsarbox.storage.ensemble.status import EnsembleStatus, MemberEvent, MemberStatus, RepairStatus, SegmentStatus
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry

NEW_IDS: Final = iter(range(1, 1 << 62))


def _numbered() -> str:
    return f"{next(NEW_IDS):016x}"


def _zero() -> float:
    return 0.0


class EnsembleLimits(NamedTuple):
    """Sizes and times of an ensemble."""

    segment_bytes: int = 64 << 20
    """Bytes of the journal after which other members of a larger ensemble are written."""
    late_seconds: float = 5.0
    """Age of an unfinished write at which a member leaves."""


class EnsembleEngine:
    """An Engine over members, of which at least one can be opened."""

    def __init__(  # noqa: PLR0913  # all but the first are keyword-only
        self,
        members: Sequence[Member],
        *,
        limits: EnsembleLimits | None = None,
        writers: Writers | None = None,
        codecs: RestCodecs | None = None,
        accept_loss_of: Collection[str] = (),
        directories: Directories | None = None,
        rates: MaintenanceRates | None = None,
        monotonic: Callable[[], float] = _zero,
        wall: Callable[[], int] = int,
        new_id: Callable[[], str] = _numbered,
    ) -> None:
        """``writers`` write at once if omitted. ``accept_loss_of`` are the names of members that may be missing.

        ``directories`` are needed for maintenance and operations, at these ``rates``. ``monotonic`` returns seconds,
        ``wall`` milliseconds since 1970, ``new_id`` a random id.
        """
        limits = EnsembleLimits() if limits is None else limits
        self.codecs = RestCodecs() if codecs is None else codecs
        self._members = list(members)
        self._writers = InlineWriters() if writers is None else writers
        self._accept_loss_of = accept_loss_of
        self._new_id = new_id
        self._monotonic = monotonic
        self._late_seconds = limits.late_seconds
        self.table = MemberTable(self._writers, wall, new_id)
        self.rows_lock = self._writers.lock()
        """Held while rows are written to all members, or copied from one to another."""
        self.reader = EnsembleReader(self.table)
        self._placement = Placement(limits.segment_bytes)
        self._reclaimed_last = 0
        self.checkpointed = Checkpointed()
        """The last checkpoint."""
        self._rows = EnsembleRows(self.table)
        self.keeper: Keeper | None = None
        """Maintenance and operations; None without ``directories``."""
        if directories is not None:
            keeping = KeeperServices(
                self.table, self.rows_lock, self._rows, self.reader, self.checkpointed, monotonic, new_id
            )
            self.keeper = Keeper(keeping, directories, MaintenanceRates() if rates is None else rates)
        self.copied: Callable[[Batch, int], None] | None = None
        """Called in the committer's thread as copy k of a batch is durable, below its ack quorum."""

    @property
    def on_change(self) -> Callable[[MemberEvent], None]:
        """Called with each change of a member's state, from any thread."""
        return self.table.on_change

    @on_change.setter
    def on_change(self, call: Callable[[MemberEvent], None]) -> None:
        self.table.on_change = call

    @property
    def writable(self) -> int:
        """The number of members that store messages at present. Thread-safe."""
        return len(self.table.active)

    @property
    def next_position(self) -> int:
        """The position of the batch in flight, or of the next one."""
        return self.table.undecided

    def recover(self) -> Recovery:
        """Open the members and merge their logs.

        Raises EnsembleIncomplete if confirmed messages may be in missing directories only, EnsembleConflict if
        directories were written separately, PersistenceError if none can be opened, DirectoryHeld.
        """
        opening = EnsembleOpening(self.table, self._members, self._new_id, self._accept_loss_of)
        try:
            log = opening.open()
        except BaseException:
            self._close_members()
            raise
        self.checkpointed.written(log.mark, self._monotonic())
        return Recovery(self._rows, self._batches(log), self.table.undecided)

    def _batches(self, log: OpenedLog) -> Iterator[bytes]:
        return merged(log.sources, log.mark, log.holes.last)

    def commit(self, batch: Batch) -> None:
        """Make a batch durable on as many members as its ack quorum.

        Raises PersistenceError or StoreFull if fewer than its lowest ack quorum are possible: nothing of it is stored
        then. Raises TooFewCopies if fewer than its ack quorum are: it is stored. Raises ValueError if its position is
        not the next.
        """
        table = self.table
        if batch.position != table.undecided:
            raise ValueError(f"batch {batch.position} was committed, but {table.undecided} is next")
        self.tend()
        self._refuse_hopeless(batch)
        packed = PackedBatch(batch.position, batch.value(), batch.runs)
        commit = Commit(table, self._writers, self._placement, self._monotonic, self._late_seconds)
        commit.run(batch, packed, self.copied)

    def _refuse_hopeless(self, batch: Batch) -> None:
        """Raise an error at once if messages cannot have the copies that they ask for."""
        writable = self.writable
        if not batch.runs:
            return
        if self.table.refusal:
            raise NotEnoughBookies(f"batch {batch.position} is not stored: {self.table.refusal}")
        if writable >= batch.ack_quorum_min:
            return
        what = (
            f"batch {batch.position} needs {batch.ack_quorum_min} copies, but {writable} data directories are writable"
        )
        if any(slot.state == MemberState.FULL for slot in self.table.slots):
            raise StoreFull(f"{what}: the others are full")
        raise NotEnoughBookies(what)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Engine."""
        return self.reader.read(request)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Engine. Members that fail leave, if at least one of this machine succeeds."""
        if checkpoint.position >= self.table.undecided:
            raise ValueError(f"checkpoint at {checkpoint.position}, but {self.table.undecided} is the next batch")
        with self.rows_lock:
            failed: list[tuple[Slot, PersistenceError]] = []
            slots = self.table.belonging
            for slot in slots:
                try:
                    slot.member.checkpoint(checkpoint)
                except PersistenceError as error:
                    failed.append((slot, error))
            if failed and self.table.is_needed([slot for slot, _ in failed]):
                raise failed[0][1]
            for slot, failure in failed:
                self.table.leave(slot, MemberState.LOST, str(failure))
            self.checkpointed.written(checkpoint.position, self._monotonic())

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Engine. The members take turns."""
        self.find_room()
        slots = self.table.belonging
        failure: PersistenceError | None = None
        for step in range(len(slots)):
            at = (self._reclaimed_last + 1 + step) % len(slots)
            try:
                reclaimed = slots[at].member.reclaim(compressing)
            except PersistenceError as error:
                failure = error
                continue
            if reclaimed is not None:
                self._reclaimed_last = at
                return reclaimed._replace(volumes=tuple(f"{slots[at].name}/{each}" for each in reclaimed.volumes))
        if failure is not None:
            raise failure
        return None

    def check_room(self) -> None:
        """See Engine."""
        self.find_room()
        if not self.writable:
            raise StoreFull("all data directories are full")

    def find_room(self) -> None:
        """Store messages again on members that were full and have space."""
        for slot in self.table.slots:
            if slot.state == MemberState.FULL:
                try:
                    slot.member.check_room()
                except PersistenceError:
                    continue
                with self.table.lock:
                    if slot.state == MemberState.FULL:
                        self.table.set_state(slot, MemberState.ACTIVE)
                self.table.flush_events()

    def tend(self) -> None:
        """Handle completed writes and late members. Called by the committer's thread only."""
        commit = Commit(self.table, self._writers, self._placement, self._monotonic, self._late_seconds)
        commit.tend()

    def coverage(self, ledger_ids: Sequence[int]) -> dict[str, Mapping[int, Sequence[tuple[int, int]]]]:
        """Return the entries that each readable member has: first entries and ends (exclusive), by its name.

        Slow. Thread-safe. Raises PersistenceError.
        """
        return {slot.name: slot.member.coverage(ledger_ids) for slot in self.table.slots if slot.is_readable}

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the stores as those of one. Thread-safe. Raises PersistenceError."""
        stores: list[tuple[str, dict[str, Any]]] = []
        devices: list[int] = []
        error: PersistenceError | None = None
        for slot in self.table.slots:
            if slot.is_readable:
                try:
                    stores.append((slot.name, slot.member.statistics()))
                    devices.append(slot.member.device)
                except PersistenceError as failure:
                    error = failure
        if not stores:
            raise error or PersistenceError("no data directory can be read")
        return combined(stores, devices)

    def status(self) -> EnsembleStatus:
        """Return the present state. Thread-safe, and without the lock, which is held while a membership is synced."""
        slots, segment, generation = self.table.slots, self._placement.segment, self.table.membership.generation
        names = {slot.member_id: slot.name for slot in slots}
        writing = tuple(names.get(each, each) for each in segment.members)
        members = tuple(self._member_status(slot, slots) for slot in slots)
        status = EnsembleStatus(
            generation=generation,
            segment=SegmentStatus(segment.number, segment.first_position, writing),
            members=members,
            under_replicated=(),
            under_replicated_count=0,
            audited=0,
            repair=RepairStatus(0, 0, 0, ""),
        )
        return status if self.keeper is None else self.keeper.complete(status)

    def maintain(self, now: Now) -> Maintained | None:
        """Run one step of maintenance; None if nothing is due. Called from one thread at a time."""
        return self._keeper().step(now.monotonic, now.wall)

    def add(self, name: str) -> None:
        """See Operations. Thread-safe, as the following."""
        self._keeper().operations.add(name)

    def remove(self, name: str, *, force: bool = False) -> None:
        """See Operations."""
        self._keeper().operations.remove(name, force=force)

    def replace(self, old: str, new: str, *, force: bool = False) -> None:
        """See Operations."""
        self._keeper().operations.replace(old, new, force=force)

    def scrub(self, name: str) -> None:
        """See Keeper."""
        self._keeper().scrub(name)

    def ledgers_of_members(self) -> Mapping[str, Sequence[int]]:
        """See Keeper."""
        return self._keeper().ledgers_of_members()

    def is_open(self, ledger_id: int) -> bool:
        """See Auditor."""
        return self._keeper().is_open(ledger_id)

    def _keeper(self) -> Keeper:
        if self.keeper is None:
            raise Conflict("the data directories of this box cannot be changed")
        return self.keeper

    def _member_status(self, slot: Slot, slots: Sequence[Slot]) -> MemberStatus:
        device = slot.member.device
        oldest = slot.writer.oldest if slot.writer is not None else None
        return MemberStatus(
            name=slot.name,
            member_id=slot.member_id,
            state=slot.state,
            why=slot.why,
            since=slot.since,
            device=device,
            shares_device_with=tuple(
                each.name for each in slots if device and each is not slot and each.member.device == device
            ),
            bytes_used=slot.bytes_used,
            bytes_free=slot.bytes_free,
            ledgers=slot.ledgers,
            entries=slot.entries,
            commits=slot.commits,
            commit_errors=slot.commit_errors,
            read_errors=slot.read_errors,
            queue=slot.writer.queue if slot.writer is not None else 0,
            oldest_write_seconds=0.0 if oldest is None else max(0.0, self._monotonic() - oldest),
            scrub=slot.scrub,
        )

    def release_inherited_lock(self) -> None:
        """Release the inherited locks in a forked child, which would outlive the parent. No other call may follow."""
        for slot in self.table.slots:
            if slot.content is not None:
                slot.member.release_inherited_lock()

    def close(self) -> None:
        """Finish the writes and close the members."""
        if self.keeper is not None:
            self.keeper.close()
        for slot in self.table.slots:
            if slot.writer is not None:
                slot.writer.stop()
        self._close_members()

    def _close_members(self) -> None:
        for slot in self.table.slots:
            if slot.content is not None:
                slot.member.close()
