"""Directories in memory, for simulations and tests."""

from collections.abc import Callable, Sequence
from typing import Final

from pulsarbox.errors import Conflict, PersistenceError, PreconditionFailed
from pulsarbox.storage.ensemble.keeping.directories import Space
from pulsarbox.storage.ensemble.member import NOT_THERE, Member
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember

_FREE: Final = 1 << 40


class MemoryDirectories:
    """Disks by name; a missing one is created."""

    def __init__(self, disks: dict[str, MemberDisk], create: Callable[[MemberDisk], Member] = MemoryMember) -> None:
        self.disks = disks
        self._create = create
        self.notes: dict[tuple[str, int, str], bytes] = {}
        """By name, incarnation and kind."""

    def member(self, name: str) -> Member:
        """See Directories."""
        return self._create(self.disks.setdefault(name, MemberDisk(name)))

    def membership(self, name: str) -> Membership | None:
        """See Directories."""
        disk = self.disks.get(name)
        return disk.membership if disk is not None and disk.present else None

    def absence(self, name: str) -> str:
        """See Directories."""
        return f"{name} is no longer there: {NOT_THERE}"

    def check_new(self, name: str, others: Sequence[str], box: str) -> None:
        """See Directories. Names are compared as paths."""
        for other in others:
            if name == other:
                raise PreconditionFailed(f"{name} is the data directory {other}")
            if f"{name}/".startswith(f"{other}/") or f"{other}/".startswith(f"{name}/"):
                raise PreconditionFailed(f"{name} and the data directory {other}: one contains the other")
        disk = self.disks.get(name)
        if disk is not None and disk.box not in ("", box):
            raise Conflict(f"{name} belongs to box {disk.box}")

    def is_empty(self, name: str) -> bool:
        """See Directories."""
        disk = self.disks.get(name)
        return disk is not None and disk.present and not disk.box and not disk.newest

    def space(self, name: str) -> Space:
        """See Directories."""
        disk = self.disks[name]
        return Space(sum(map(len, (*disk.log.values(), *disk.packed.values()))), _FREE)

    def read_note(self, name: str, note: str) -> bytes:
        """See Directories."""
        disk = self.disks.get(name)
        return b"" if disk is None or not disk.present else self.notes.get((name, disk.incarnation, note), b"")

    def write_note(self, name: str, note: str, content: bytes) -> None:
        """See Directories."""
        disk = self.disks[name]
        if not disk.present:
            raise PersistenceError(f"{name} is not there")
        self.notes[name, disk.incarnation, note] = content
