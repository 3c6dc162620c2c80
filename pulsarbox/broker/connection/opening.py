"""A PRODUCER or SUBSCRIBE command between its arrival and its final answer.

A command may wait for a plugin, a schema, a read, a quota, a name or a commit. While it does, its client can close the
producer or consumer, or lose the connection. Every part that completes later goes through ``step``, which does nothing
for an abandoned command.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarbox.broker.connection.cnx import ConnectionState
from pulsarbox.broker.connection.pending_opening import Key, closed_early
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError, ServiceNotReady
from pulsarbox.protocol import replies

if TYPE_CHECKING:
    from pulsarbox.broker.connection.cnx import ServerCnx


class Opening:
    """One pending PRODUCER or SUBSCRIBE."""

    __slots__ = ("_key", "cnx", "request_id", "undo")

    def __init__(self, cnx: "ServerCnx", key: Key, request_id: int) -> None:
        """Raises ServiceNotReady if the connection is opening this producer or consumer already."""
        if key in cnx.opening:
            raise ServiceNotReady(f"{key[0].capitalize()} is already present on the connection")
        self.cnx = cnx
        self.request_id = request_id
        self.undo: Callable[[Now], None] = _nothing
        """Detaches what the command has attached so far."""
        self._key = key
        cnx.opening[key] = self

    @property
    def pending(self) -> bool:
        """Whether the client still waits for the final answer."""
        return self.cnx.opening.get(self._key) is self and self.cnx.state is not ConnectionState.CLOSED

    def step(self, work: Callable[[Now], None], now: Now) -> None:
        """Carry out the next part of a pending command; an error it raises is the final answer."""
        if not self.pending:
            return
        try:
            work(now)
        except PulsarBoxError as error:
            self.fail(error, now)

    def succeeded(self) -> None:
        """The producer or consumer is open; the caller sends the answer."""
        del self.cnx.opening[self._key]

    def fail(self, error: Exception, now: Now) -> None:
        """Detach what is attached and send the error. Does nothing after the final answer."""
        cnx = self.cnx
        if cnx.opening.get(self._key) is not self:
            return
        del cnx.opening[self._key]
        self.undo(now)
        if cnx.state is not ConnectionState.CLOSED:
            code = cnx.code_of(error) if isinstance(error, PulsarBoxError) else 0
            cnx.outbox.send(replies.error(self.request_id, code, str(error)))

    def abandon(self, now: Now) -> None:
        """The client has closed the producer or consumer, or its connection is lost."""
        self.fail(closed_early(self._key[0]), now)


def _nothing(now: Now) -> None:
    """Nothing is attached yet."""
