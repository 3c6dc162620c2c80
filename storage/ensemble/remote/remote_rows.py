"""The rows of the last checkpoint of a replica, fetched when they are needed.

Only opening and repair use them: the core reads the rows of a directory on its own machine.
"""

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.storage.ensemble.remote.link import Link, ReplicaReply
from pulsarbox.storage.ensemble.remote.wire_values import stored_rows

_SECONDS: Final = 30.0


class RemoteRows:
    """Rows behind a link. Raises PersistenceError if the link fails."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def get(self, key: bytes) -> bytes | None:
        """See Rows."""
        found = stored_rows(self._call("row", {"key": key.hex()}).body)
        return found[0][1] if found else None

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See Rows."""
        while found := stored_rows(self._call("rows", {"prefix": prefix.hex(), "after": after.hex()}).body):
            yield from found
            after = found[-1][0]

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """See Rows."""
        found = stored_rows(self._call("last_row", {"prefix": prefix.hex(), "through": through.hex()}).body)
        return found[0] if found else None

    def _call(self, operation: str, fields: dict[str, Any]) -> ReplicaReply:
        return self._link.call(operation, fields, b"", _SECONDS)
