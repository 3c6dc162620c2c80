"""The members of an ensemble with their states, and the generation that records changes of it on all of them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.copy_writes import Writer, Writers
from pulsarbox.storage.ensemble.member import Member, MemberContent, MemberState
from pulsarbox.storage.ensemble.membership import PAST_MAX, MemberRecord, Membership
from pulsarbox.storage.ensemble.status import MemberEvent, ScrubStatus

BELONGING: Final = frozenset({MemberState.ACTIVE, MemberState.FULL, MemberState.LEAVING})
"""States of members whose log is part of the ensemble's, and which get every checkpoint."""
NOTHING_CONFIRMED: Final = 1 << 16
"""Copies with which parts of a batch were confirmed: none was."""


class Slot:
    """A member and its state. Changed by the table only, except for the counters."""

    def __init__(self, member: Member, member_id: str, state: str) -> None:
        self.member = member
        self.member_id = member_id
        self.state = state
        self.why = ""
        self.since = 0
        self.left_at = 0
        """See MemberRecord."""
        self._left_before = 0
        """``left_at`` before the member was brought up to date, until it has recorded that; 0 otherwise."""
        self.generation = 0
        """See MemberRecord."""
        self.known_quorum = 0
        """See MemberRecord."""
        self.is_leaving = False
        """See MemberRecord."""
        self.content: MemberContent | None = None
        """What ``open`` returned; None if the directory could not be opened."""
        self.writer: Writer | None = None
        self.completed = 0
        """The position of the last batch that it has written and the ensemble has counted."""
        self.uncertain = 0
        """The position of a batch that was not confirmed and may be in its log; 0 if there is none."""
        self.commits = self.commit_errors = self.read_errors = 0
        self.ledgers = self.entries = self.bytes_used = self.bytes_free = 0
        self.scrub = ScrubStatus(0, 0, 0, 0, 0)

    @property
    def name(self) -> str:
        """The path as configured."""
        return self.member.name

    @property
    def belongs(self) -> bool:
        """Whether its log is part of the ensemble's."""
        return self.state in BELONGING

    @property
    def is_readable(self) -> bool:
        """Whether its entries are valid."""
        return self.belongs and self.content is not None

    @property
    def state_in_use(self) -> str:
        """Its state once it is brought up to date."""
        return MemberState.LEAVING if self.is_leaving else MemberState.ACTIVE

    def resume(self, record: MemberRecord) -> None:
        """Continue as the membership lists it."""
        self.member_id, self.left_at, self.generation = record.member_id, record.left_at, record.generation
        self.known_quorum = record.known_quorum
        self.is_leaving = record.is_leaving or record.state == MemberState.LEAVING

    def trust_all(self) -> None:
        """Make all of the log valid: it was brought up to date."""
        self._left_before, self.left_at = self.left_at, 0

    def limit_from(self, position: int) -> int:
        """Return the position from which the log is not valid if the member leaves at ``position``.

        While it has not recorded that it was brought up to date, it can return as it was before.
        """
        return self._left_before or position

    def recorded(self, generation: int, lowest: int) -> None:
        """Note that the member has recorded a generation, and its lowest ack quorum."""
        self.generation, self.known_quorum, self._left_before = generation, lowest, 0

    def distrust_old(self, content: MemberContent) -> bool:
        """Exclude the log of a directory that was returned to an old state, and return whether it was.

        A batch that was rejected later may be in its log. Those before its generation, and those that its checkpoint
        covers, were decided before.
        """
        membership = content.membership
        if membership is None or membership.generation >= self.generation:
            return False
        valid_before = max(membership.first, content.mark + 1)
        self.left_at = min(self.left_at or valid_before, valid_before)
        return True


