"""The rows of the last checkpoint, from the first member that can be read."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot

_Result = TypeVar("_Result")


class EnsembleRows:
    """Rows of an Engine: all members that belong to the ensemble have the same.

    Those of members on other machines are not used: the core reads rows in its loop, which must not wait for a network.
    """

    def __init__(self, table: MemberTable) -> None:
        self._table = table

    def get(self, key: bytes) -> bytes | None:
        """See Rows."""
        return self._first(lambda rows: rows.get(key))

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See Rows. Goes on with the next member after the last row that one could read."""
        error: PersistenceError | None = None
        for slot in self._slots():
            assert slot.content is not None
            try:
                for row in slot.content.rows.items(prefix, after):
                    yield row
                    after = row[0]
            except PersistenceError as failure:
                error = failure
                slot.read_errors += 1
            else:
                return
        raise error or PersistenceError("no data directory can be read")

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """See Rows."""
        return self._first(lambda rows: rows.last(prefix, through))

    def _slots(self) -> list[Slot]:
        return [slot for slot in self._table.slots if slot.is_readable and not slot.member.is_remote]

    def _first(self, look: Callable[[Rows], _Result]) -> _Result:
        error: PersistenceError | None = None
        for slot in self._slots():
            assert slot.content is not None
            try:
                return look(slot.content.rows)
            except PersistenceError as failure:
                error = failure
                slot.read_errors += 1
        raise error or PersistenceError("no data directory can be read")
