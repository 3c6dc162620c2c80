"""The data directories of a box that has several: which of them are in use and can be read, by their memberships."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.backup.manifest import BackupError
from pulsarbox.storage.ensemble.generations import EnsembleConflict, KnownMembership, in_force
from pulsarbox.storage.ensemble.member import IN_USE, MemberState
from pulsarbox.storage.ensemble.membership import MemberRecord, Membership
from pulsarbox.storage.ensemble.membership_file import read_membership
from pulsarbox.storage.ensemble.recovery import MissingMember

_UNKNOWN = 1 << 63
"""The position of the last batch in a directory: none counts as empty."""


class BoxDirectories(NamedTuple):
    """The directories of a box at one time."""

    membership: Membership
    """The one in force."""
    paths: tuple[Path, ...]
    """Those in use that can be read."""
    missing: tuple[MissingMember, ...]
    """Those that may have parts of the log, and cannot be read or are not in use."""

    @property
    def replicas(self) -> tuple[str, ...]:
        """Names of those in use on other machines, which are not read."""
        used = (each for each in self.membership.members if each.state in IN_USE and not each.left_at)
        return tuple(each.name for each in used if not each.name.startswith("/"))

    @property
    def epochs(self) -> frozenset[str]:
        """The random ids of this history and of those it continues."""
        return frozenset([self.membership.epoch, *(epoch for _, epoch in self.membership.past)])


def box_directories(given: Sequence[Path]) -> BoxDirectories:
    """Return the directories of the box that ``given`` belong to, and of those that their memberships list.

    Raises BackupError if none has a membership, or they were written separately.
    """
    found: dict[Path, Membership] = {}
    waiting = [path.absolute() for path in given]
    while waiting:
        path = waiting.pop(0)
        if path not in found and (membership := _membership(path)) is not None:
            found[path] = membership
            waiting += [Path(each.name) for each in membership.members if each.name.startswith("/")]
    if not found:
        raise BackupError(f"{', '.join(map(str, given))}: no data directory of a box with several")
    box = next(iter(found.values())).box
    own = {path: each for path, each in found.items() if each.box == box}
    try:
        membership = in_force([KnownMembership(str(path), each, _UNKNOWN) for path, each in own.items()])
    except EnsembleConflict as error:
        raise BackupError(str(error)) from error
    return _sorted_out(membership, own)


def _sorted_out(membership: Membership, found: dict[Path, Membership]) -> BoxDirectories:
    paths: list[Path] = []
    missing: list[MissingMember] = []
    for record in membership.members:
        path = next(_paths_of(record, found), None)
        if record.state in IN_USE and not record.left_at and path is not None:
            paths.append(path)
        elif record.state not in (MemberState.REMOVED, MemberState.JOINING):
            missing.append(MissingMember(record.name, record.left_at))
    if not paths:
        names = ", ".join(each.name for each in missing)
        raise BackupError(f"no data directory in use can be read: make {names} available")
    return BoxDirectories(membership, tuple(paths), tuple(missing))


def _paths_of(record: MemberRecord, found: dict[Path, Membership]) -> Iterator[Path]:
    """Yield where a member is, unless it was returned to an old state."""
    for path, membership in found.items():
        if membership.member_id == record.member_id and membership.generation >= record.generation:
            yield path


def _membership(path: Path) -> Membership | None:
    with suppress(OSError, PersistenceError):
        return read_membership(path)
    return None
