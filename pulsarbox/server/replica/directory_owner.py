"""Which box has the directory of a replica: one at a time, and a former one never writes again."""

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.server.replica.replica_connection import ReplicaConnection
from pulsarbox.server.replica.replica_session import ReplicaSession
from pulsarbox.server.replica.served_directory import ServedDirectory
from pulsarbox.storage.ensemble.member import MemberContent
from pulsarbox.storage.ensemble.remote.replica_requests import ReplicaRequests
from pulsarbox.storage.ensemble.remote.wire_values import integer, text

log = logging.getLogger(__name__)

LIVE_SECONDS: Final = 5.0
"""A box that has sent nothing for so long, not even a heartbeat, loses the directory to another one."""
_LOOK_SECONDS: Final = 0.05


class _Owner(NamedTuple):
    """The box that has the directory."""

    connection: ReplicaConnection
    session: ReplicaSession
    run: str
    """The id of its process."""


class DirectoryOwner:
    """Gives the directory to one connection at a time. Thread-safe.

    A box that has reconnected, or that knows a higher generation than the directory has, gets it at once. Any other one
    gets it if the present box does not answer.
    """

    def __init__(self, directory: ServedDirectory) -> None:
        self._directory = directory
        self._changing = threading.Lock()
        self._owner: _Owner | None = None

    def describe(self) -> dict[str, Any]:
        """See DirectoryGrant."""
        return self._directory.describe()

    def open(self, connection: ReplicaConnection, fields: Mapping[str, Any]) -> tuple[ReplicaSession, dict[str, Any]]:
        """See DirectoryGrant. The session of the former box has ended then."""
        run, generation = text(fields, "run"), integer(fields, "generation")
        with self._changing:
            if self._owner is not None:
                self._refuse_second(self._owner, run, generation)
                self._fence(self._owner, connection)
            member = self._directory.member()
            content = member.open()
            session = ReplicaSession(
                member, content, ReplicaRequests(member, content.rows, self._directory), connection.send
            )
            self._owner = _Owner(connection, session, run)
            self._report(connection, content)
            return session, self._directory.opened(content, member.device)

    def check(self) -> None:
        """Open the directory once, so that a replica that cannot serve it does not start. Raises PersistenceError."""
        member = self._directory.member()
        member.open()
        member.close()

    def close(self) -> None:
        """End the session."""
        with self._changing:
            if self._owner is not None:
                self._owner.connection.end()
                self._owner.session.close()
                self._owner = None

    def _refuse_second(self, owner: _Owner, run: str, generation: int) -> None:
        """Raise PersistenceError if the box that has the directory answers."""
        if owner.run == run or generation > self._directory.generation():
            return
        asked, connection = time.monotonic(), owner.connection
        while connection.is_alive and time.monotonic() - connection.last_received < LIVE_SECONDS:
            if connection.last_received > asked:
                raise PersistenceError(f"the box at {connection.peer} uses the directory, and answers: stop it first")
            time.sleep(_LOOK_SECONDS)

    def _fence(self, owner: _Owner, by: ReplicaConnection) -> None:
        """End the session of a box for good. Raises PersistenceError if one of its writes does not end."""
        was_alive = owner.connection.is_alive
        owner.connection.end()
        if not owner.session.close():
            raise PersistenceError("a write of the former connection has not ended: check the disk of the replica")
        self._owner = None
        if was_alive:
            log.warning("the connection of %s is fenced: %s has the directory now", owner.connection.peer, by.peer)

    def _report(self, connection: ReplicaConnection, content: MemberContent) -> None:
        generation = 0 if content.membership is None else content.membership.generation
        log.info("%s has the directory: generation %d, batch %d", connection.peer, generation, content.newest)
