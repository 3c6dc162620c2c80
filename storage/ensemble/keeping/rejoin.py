"""Brings members up to date that are new, or returned, so that they are written again.

Its log becomes valid only up to the position at which it left. Its rows are replaced by those of the last checkpoint,
while no other checkpoint is written. Only then does the membership list it as active, and the next segment uses it.
Entries that it lacks are not copied here: the auditor finds them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.generations import continues
from pulsarbox.storage.ensemble.keeping.directories import REPLACES_NOTE, Directories
from pulsarbox.storage.ensemble.keeping.upkeep import Maintained
from pulsarbox.storage.ensemble.member import Member, MemberContent, MemberState
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot
from pulsarbox.storage.ensemble.membership import Membership

RETRY_SECONDS: Final = 10.0
RETRY_SECONDS_MAX: Final = 600.0
"""The pause after a failed attempt doubles up to this, so that a disk that fails again and again is left alone."""
REPLICA_SECONDS: Final = 1.0
REPLICA_SECONDS_MAX: Final = 30.0
"""The same for a replica: networks fail more often than disks, and recover by themselves."""
CLOSE_SECONDS: Final = 60.0
"""How long a member that is no longer used stays open for reads in progress."""
_STATES: Final = (MemberState.JOINING, MemberState.FENCED, MemberState.LATE, MemberState.LOST)


class _Attempt:
    """When to try a member again."""

    def __init__(self, monotonic: float, *, is_remote: bool) -> None:
        self.pause, self._pause_max = (
            (REPLICA_SECONDS, REPLICA_SECONDS_MAX) if is_remote else (RETRY_SECONDS, RETRY_SECONDS_MAX)
        )
        self.due = monotonic

    def failed(self, monotonic: float) -> None:
        """Double the pause."""
        self.due = monotonic + self.pause
        self.pause = min(2 * self.pause, self._pause_max)


class Rejoining:
    """Used by the thread of maintenance."""

    def __init__(
        self,
        table: MemberTable,
        rows_lock: AbstractContextManager[Any],
        rows: Rows,
        mark: Callable[[], int],
        directories: Directories,
    ) -> None:
        """``rows_lock`` is held by the writer of a checkpoint, whose position ``mark`` returns."""
        self._table = table
        self._rows_lock = rows_lock
        self._rows = rows
        self._mark = mark
        self._directories = directories
        self._attempts: dict[str, _Attempt] = {}
        self._retired: list[tuple[float, Member]] = []

    def step(self, monotonic: float) -> Maintained | None:
        """Bring one member up to date; None if there is none to try. Raises PersistenceError."""
        self._close_retired(monotonic)
        for slot in self._table.slots:
            if slot.state in _STATES and self._is_due(slot, monotonic) and self._is_ready(slot):
                return self._attempt(slot, monotonic)
        return None

    def retire(self, slot: Slot, monotonic: float) -> None:
        """Stop the writer of a slot, and close its member after a while."""
        if slot.writer is not None:
            slot.writer.stop()
            slot.writer = None
        if slot.content is not None:
            self._retired.append((monotonic + CLOSE_SECONDS, slot.member))

    def close(self) -> None:
        """Close the members that are no longer used."""
        self._close_retired(float("inf"))

    def _is_due(self, slot: Slot, monotonic: float) -> bool:
        attempt = self._attempts.get(slot.name)
        if attempt is None:  # a member that just failed is not tried at once
            attempt = self._attempts[slot.name] = _Attempt(monotonic, is_remote=slot.member.is_remote)
            if slot.state in (MemberState.LOST, MemberState.LATE):
                attempt.failed(monotonic)
        return monotonic >= attempt.due

    def _is_ready(self, slot: Slot) -> bool:
        """Return whether an attempt can succeed: it is cheap to find out."""
        if slot.writer is not None and slot.writer.queue:
            return False  # a late write is still on its way
        if slot.content is not None and slot.member.is_there():
            return True
        if slot.state == MemberState.JOINING:
            return False
        membership = self._directories.membership(slot.name)
        return membership is not None and not self._refusal(slot, membership)

    def _attempt(self, slot: Slot, monotonic: float) -> Maintained:
        try:
            if slot.content is None or not slot.member.is_there():
                self._reopen(slot, monotonic)
            self._bring_up_to_date(slot)
        except PersistenceError as error:
            self._attempts[slot.name].failed(monotonic)
            slot.why = str(error)
            raise
        # An attempt stays known, so that a member that fails again soon is tried less and less often.
        self._attempts[slot.name].failed(monotonic)
        return Maintained("joined", f"{slot.name} is up to date and in use again", 0)

    def _reopen(self, slot: Slot, monotonic: float) -> None:
        """Open the directory that is now at the path of a member."""
        member = self._directories.member(slot.name)
        content = member.open()
        try:
            self._check(slot, content)
        except BaseException:
            member.close()
            raise
        self.retire(slot, monotonic)
        with self._table.lock:
            slot.member, slot.content = member, content
            if content.membership is not None:
                slot.known_quorum = max(slot.known_quorum, content.membership.ack_quorum_min)
            slot.distrust_old(content)

    def _check(self, slot: Slot, content: MemberContent) -> None:
        if content.membership is None:
            raise PersistenceError(f"{slot.name} is another directory now: `pulsarbox storage replace` accepts it")
        refusal = self._refusal(slot, content.membership)
        if refusal:
            raise PersistenceError(refusal)

    def _refusal(self, slot: Slot, found: Membership) -> str:
        """Return why the directory at the path of a member cannot be that member; empty if it is."""
        ours = self._table.membership
        if found.box != ours.box:
            return f"{slot.name} belongs to another box"
        if slot.member_id and found.member_id != slot.member_id:
            return f"{slot.name} is not the directory that was there before"
        if found.epoch != ours.epoch and not continues(ours, found):
            return f"{slot.name} was written separately: empty it to use it"
        return ""

    def _bring_up_to_date(self, slot: Slot) -> None:
        if slot.writer is not None:
            slot.writer.stop()
            slot.writer = None
        with self._rows_lock:
            slot.member.erase_from(slot.left_at or 1)
            slot.member.replace_rows(self._rows.items(b""), self._mark())
            self._table.join(slot)
        self._finish_replacement(slot)

    def _finish_replacement(self, slot: Slot) -> None:
        """Let the member leave that this one replaces."""
        name = self._directories.read_note(slot.name, REPLACES_NOTE).decode(errors="replace")
        old = next((each for each in self._table.slots if each.name == name and each is not slot), None)
        if old is not None and not old.is_leaving:
            self._table.begin_leaving(old)
        if name:
            self._directories.write_note(slot.name, REPLACES_NOTE, b"")

    def _close_retired(self, monotonic: float) -> None:
        due = [member for until, member in self._retired if until <= monotonic]
        self._retired = [(until, member) for until, member in self._retired if until > monotonic]
        for member in due:
            with suppress(PersistenceError):
                member.close()
