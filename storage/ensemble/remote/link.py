"""The connection of a box to a replica, as the member uses it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

Part = tuple[Mapping[str, Any], bytes]
"""The fields and the body of a part of a request."""


class ReplicaReply(NamedTuple):
    """The answer to a request."""

    fields: Mapping[str, Any]
    body: bytes


class Link(Protocol):
    """One authenticated connection. Thread-safe; once it is down, it stays down, and all requests fail."""

    @property
    def is_up(self) -> bool:
        """Whether requests can be sent. Cheap."""

    @property
    def why(self) -> str:
        """Why it is down; empty if it is up."""

    def call(self, operation: str, fields: Mapping[str, Any], body: bytes, seconds: float) -> ReplicaReply:
        """Send a request and wait for its answer.

        Raises PersistenceError if the link fails or the answer takes longer than ``seconds``, which ends the link;
        otherwise the error of the replica.
        """

    def upload(self, operation: str, fields: Mapping[str, Any], parts: Iterable[Part], seconds: float) -> ReplicaReply:
        """Send a request in parts, each once the replica can take it. Raises as ``call``, and what ``parts`` raises.

        ``seconds`` limits the answer to each part.
        """

    def post(
        self, operation: str, fields: Mapping[str, Any], body: bytes, done: Callable[[Exception | None], None]
    ) -> None:
        """Queue a request without waiting; ``done`` is called once, from any thread, with its error or None."""

    def close(self) -> None:
        """End the connection."""

    def abandon(self) -> None:
        """Close the inherited socket in a forked child; the connection of the parent stays."""


Connect = Callable[[str], Link]
"""Connects to a replica by its address. Raises PersistenceError."""
