"""The commit of one batch: copies to the members of its segment, and to others in place of those that fail."""

from collections.abc import Callable
from typing import Final

from pulsarbox.errors import NotEnoughBookies, PersistenceError, StoreFull, TooFewCopies
from pulsarbox.storage.ensemble.copy_writes import CopyWrite, Writers
from pulsarbox.storage.ensemble.member import MemberLate, MemberState, PackedBatch
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot
from pulsarbox.storage.ensemble.placement import Placement, RingMember, SegmentCopies
from pulsarbox.storage.journal import Batch

QUEUE_MAX: Final = 16
"""Unfinished writes of a member at which commits wait for it."""
_WAIT_SECONDS: Final = 0.25
"""How often late writes are looked for."""


class Commit:
    """Writes one batch. Used by the committer's thread."""

    def __init__(
        self,
        table: MemberTable,
        writers: Writers,
        placement: Placement,
        monotonic: Callable[[], float],
        late_seconds: float,
    ) -> None:
        self._table = table
        self._writers = writers
        self._placement = placement
        self._monotonic = monotonic
        self._late_seconds = late_seconds
        self._tried: list[Slot] = []
        self._stored: list[Slot] = []
        self._position = 0
        self._reported = 0
        self._failed: list[Slot] = []

    def run(self, batch: Batch, packed: PackedBatch, copied: Callable[[Batch, int], None] | None) -> None:
        """See EnsembleEngine.commit."""
        self._position = batch.position
        try:
            while not self._is_confirmed(batch, packed, copied):
                pass
        except TooFewCopies:
            raise
        except PersistenceError:
            self._erase()
            raise

    def _is_confirmed(self, batch: Batch, packed: PackedBatch, copied: Callable[[Batch, int], None] | None) -> bool:
        """Start the writes that are missing, and wait for one; return whether the batch has its copies."""
        is_started = self._submit(batch, packed)
        needed = self._needed(batch)
        self._report(batch, needed, copied)
        if len(self._copies()) >= needed and self._confirm(batch, needed):
            return True
        if not self._is_allowed(batch):
            self._too_few(batch)
        if self._pending():
            self._wait()
        elif not is_started:
            self._too_few(batch)
        return False

    def _report(self, batch: Batch, needed: int, copied: Callable[[Batch, int], None] | None) -> None:
        """Report the copies that confirm some parts of the batch, once the membership allows for so few."""
        copies = len(self._copies())
        if copies <= self._reported or copies < min(batch.ack_quorum_min, needed):
            return
        with self._table.lock:
            is_reduced = not batch.runs and copies == len(self._candidates(batch))
            self._table.confirm_with(min(batch.ack_quorum_min, copies), is_reduced=is_reduced)
            if not self._is_allowed(batch):
                return
            copies = len(self._copies())
            first = max(self._reported + 1, batch.ack_quorum_min)
            if copied is not None:
                for number in range(first, min(copies, needed - 1) + 1):
                    copied(batch, number)
            self._reported = max(self._reported, copies)

    def _is_allowed(self, batch: Batch) -> bool:
        """Return whether the batch can be confirmed with the members that there are."""
        return not batch.runs or not self._table.refusal

    def tend(self) -> None:
        """Handle the writes that have completed, and the members that are late."""
        while (write := self._writers.completed(0)) is not None:
            self._completed(write)
        self._find_late()

    def _needed(self, batch: Batch) -> int:
        """Return the copies that confirm the batch. Without messages, no more than there are members."""
        return batch.ack_quorum if batch.runs else min(batch.ack_quorum, max(1, len(self._candidates(batch))))

    def _candidates(self, batch: Batch) -> list[Slot]:
        """Return the members that can store the batch."""
        active = self._table.active
        if batch.runs or active:
            return active
        return [slot for slot in self._table.belonging if slot.state == MemberState.FULL]

    def _copies(self) -> list[Slot]:
        return [slot for slot in self._stored if slot.belongs]

    def _pending(self) -> list[Slot]:
        return [slot for slot in self._tried if slot.belongs and slot not in self._stored and slot not in self._failed]

    def _submit(self, batch: Batch, packed: PackedBatch) -> bool:
        """Start the writes that are missing; return whether there were any, or others completed meanwhile."""
        candidates = self._candidates(batch)
        chosen = self._place(batch, len(packed.value), candidates)
        wanted = len(chosen) - len(self._copies()) - len(self._pending())
        free = [slot for slot in dict.fromkeys([*chosen, *candidates]) if slot not in self._tried]
        started = [slot for slot in free[: max(0, wanted)] if self._start(slot, packed)]
        has_changed = bool(started)
        while (write := self._writers.completed(0)) is not None:
            self._completed(write)
            has_changed = True  # if it failed, another member is due
        return has_changed

    def _place(self, batch: Batch, size: int, candidates: list[Slot]) -> list[Slot]:
        """Return the members of the segment; a new segment begins if one of them has left."""
        ring = [RingMember(slot.member_id, slot.member.device) for slot in candidates]
        asked = SegmentCopies(batch.ensemble, batch.write_quorum)
        size = 0 if self._tried else size
        segment = self._placement.place(batch.position, size, asked, ring, self._table.membership.generation)
        chosen = [self._table.find(member_id) for member_id in segment.members]
        return [slot for slot in chosen if slot is not None]

    def _start(self, slot: Slot, packed: PackedBatch) -> bool:
        """Start a write; False if the member leaves before."""
        self._tried.append(slot)
        writer = self._table.start_writer(slot)
        while slot.belongs and writer.queue >= QUEUE_MAX:
            self._wait()
        if slot.belongs and slot.uncertain:
            self._erase_from(slot)
        if not slot.belongs or slot.uncertain:
            self._failed.append(slot)
            return False
        writer.submit(CopyWrite(slot.member_id, packed, self._monotonic()))
        return True

    def _wait(self) -> None:
        write = self._writers.completed(_WAIT_SECONDS)
        if write is not None:
            self._completed(write)
        self._find_late()

    def _completed(self, write: CopyWrite) -> None:
        slot = self._table.find(write.member_id)
        if slot is None or not slot.belongs:
            return
        if write.error is None:
            slot.commits += 1
            slot.completed = write.batch.position
            if write.batch.position == self._position:
                self._stored.append(slot)
            return
        slot.commit_errors += 1
        if write.batch.position == self._position:
            self._failed.append(slot)
        if isinstance(write.error, StoreFull):
            self._full(slot, str(write.error))
        else:
            late = isinstance(write.error, MemberLate)
            self._table.leave(slot, MemberState.LATE if late else MemberState.LOST, str(write.error))

    def _full(self, slot: Slot, why: str) -> None:
        with self._table.lock:
            if slot.state == MemberState.ACTIVE:
                self._table.set_state(slot, MemberState.FULL, why)
        self._table.flush_events()

    def _find_late(self) -> None:
        limit = self._monotonic() - self._late_seconds
        for slot in self._table.belonging:
            oldest = slot.writer.oldest if slot.writer is not None else None
            if oldest is not None and oldest < limit:
                self._table.leave(slot, MemberState.LATE, f"a write has taken more than {self._late_seconds:g} s")

    def _confirm(self, batch: Batch, needed: int) -> bool:
        """Decide that the batch is part of the log, unless a member that has it left at this instant."""
        with self._table.lock:
            if len(self._copies()) < needed or not self._is_allowed(batch):
                return False
            self._table.decide(self._position)
            return True

    def _too_few(self, batch: Batch) -> None:
        """Raise TooFewCopies if a part of the batch may be confirmed, and another error otherwise."""
        is_allowed = self._is_allowed(batch)
        copies = max(len(self._copies()) if is_allowed else 0, self._reported)
        reason = f"batch {batch.position} has {copies} copies instead of {batch.ack_quorum}"
        if copies and copies >= batch.ack_quorum_min:
            self._table.decide(batch.position)
            raise TooFewCopies(copies, reason)
        if not is_allowed:
            raise NotEnoughBookies(f"batch {batch.position} is not stored: {self._table.refusal}")
        full = [slot for slot in self._table.slots if slot.state == MemberState.FULL]
        if full and batch.runs:
            raise StoreFull(f"{reason}: {full[0].why}")
        raise NotEnoughBookies(f"{reason}: {len(self._table.active)} data directories are writable")

    def _erase(self) -> None:
        """Remove the batch from all members, also from those that may have it although the write failed."""
        for slot in self._tried:
            if slot.belongs and not self._is_full(slot):
                slot.uncertain = self._position
                self._erase_from(slot)
        self._table.reject_from(self._position)

    def _is_full(self, slot: Slot) -> bool:
        """Return whether a member had no space for the batch, so that it has nothing to erase."""
        return slot in self._failed and slot.state == MemberState.FULL

    def _erase_from(self, slot: Slot) -> None:
        """Remove an unconfirmed batch. A member that fails leaves; the only one tries again before its next write."""
        slot.completed = min(slot.completed, slot.uncertain - 1)
        try:
            slot.member.erase_from(slot.uncertain)
            slot.uncertain = 0
        except PersistenceError as error:
            self._table.leave(slot, MemberState.LOST, str(error))
