"""Opening an ensemble: which directories belong to it, what each of them has, and bringing those behind up to date."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import NamedTuple

from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.generations import KnownMembership, in_force
from pulsarbox.storage.ensemble.member import Member, MemberContent, MemberState, PackedBatch
from pulsarbox.storage.ensemble.member_table import BELONGING, MemberTable, Slot
from pulsarbox.storage.ensemble.membership import MemberRecord, Membership
from pulsarbox.storage.ensemble.recovery import (
    Holes,
    LogSource,
    MissingMember,
    check_complete,
    find_holes,
    last_batch,
)
from pulsarbox.storage.entry_index import runs_of


class OpenedLog(NamedTuple):
    """The log of an ensemble that was opened."""

    sources: tuple[LogSource, ...]
    mark: int
    """The position that the newest checkpoint covers."""
    holes: Holes


class EnsembleOpening:
    """Opens the members of a table."""

    def __init__(
        self, table: MemberTable, members: Sequence[Member], new_id: Callable[[], str], accept_loss_of: Collection[str]
    ) -> None:
        self._table = table
        self._members = members
        self._new_id = new_id
        self._accepted = set(accept_loss_of)
        self._returned: list[MissingMember] = []
        """Directories with an old state, whose later batches are missing."""

    def open(self) -> OpenedLog:
        """Open all members, verify that nothing confirmed is missing, and make all members active that can be.

        Raises EnsembleIncomplete, EnsembleConflict, and PersistenceError if no directory can be opened.
        """
        table = self._table
        for member in self._members:
            table.add(self._opened(member))
        open_slots = [slot for slot in table.slots if slot.content is not None]
        if all(slot.member.is_remote for slot in open_slots):
            raise PersistenceError("; ".join(slot.why for slot in table.slots if slot.why))
        self._find_box(open_slots)
        self._assign_states()
        log = self._read_log()
        table.undecided = log.holes.last + 1
        self._limit_logs()
        self._bring_up_to_date(log)
        if table.is_needed([]):
            why = "; ".join(slot.why for slot in table.slots if not slot.member.is_remote)
            raise PersistenceError(f"no data directory of this machine can be used: {why}")
        self._copy_last(log)
        table.begin_life()
        table.raise_generation()
        self._warn_of_shared_devices()
        table.flush_events()
        return log

    def _warn_of_shared_devices(self) -> None:
        """Report the directories whose copies one failure of a device would destroy together."""
        names: dict[int, list[str]] = {}
        for slot in self._table.belonging:
            if slot.member.device:
                names.setdefault(slot.member.device, []).append(slot.name)
        for sharing in names.values():
            if len(sharing) > 1:
                text = f"{', '.join(sharing)} are on the same device: if it fails, the copies there are lost together"
                self._table.report("shared-device", sharing[0], text)

    def _opened(self, member: Member) -> Slot:
        slot = Slot(member, "", MemberState.LOST)
        try:
            slot.content = member.open()
        except PersistenceError as error:
            if getattr(error, "pid", None) is not None:  # another process has the directory
                raise
            slot.why = str(error)
        return slot

    def _find_box(self, slots: Sequence[Slot]) -> None:
        """Set the membership in force, a new one if there is none."""
        contents = _contents(slots)
        known = [
            KnownMembership(slot.name, content.membership, content.newest)
            for slot, content in contents
            if content.membership is not None
        ]
        if known:
            box = known[0].membership.box
            self._table.membership = in_force([each for each in known if each.membership.box == box])
        else:
            self._check_new(contents)
            boxes = [content.box for _, content in sorted(contents, key=lambda each: not each[1].newest)]
            box = next((each for each in boxes if each), "") or self._new_id()
            self._table.membership = Membership(box, "", 0, "", (), 1)

    def _check_new(self, contents: Sequence[tuple[Slot, MemberContent]]) -> None:
        """Raise PersistenceError if a new box would be created while directories that may have contents are missing."""
        closed = [slot for slot in self._table.slots if slot.content is None]
        if closed and not any(content.newest for _, content in contents):
            empty = ", ".join(slot.name for slot, _ in contents)
            raise PersistenceError(
                f"{empty} has no messages, and another data directory cannot be used: {closed[0].why}"
            )

    def _assign_states(self) -> None:
        """Give each slot its id and state by the membership in force."""
        table = self._table
        records = {record.member_id: record for record in table.membership.members}
        begun = bool(table.membership.members)
        for slot in table.slots:
            if slot.content is not None:
                self._assign(slot, slot.content, records, begun=begun)
                begun = begun or (slot.state == MemberState.ACTIVE and slot.content.newest > 0)
        present = {slot.member_id for slot in table.slots}
        taken = {slot.name for slot in table.slots if slot.content is not None and slot.member_id}
        table.absent = [self._missed(record) for record in records.values() if record.member_id not in present]
        self._replaced = {record.member_id for record in table.absent if record.name in taken}
        for slot in table.slots:
            record = next((each for each in table.absent if each.name == slot.name), None)
            if slot.content is None and record is not None:
                slot.resume(record)
                table.absent.remove(record)

    def _missed(self, record: MemberRecord) -> MemberRecord:
        """Return the record of a member that is not there: it may know what the membership in force has."""
        if record.left_at or record.state not in BELONGING:
            return record
        return record._replace(known_quorum=max(record.known_quorum, self._table.membership.ack_quorum_min))

    def _assign(self, slot: Slot, content: MemberContent, records: dict[str, MemberRecord], *, begun: bool) -> None:
        box = self._table.membership.box
        if content.box and content.newest and content.box != box:
            _refuse(slot, f"{slot.name} belongs to another box")
            return
        member_id = content.membership.member_id if content.membership is not None else ""
        record = records.get(member_id)
        if record is not None:
            slot.resume(record)
            slot.known_quorum = 0 if content.membership is None else content.membership.ack_quorum_min
            if slot.distrust_old(content):
                self._returned.append(MissingMember(slot.name, record.left_at))
            slot.state = MemberState.FENCED if slot.left_at else slot.state_in_use
            if record.state == MemberState.REMOVED:
                slot.state = record.state
        elif member_id or (content.newest and begun):
            _refuse(slot, f"{slot.name} has messages that the other directories do not know: empty it to use it")
        else:
            slot.member_id = self._new_id()
            slot.state = MemberState.JOINING if begun else MemberState.ACTIVE

    def _read_log(self) -> OpenedLog:
        table = self._table
        valid = [slot for slot in table.slots if slot.belongs or slot.state == MemberState.FENCED]
        mark = max(content.mark for _, content in _contents(self._with_rows()))
        sources = tuple(LogSource(slot.name, slot.left_at, slot.member.batches) for slot in valid)
        holes = find_holes(sources, mark, table.membership.first)
        if not self._accepted or not holes.missing:
            check_complete(holes, self._missing(), table.membership.ack_quorum_min, table.membership.first)
        return OpenedLog(sources, mark, holes)

    def _with_rows(self) -> list[Slot]:
        """Return the open members whose rows are valid: those that have left only if there are no others."""
        slots = [slot for slot in self._table.slots if slot.content is not None]
        belonging = [slot for slot in slots if slot.belongs]
        found = belonging or [slot for slot in slots if slot.state == MemberState.FENCED]
        if not found:
            unusable = [slot.why or f"{slot.name} does not belong to the box any more" for slot in self._table.slots]
            raise PersistenceError("; ".join(unusable))
        return found

    def _missing(self) -> list[MissingMember]:
        """Return the members that may have parts of the log and are not open."""
        table = self._table
        lost = [MissingMember(each.name, each.left_at) for each in table.absent if each.state != MemberState.REMOVED]
        closed = [slot for slot in table.slots if slot.content is None and slot.member_id]
        lost += [MissingMember(slot.name, slot.left_at) for slot in closed] + self._returned
        return [each for each in lost if each.name not in self._accepted]

    def _bring_up_to_date(self, log: OpenedLog) -> None:
        """Give all members the newest rows, and make those active that were behind."""
        table = self._table
        newest = next(slot for slot, content in _contents(self._with_rows()) if content.mark == log.mark)
        assert newest.content is not None
        for slot, content in _contents(table.slots):
            if slot.state == MemberState.REMOVED:
                continue
            try:
                if slot.left_at:
                    slot.member.erase_from(slot.left_at)
                if not slot.belongs or content.mark < log.mark:
                    copy_rows(newest.content.rows, slot.member, log.mark)
            except PersistenceError as error:
                slot.left_at = slot.left_at or table.undecided
                table.set_state(slot, MemberState.LOST, str(error))
            else:
                slot.trust_all()
                if not slot.belongs:
                    table.set_state(slot, slot.state_in_use)

    def _limit_logs(self) -> None:
        """Exclude what members have after the end of the log: other batches follow now."""
        table = self._table
        end = table.undecided
        table.absent = [self._left(record) for record in table.absent if record.member_id not in self._replaced]
        for slot in table.slots:
            if slot.content is None and slot.member_id:
                slot.left_at = min(slot.left_at or end, end)
            elif slot.content is not None and not slot.belongs:
                slot.left_at = min(slot.left_at or 1, end)

    def _left(self, record: MemberRecord) -> MemberRecord:
        state = record.state if record.state == MemberState.REMOVED else MemberState.LOST
        end = self._table.undecided
        return record._replace(state=state, left_at=min(record.left_at or end, end))

    def _copy_last(self, log: OpenedLog) -> None:
        """Copy the last batch to all members that lack it: it may have been in flight, with too few copies."""
        last, sources = log.holes.last, [each for each in log.sources if each.name in log.holes.with_last]
        value = last_batch(sources, last)
        if value is None:  # a checkpoint covers all, or every copy is damaged
            return
        batch = PackedBatch(last, value, runs_of(value))
        for slot in self._table.active:
            if slot.content is not None and slot.name not in log.holes.with_last:
                self._copy(slot, batch)

    def _copy(self, slot: Slot, batch: PackedBatch) -> None:
        try:
            slot.member.commit(batch)
        except StoreFull as error:
            self._table.set_state(slot, MemberState.FULL, str(error))
        except PersistenceError as error:
            slot.left_at = slot.limit_from(batch.position)
            self._table.set_state(slot, MemberState.LOST, str(error))


def copy_rows(rows: Rows, member: Member, mark: int) -> None:
    """Replace the rows of a member by those of a checkpoint. Raises PersistenceError."""
    member.replace_rows(rows.items(b""), mark)


def _refuse(slot: Slot, why: str) -> None:
    """Close a directory that cannot be used, so that it can be opened elsewhere or replaced."""
    slot.content, slot.why = None, why
    with suppress(PersistenceError):
        slot.member.close()


def _contents(slots: Sequence[Slot]) -> list[tuple[Slot, MemberContent]]:
    return [(slot, slot.content) for slot in slots if slot.content is not None]
