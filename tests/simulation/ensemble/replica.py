"""A directory on another machine: its connection fails, requests are delivered late, and its process restarts.

The server runs no request of a connection that has ended, as the replica protocol promises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Compressing, Reclaimed
from pulsarbox.storage.ensemble.member import Member, MemberContent, PackedBatch
from pulsarbox.storage.ensemble.memory_member import MemoryMember
from pulsarbox.storage.entry_index import runs_of
from tests.simulation.ensemble.directories import WRITES, Directory
from tests.simulation.world import World

UNDER_WAY_MAX = 3


class Replica(Directory):
    """A Directory that members reach over a connection each."""

    def __init__(self, world: World, name: str, device: int) -> None:
        super().__init__(world, name, device)
        self.connection = 0
        """The number of the last connection."""
        self.loses_answers = 0.0
        """Probability that the connection ends after a request was run, before its answer."""
        self._under_way: list[tuple[int, PackedBatch]] = []
        """Commits that the network still holds, with the connection that they were sent over."""

    @property
    def is_well(self) -> bool:
        """See Directory."""
        return super().is_well and not self.loses_answers

    def member(self) -> Member:
        """See Directory."""
        return ReplicaMember(self)

    def mend(self) -> None:
        """See Directory."""
        self.loses_answers = 0.0
        super().mend()

    def connect(self) -> int:
        """Return the number of a new connection; the former one ends."""
        self.disconnect()
        return self.connection

    def disconnect(self) -> None:
        """End the connection; the network still holds late commits."""
        waiting, self.disk.waiting = self.disk.waiting, []
        sent = [(self.connection, batch) for batch in waiting]
        self._under_way = [*self._under_way, *sent][-UNDER_WAY_MAX:]
        self.connection += 1

    def restart(self) -> None:
        """End the process that serves the directory; requests in progress are lost."""
        self.disk.waiting = []
        self.connection += 1

    def deliver(self) -> None:
        """Let the network deliver the commits that it still holds."""
        under_way, self._under_way = self._under_way, []
        for connection, batch in under_way:
            if self.runs(connection):
                self.disk.store(batch)

    def runs(self, connection: int) -> bool:
        """Return whether requests of a connection are run."""
        return connection == self.connection

    def answer(self, operation: str) -> None:
        """Answer a request that was run. Raises PersistenceError if the connection ends before.

        A commit is then delivered again later.
        """
        if not self.world.chance(self.loses_answers):
            return
        self.disconnect()
        if operation == "commit" and self.disk.log:
            position, value = self.disk.log.peekitem(-1)
            again = PackedBatch(position, value, runs_of(value))
            self._under_way = [*self._under_way, (self.connection - 1, again)][-UNDER_WAY_MAX:]
        raise PersistenceError(f"the connection to {self.name} ended")


class ReplicaMember(MemoryMember):
    """A Member on a Replica, for one life of the box."""

    is_remote = True

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica.disk)
        self._replica = replica
        self._connection = -1

    def open(self) -> MemberContent:
        """See Member."""
        self._connection = self._replica.connect()
        return super().open()

    def is_there(self) -> bool:
        """See Member."""
        return super().is_there() and self._connection == self._replica.connection

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """Do nothing: a replica reclaims its disk space itself."""
        return None


def _answered(operation: str) -> Callable[..., Any]:
    original = getattr(MemoryMember, operation)

    def call(self: ReplicaMember, *arguments: Any) -> Any:
        result = original(self, *arguments)
        self._replica.answer(operation)
        return result

    return call


for _operation in {*WRITES} - {"reclaim"}:
    setattr(ReplicaMember, _operation, _answered(_operation))