class MemberTable:
    """The slots in the order of configuration. Changes are made with ``lock`` held."""

    def __init__(self, writers: Writers, wall: Callable[[], int], new_id: Callable[[], str]) -> None:
        """``wall`` returns milliseconds since 1970, ``new_id`` a random id."""
        self.lock = writers.lock()
        self.slots: list[Slot] = []
        self.absent: list[MemberRecord] = []
        """Members that the membership lists and no directory has."""
        self.membership = Membership("", "", 0, "", (), 1)
        self.undecided = 1
        """The position of the batch in flight, or of the next one."""
        self._confirmed_with = NOTHING_CONFIRMED
        """The copies with which parts of the undecided batch were confirmed."""
        self._confirmed_since = NOTHING_CONFIRMED
        """The lowest copies with which a batch was confirmed in the generation in force."""
        self._is_completion_recorded = False
        """Whether the members know that all of them have recorded the generation in force."""
        self.on_change: Callable[[MemberEvent], None] = _ignore
        self._writers = writers
        self._wall = wall
        self._new_id = new_id
        self._events: list[MemberEvent] = []

    def find(self, member_id: str) -> Slot | None:
        """Return the slot of a member; None if it has none."""
        return next((slot for slot in self.slots if slot.member_id == member_id), None)

    def of(self, member_id: str) -> Slot:
        """Return a slot. Raises KeyError."""
        slot = self.find(member_id)
        if slot is None:
            raise KeyError(member_id)
        return slot

    @property
    def belonging(self) -> list[Slot]:
        """The slots whose members belong to the ensemble."""
        return [slot for slot in self.slots if slot.belongs]

    @property
    def active(self) -> list[Slot]:
        """The slots that can be written."""
        return [slot for slot in self.slots if slot.state == MemberState.ACTIVE]

    @property
    def refusal(self) -> str:
        """Why no message can be confirmed at present; empty if messages can be.

        Members that have left may be started again without those that remain, if these are fewer than the ack quorum
        that they know. So these must not confirm messages.
        """
        count = len(self.belonging)
        left: list[MemberRecord | Slot] = [*self.absent, *(each for each in self.slots if not each.belongs)]
        names = [each.name for each in left if each.state != MemberState.REMOVED and each.known_quorum > count]
        if not names:
            return ""
        return (
            f"{', '.join(names)} can be started without the {count} directories in use, because they know no message"
            " with so few copies: restore or remove them, or add others"
        )

    def add(self, slot: Slot) -> None:
        """Add a slot at the end; it is not yet part of the membership."""
        with self.lock:
            self.slots = [*self.slots, slot]

    def start_writer(self, slot: Slot) -> Writer:
        """Return the writer of a slot, started if it has none."""
        if slot.writer is None:
            slot.writer = self._writers.writer(slot.member)
        return slot.writer

    def set_state(self, slot: Slot, state: str, why: str = "") -> None:
        """Change a state without a new generation."""
        if slot.state != state:
            slot.state, slot.why, slot.since = state, why, self._wall()
            self._report(slot, state, why)

    def leave(self, slot: Slot, state: str, why: str) -> bool:
        """Remove a member from the ensemble, durably on all others; False if it is needed, so that it stays.

        Raises PersistenceError if no other member can record it; nothing has changed then.
        """
        with self.lock:
            if not slot.belongs:
                return True
            if self.is_needed([slot]):
                return False
            self._change(slot, state, why, self._end_of(slot))
            return True

    def is_needed(self, slots: Sequence[Slot]) -> bool:
        """Return whether no member of this machine would be left without these: the core reads rows of one.

        The members of a box without replicas are all of this machine.
        """
        return all(each in slots or each.member.is_remote for each in self.belonging)

    def begin_leaving(self, slot: Slot) -> None:
        """Write no further batches to a member, durably; its log remains valid, and its entries are read.

        One that is not in use leaves once it returns. Raises PersistenceError if that cannot be recorded.
        """
        with self.lock:
            before, slot.is_leaving = slot.is_leaving, True
            state, why = (slot.state_in_use, "") if slot.belongs else (slot.state, slot.why)
            try:
                self._change(slot, state, why, slot.left_at)
            except PersistenceError:
                slot.is_leaving = before
                raise

    def release(self, slot: Slot) -> None:
        """Remove a member for good, durably on all others. Raises PersistenceError; nothing has changed then."""
        with self.lock:
            if slot.belongs and not self.leave(slot, MemberState.REMOVED, ""):
                raise PersistenceError(f"{slot.name} is the only data directory of this machine")
            before = self.slots, self.absent, slot.state
            self.set_state(slot, MemberState.REMOVED)
            self.slots = [each for each in self.slots if each is not slot]
            end = slot.left_at or self.undecided
            record = _record_of(slot)._replace(left_at=end)
            others = [each for each in self.absent if each.member_id != slot.member_id]
            self.absent = [*others, record] if slot.member_id else others
            try:
                self.raise_generation()
            except PersistenceError:
                self.slots, self.absent, slot.state = before
                raise
            self.flush_events()

    def join(self, slot: Slot) -> None:
        """Use a member that has the rows of the last checkpoint and no batch that the log has not.

        Raises PersistenceError if that cannot be recorded.
        """
        with self.lock:
            slot.completed = slot.uncertain = 0
            slot.writer = None
            self._change(slot, slot.state_in_use, "", 0)

    def _change(self, slot: Slot, state: str, why: str, left_at: int) -> None:
        """Change a state durably. Raises PersistenceError if no member can record it; nothing has changed then."""
        before = slot.state, slot.why, slot.since, slot.left_at
        if left_at:
            slot.left_at = left_at
        else:
            slot.trust_all()
        self.set_state(slot, state, why)
        try:
            self.raise_generation()
        except PersistenceError:
            slot.state, slot.why, slot.since, slot.left_at = before
            raise
        self.flush_events()

    def begin_life(self) -> None:
        """Expect batches with the ack quorums of those since the last start."""
        before = self.membership
        self.membership = before._replace(quorum_before=before.quorum_since or before.quorum_before, quorum_since=0)

    def raise_generation(self) -> None:
        """Begin a generation at the undecided position: record it durably on all members that belong to it.

        Members that fail leave as well. Raises PersistenceError if all fail.
        """
        with self.lock:
            while True:
                self.membership = self._next_membership()
                self._is_completion_recorded = False
                self._confirmed_since = self._confirmed_with
                failed = self._record()
                if not failed:
                    return
                if self.is_needed([slot for slot, _ in failed]):
                    raise PersistenceError(f"the membership could not be recorded: {failed[0][1]}")
                for slot, error in failed:
                    slot.left_at = self._end_of(slot)
                    self.set_state(slot, MemberState.LOST, str(error))

    def confirm_with(self, copies: int, *, is_reduced: bool = False) -> None:
        """Record durably that batches of this generation are confirmed with so many copies. Raises PersistenceError.

        ``is_reduced``: these are fewer than asked for, because there are no more members.
        """
        with self.lock:
            self._confirmed_with = min(self._confirmed_with, copies)
            self._confirmed_since = min(self._confirmed_since, copies)
            before = self.membership
            since = before.quorum_since if is_reduced else min(before.quorum_since or copies, copies)
            after = before._replace(quorum_since=since)
            after = after._replace(ack_quorum_min=min(self._confirmed_since, after.quorum_expected or copies))
            has_changed = after != before
            if has_changed or not self._is_completion_recorded:
                self.membership = after._replace(members=self.records())
                failed = self._record()
                if failed and self.is_needed([slot for slot, _ in failed]):
                    self.membership = before
                    raise PersistenceError(f"the membership could not be recorded: {failed[0][1]}")
                self._is_completion_recorded = not has_changed
                for slot, error in failed:
                    self.leave(slot, MemberState.LOST, str(error))
                self.flush_events()

    def decide(self, position: int) -> None:
        """Make the batch at a position part of the log."""
        with self.lock:
            self.undecided = position + 1
            self._confirmed_with = NOTHING_CONFIRMED

    def reject_from(self, position: int) -> None:
        """Exclude batches from the logs of the members that have left. Raises PersistenceError."""
        with self.lock:
            late = [slot for slot in self.slots if not slot.belongs and slot.left_at > position]
            for slot in late:
                slot.left_at = position
            if late:
                self.raise_generation()

    def _next_membership(self) -> Membership:
        before = self.membership
        lowest = min(self._confirmed_with, before.quorum_expected or NOTHING_CONFIRMED)
        past = (*before.past, (before.generation, before.epoch)) if before.epoch else before.past
        return before._replace(
            generation=before.generation + 1,
            epoch=self._new_id(),
            members=self.records(),
            ack_quorum_min=1 if lowest == NOTHING_CONFIRMED else lowest,
            first=self.undecided,
            past=past[-PAST_MAX:],
        )

    def records(self) -> tuple[MemberRecord, ...]:
        """Return the records of all members."""
        return (*(_record_of(slot) for slot in self.slots if slot.member_id), *self.absent)

    def _record(self) -> list[tuple[Slot, PersistenceError]]:
        """Write the membership to all that belong to it; return those that failed."""
        failed: list[tuple[Slot, PersistenceError]] = []
        lowest = self.membership.ack_quorum_min
        for slot in self.belonging:
            try:
                slot.member.write_membership(self.membership._replace(member_id=slot.member_id))
            except PersistenceError as error:
                slot.known_quorum = max(slot.known_quorum, lowest)
                failed.append((slot, error))
            else:
                slot.recorded(self.membership.generation, lowest)
        return failed

    def _end_of(self, slot: Slot) -> int:
        """Return the position from which the log of a member that leaves now is not valid."""
        return slot.limit_from(max(self.undecided, slot.completed + 1))

    def _report(self, slot: Slot, state: str, why: str) -> None:
        kind, text = _TEXTS.get(state, ("", ""))
        if kind:
            because = f": {why}" if why else ""
            self._events.append(MemberEvent(kind, slot.name, f"the data directory {slot.name} {text}{because}"))

    def flush_events(self) -> None:
        """Report the changes that are not reported yet."""
        events, self._events = self._events, []
        for event in events:
            self.on_change(event)

    def report(self, kind: str, name: str, text: str) -> None:
        """Report a change, after those before it."""
        self._events.append(MemberEvent(kind, name, text))
        self.flush_events()


_TEXTS: Final[dict[str, tuple[str, str]]] = {
    MemberState.ACTIVE: ("member-joined", "is in use"),
    MemberState.LOST: ("member-lost", "is no longer used"),
    MemberState.FULL: ("member-full", "is full: new messages are stored in the other directories"),
    MemberState.LATE: ("member-late", "is no longer used, because a write takes too long"),
    MemberState.FENCED: ("member-fenced", "is behind the others and is being brought up to date"),
    MemberState.REMOVED: ("member-left", "is released"),
}
"""Kinds and texts of the events for new states."""


def _record_of(slot: Slot) -> MemberRecord:
    known = slot.generation, slot.known_quorum
    return MemberRecord(slot.member_id, slot.name, slot.state, slot.left_at, *known, is_leaving=slot.is_leaving)


def _ignore(event: Any) -> None:
    """Ignore an event."""
