"""The ensemble as maintenance sees it: members, rows, and the effects of maintenance on the membership."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.keeping.directories import SCRUB_NOTE, Directories
from pulsarbox.storage.ensemble.keeping.expected_entries import CopiesOf, Wanted
from pulsarbox.storage.ensemble.keeping.fragments import MemberPlace
from pulsarbox.storage.ensemble.keeping.rejoin import Rejoining
from pulsarbox.storage.ensemble.keeping.upkeep import Held, Maintained
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot
from pulsarbox.storage.ensemble.status import MemberEvent

SPACE_SECONDS: Final = 10.0
"""Age of the figures of used and free space."""
PRESENCE_SECONDS: Final = 2.0
"""How often the directories are looked for, which is all that notices the loss of one that is not written."""


class Checkpointed:
    """The last checkpoint: its position, and when it was complete in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self.mark = 0
        self.at = 0.0
        self.is_wanted = False
        """Whether maintenance waits for another one."""
        self.ask: Callable[[], None] = lambda: None
        """Requests one. Called from the thread of maintenance."""

    def want(self) -> None:
        """Request another one, once."""
        if not self.is_wanted:
            self.is_wanted = True
            self.ask()

    def written(self, mark: int, at: float) -> None:
        """Note a checkpoint."""
        self.mark, self.at, self.is_wanted = mark, at, False


class EngineUpkeep:
    """An Ensemble on the table of an engine."""

    def __init__(
        self,
        table: MemberTable,
        rows: Rows,
        checkpointed: Checkpointed,
        directories: Directories,
        rejoining: Rejoining,
    ) -> None:
        self._table = table
        self._rows = rows
        self._checkpointed = checkpointed
        self._directories = directories
        self._rejoining = rejoining
        self.wanted: Wanted | None = None
        """Builds the function of the number of copies wanted; None for one of everything."""
        self.passes: Callable[[], int] = int
        """Returns the number of complete passes of the auditor."""
        self.audit: Callable[[], int] = int
        """Requests a pass, and returns the number of complete passes once it has ended."""
        self._members: tuple[tuple[str, str], ...] = ()
        """Names and states when they changed last."""
        self._awaited = 0
        """A pass is due once a checkpoint covers this position; 0 if none is awaited."""
        self._audited_with = 0
        """The number of complete passes once one has seen all that is covered now."""
        self._space_at = self._seen_at = float("-inf")
        self._now = 0.0

    def held(self) -> Sequence[Held]:
        """See Ensemble."""
        return [
            Held(slot.member, MemberPlace(slot.name, slot.state, slot.member.device, slot.bytes_used))
            for slot in self._table.slots
            if slot.content is not None or not slot.belongs
        ]

    def rows(self) -> Rows:
        """See Ensemble."""
        return self._rows

    def is_settled(self) -> bool:
        """See Ensemble. Writes that began after the checkpoint are of later batches."""
        at = self._checkpointed.at
        oldest = [slot.writer.oldest for slot in self._table.belonging if slot.writer is not None]
        return all(each is None or each > at for each in oldest)

    def is_covered(self) -> bool:
        """See Ensemble."""
        return not self._awaited

    def copies_of(self) -> CopiesOf:
        """See Ensemble."""
        return _one if self.wanted is None else self.wanted(self._rows)

    def advance(self, monotonic: float, wall: int) -> Maintained | None:
        """See Ensemble."""
        self._now = monotonic
        if monotonic - self._space_at >= SPACE_SECONDS:
            self._space_at = monotonic
            self._measure()
        if monotonic - self._seen_at >= PRESENCE_SECONDS:
            self._seen_at = monotonic
            self._find_lost()
        self._audit_what_is_new()
        return self._rejoining.step(monotonic)

    def release(self, name: str) -> bool:
        """See Ensemble. Needs a checkpoint since the member was last written, and a pass since that checkpoint."""
        self._audit_what_is_new()
        slot = next((each for each in self._table.slots if each.name == name), None)
        if slot is None or self._awaited or self.passes() < self._audited_with:
            return False
        self._release(slot)
        return True

    def _release(self, slot: Slot) -> None:
        self._table.release(slot)
        with suppress(PersistenceError):  # the others know
            slot.member.write_membership(self._table.membership._replace(member_id=slot.member_id))
        self._rejoining.retire(slot, self._now)

    def report(self, event: MemberEvent) -> None:
        """See Ensemble."""
        self._table.report(*event)

    def read_note(self, name: str) -> bytes:
        """See Ensemble."""
        return self._directories.read_note(name, SCRUB_NOTE)

    def write_note(self, name: str, note: bytes) -> None:
        """See Ensemble."""
        self._directories.write_note(name, SCRUB_NOTE, note)

    def _measure(self) -> None:
        for slot in self._table.slots:
            if slot.content is not None:
                with suppress(PersistenceError):
                    slot.bytes_used, slot.bytes_free = self._directories.space(slot.name)

    def _find_lost(self) -> None:
        """Let members leave whose paths no longer lead to them."""
        for slot in self._table.belonging:
            if not self._is_there(slot):
                self._table.leave(slot, MemberState.LOST, self._directories.absence(slot.name))

    def _is_there(self, slot: Slot) -> bool:
        """Return whether the path of a member leads to it; of one on another machine, whether it is connected."""
        if slot.member.is_remote:
            return slot.member.is_there()
        known = self._directories.membership(slot.name)
        return known is not None and known.member_id == slot.member_id

    def _audit_what_is_new(self) -> None:
        """After a change of the members, request a checkpoint and then a pass, for the entries behind the last one."""
        members = tuple((slot.name, slot.state) for slot in self._table.slots)
        if members != self._members:
            self._members, self._awaited = members, max(self._awaited, self._table.undecided - 1)
        leaving = [slot for slot in self._table.slots if slot.state == MemberState.LEAVING]
        # The batch in flight may still be written to a member that is leaving.
        if any(slot.writer is not None and slot.writer.queue for slot in leaving):
            self._await(self._table.undecided)
        self._await(max([slot.completed for slot in leaving], default=0))
        if self._awaited > self._checkpointed.mark:  # also if the one requested last was made before a further change
            self._checkpointed.want()
        elif self._awaited:
            self._awaited = 0
            self._audited_with = self.audit()

    def _await(self, position: int) -> None:
        """Let a pass follow the first checkpoint that covers a position."""
        if position > max(self._awaited, self._checkpointed.mark):
            self._awaited = position


def _one(ledger_id: int) -> int:
    return 1
