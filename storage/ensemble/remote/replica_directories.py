"""Directories of a box with replicas: paths of this machine, and addresses of others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pulsarbox.config.replica_address import is_replica, parse_address
from pulsarbox.errors import Conflict, PersistenceError, PreconditionFailed
from pulsarbox.storage.ensemble.keeping.directories import Directories, Space
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.remote.link import Connect
from pulsarbox.storage.ensemble.remote.remote_member import SHORT_SECONDS, RemoteMember, opened_membership
from pulsarbox.storage.ensemble.remote.wire_values import text

RETRY_SECONDS: Final = 1.0
RETRY_SECONDS_MAX: Final = 30.0
"""The pause after a failed attempt to reach a replica doubles up to this."""


class _Unreachable:
    """When to try to reach a replica again."""

    def __init__(self) -> None:
        self.pause = RETRY_SECONDS
        self.due = 0.0

    def failed(self, monotonic: float) -> None:
        """Double the pause."""
        self.due = monotonic + self.pause
        self.pause = min(2 * self.pause, RETRY_SECONDS_MAX)


class ReplicaDirectories:
    """Directories by their paths and addresses."""

    def __init__(
        self, local: Directories, connect: Connect, run: str, machine: str, clock: Callable[[], float]
    ) -> None:
        """``run`` is the id of this process, ``machine`` that of the machine; ``clock`` is monotonic, in seconds."""
        self.generation: Callable[[], int] = int
        """Returns the highest generation that this box knows."""
        self._local = local
        self._connect = connect
        self._run = run
        self._machine = machine
        self._clock = clock
        self._members: dict[str, RemoteMember] = {}
        """The last member of each replica."""
        self._unreachable: dict[str, _Unreachable] = {}

    def member(self, name: str) -> Member:
        """See Directories."""
        if not is_replica(name):
            return self._local.member(name)
        member = self._members[name] = RemoteMember(name, self._connect, self._claim, self._machine)
        return member

    def _claim(self) -> Mapping[str, Any]:
        return {"run": self._run, "generation": self.generation()}

    def membership(self, name: str) -> Membership | None:
        """See Directories. A replica that could not be reached is tried again after a while only."""
        if not is_replica(name):
            return self._local.membership(name)
        member = self._members.get(name)
        if member is not None and member.is_there():
            return member.known
        unreachable = self._unreachable.get(name)
        if unreachable is not None and self._clock() < unreachable.due:
            return None
        try:
            found = opened_membership(self._describe(name), name)
        except PersistenceError:
            self._unreachable.setdefault(name, _Unreachable()).failed(self._clock())
            return None
        self._unreachable.pop(name, None)
        return found

    def absence(self, name: str) -> str:
        """See Directories."""
        member = self._members.get(name)
        if not is_replica(name):
            return self._local.absence(name)
        return f"{name} is not connected" if member is None else member.absence

    def check_new(self, name: str, others: Sequence[str], box: str) -> None:
        """See Directories. Raises PersistenceError if a replica cannot be reached."""
        if not is_replica(name):
            self._local.check_new(name, [each for each in others if not is_replica(each)], box)
            return
        try:
            parse_address(name)
        except ValueError as error:
            raise PreconditionFailed(str(error)) from None
        if name in others:
            raise PreconditionFailed(f"{name} is already a data directory of the box")
        found = text(self._describe(name), "box")
        if found not in ("", box):
            raise Conflict(f"{name} belongs to box {found}: empty its directory to use it for this one")

    def is_empty(self, name: str) -> bool:
        """See Directories."""
        if not is_replica(name):
            return self._local.is_empty(name)
        try:
            return not text(self._describe(name), "box")
        except PersistenceError:
            return False

    def space(self, name: str) -> Space:
        """See Directories."""
        return self._connected(name).space() if is_replica(name) else self._local.space(name)

    def read_note(self, name: str, note: str) -> bytes:
        """See Directories."""
        if not is_replica(name):
            return self._local.read_note(name, note)
        try:
            return self._connected(name).read_note(note)
        except PersistenceError:
            return b""

    def write_note(self, name: str, note: str, content: bytes) -> None:
        """See Directories."""
        if is_replica(name):
            self._connected(name).write_note(note, content)
        else:
            self._local.write_note(name, note, content)

    def _connected(self, name: str) -> RemoteMember:
        member = self._members.get(name)
        if member is None:
            raise PersistenceError(f"{name} is not connected")
        return member

    def _describe(self, name: str) -> Mapping[str, Any]:
        """Return the description of a directory, over a connection of its own. Raises PersistenceError."""
        link = self._connect(name)
        try:
            return link.call("describe", {}, b"", SHORT_SECONDS).fields
        finally:
            link.close()
