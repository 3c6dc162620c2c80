"""Operations on the data directories of a running box: add, remove, replace. Called from any thread.

The membership records operations in progress, so a restart continues them. Operations that would lose messages are
refused; ``force`` accepts the loss.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pulsarbox.errors import Conflict, NotFound, PersistenceError, ServiceNotReady
from pulsarbox.storage.ensemble.keeping.auditor import Auditor
from pulsarbox.storage.ensemble.keeping.directories import REPLACES_NOTE, Directories
from pulsarbox.storage.ensemble.keeping.fragments import COUNTED, READABLE
from pulsarbox.storage.ensemble.member import Member, MemberContent, MemberState
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot

NO_BATCHES: Final = 1
"""``left_at`` of a member that has no part of the log yet."""


class Operations:
    """Changes of the members."""

    def __init__(
        self,
        table: MemberTable,
        directories: Directories,
        auditor: Auditor,
        new_id: Callable[[], str],
        retire: Callable[[Slot], None],
    ) -> None:
        """``retire`` closes the member of a slot that is no longer used."""
        self._table = table
        self._directories = directories
        self._auditor = auditor
        self._new_id = new_id
        self._retire = retire
        self.forced: set[str] = set()
        """Names of leaving members that may leave entries with fewer copies than wanted."""

    def add(self, name: str) -> None:
        """Add a directory; maintenance brings it up to date, and the next segment is written there.

        Raises Conflict, PreconditionFailed, PersistenceError, DirectoryHeld.
        """
        with self._table.lock:
            self._add(name, "")

    def remove(self, name: str, *, force: bool = False) -> None:
        """Write nothing more to a member, copy its entries elsewhere, then release it.

        A member that cannot be read is released at once. Raises NotFound; Conflict if messages would be lost or have
        too few copies; ServiceNotReady if that is not known yet.
        """
        with self._table.lock:
            slot = self._of(name)
            if slot.state in READABLE and slot.content is not None:
                self._begin_leaving(slot, force)
            else:
                self._release_unreadable(slot, force)

    def replace(self, old: str, new: str, *, force: bool = False) -> None:
        """Add a directory, and remove another one once the new one is in use. Raises as both.

        The same path is possible if an empty directory is there now.
        """
        with self._table.lock:
            slot = self._of(old)
            if slot.state in READABLE and slot.content is not None and slot.member.is_there():
                if old == new:
                    raise Conflict(f"{old} is in use: specify another path for the new directory")
                self._refuse_too_few(slot, force, spare=1)
                self._add(new, old)
                if force:
                    self.forced.add(old)
                return
            others = [each.name for each in self._table.slots if each is not slot]
            self._directories.check_new(new, others, self._table.membership.box)
            self._release_unreadable(slot, force)
            self._add(new, "")

    def _of(self, name: str) -> Slot:
        for slot in self._table.slots:
            if slot.name == name:
                return slot
        names = ", ".join(slot.name for slot in self._table.slots)
        raise NotFound(f"{name} is not a data directory of the box; they are {names}")

    # Adding

    def _add(self, name: str, replaces: str) -> None:
        table = self._table
        if any(slot.name == name and slot.state != MemberState.REMOVED for slot in table.slots):
            raise Conflict(f"{name} is already a data directory of the box")
        for slot in [slot for slot in table.slots if slot.name == name]:
            table.slots = [each for each in table.slots if each is not slot]
            self._close(slot.member, opened=slot.content is not None)
        self._directories.check_new(name, [slot.name for slot in table.slots], table.membership.box)
        member = self._directories.member(name)
        content = member.open()
        try:
            self._join_table(member, content, replaces)
        except BaseException:
            self._close(member)
            raise

    def _join_table(self, member: Member, content: MemberContent, replaces: str) -> None:
        """Record the new member; a crash before the end leaves a directory that can be added again."""
        table = self._table
        slot = self._slot_of(member, content)
        before = table.slots, table.absent
        table.add(slot)
        table.absent = [record for record in table.absent if record.member_id != slot.member_id]
        try:
            member.write_membership(table.membership._replace(member_id=slot.member_id))
            if replaces:
                self._directories.write_note(slot.name, REPLACES_NOTE, replaces.encode())
            table.raise_generation()
        except PersistenceError:
            table.slots, table.absent = before
            raise
        table.flush_events()
        self._warn_of_shared_device(slot)

    def _slot_of(self, member: Member, content: MemberContent) -> Slot:
        """Return a slot for a directory that is empty, or was a member. Raises Conflict."""
        table = self._table
        if content.box and content.newest and content.box != table.membership.box:
            raise Conflict(f"{member.name} belongs to box {content.box}: empty it to use it for this one")
        member_id = content.membership.member_id if content.membership is not None else ""
        record = next((each for each in table.absent if each.member_id == member_id), None)
        if record is None and content.newest:
            raise Conflict(f"{member.name} has messages that the other directories do not know: empty it to use it")
        slot = Slot(member, member_id if record is not None else self._new_id(), MemberState.JOINING)
        slot.content = content
        slot.left_at = NO_BATCHES if record is None else record.left_at or table.undecided
        slot.known_quorum = 0 if record is None else record.known_quorum
        return slot

    def _warn_of_shared_device(self, slot: Slot) -> None:
        device = slot.member.device
        names = [each.name for each in self._table.slots if each is not slot and each.member.device == device]
        if device and names:
            text = f"{slot.name} is on the same device as {', '.join(names)}: if it fails, the copies there are lost"
            self._table.report("shared-device", slot.name, f"{text} together")

    # Removing

    def _begin_leaving(self, slot: Slot, force: bool) -> None:
        if slot.state == MemberState.LEAVING and not force:
            raise Conflict(f"{slot.name} is being removed: its entries are being copied")
        if not [each for each in self._table.active if each is not slot]:
            raise Conflict(f"{slot.name} is the only writable data directory: add another one first")
        leaving = [each for each in self._table.slots if each.state == MemberState.LEAVING]
        if self._table.is_needed([slot, *leaving]):
            raise Conflict(f"{slot.name} is the only data directory of this machine: add another one first")
        self._refuse_too_few(slot, force)
        if slot.state != MemberState.LEAVING:
            self._table.begin_leaving(slot)
        if force:
            self.forced.add(slot.name)

    def _refuse_too_few(self, slot: Slot, force: bool, spare: int = 0) -> None:
        """Raise Conflict if the others cannot have as many copies as policies ask for."""
        left = spare + sum(each.state in COUNTED for each in self._table.slots if each is not slot)
        want = self._most_wanted()
        if left < want and not force:
            raise Conflict(
                f"{slot.name} cannot be removed: policies ask for {want} copies, and {left} data directories would be"
                " left; add one first"
            )

    def _most_wanted(self) -> int:
        if not self._auditor.passes:
            raise ServiceNotReady("the copies have not been audited since the start: try again in a moment")
        return self._auditor.most_wanted

    def _release_unreadable(self, slot: Slot, force: bool) -> None:
        """Release a member whose entries cannot be copied from it."""
        if not force:
            self._most_wanted()
            unknown = self._auditor.without_copy
            if unknown:
                raise Conflict(f"{slot.name} may have the only copies of {unknown} entries: make it available again")
        if self._table.is_needed([slot]):
            raise Conflict(f"{slot.name} is the only data directory of this machine: add another one first")
        self._table.release(slot)
        self._retire(slot)
        self._auditor.request()

    def _close(self, member: Member, *, opened: bool = True) -> None:
        if opened:
            with suppress(PersistenceError):
                member.close()


def member_names(configured: list[str], recorded: list[tuple[str, str]]) -> list[str]:
    """Return the directories to open: those configured, then those that were added while the box ran.

    ``recorded`` are the names and states of the membership in the configured directories.
    """
    added = [name for name, state in recorded if state != MemberState.REMOVED and name not in configured]
    return [*configured, *dict.fromkeys(added)]
