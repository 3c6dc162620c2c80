"""The virtual clock: the offset of the box's wall clock from real time, stored with the data.

The clock runs on and is only ever moved forward. Stored times never lie in the future, so the offset that data was
written under outlives restarts. A box without a virtual clock refuses to open such data.
"""

from typing import Final

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.clock import WALL_MAX, Now, in_words
from pulsarbox.errors import BadRequest, Conflict, PersistenceError
from pulsarbox.storage.catalog import CLOCK
from pulsarbox.storage.recovery import Store

VIRTUAL: Final = "virtual"


def offset_of(store: Store, mode: str) -> int:
    """Return the offset that the data was written under, in milliseconds.

    Raises PersistenceError if it is not zero and the clock is not virtual: stored times would lie in the future.
    """
    offset: int = (store.catalog.get(CLOCK) or {"offset": 0})["offset"]
    if offset and mode != VIRTUAL:
        raise PersistenceError(
            f"the virtual clock of the data directory is {in_words(offset)} ahead of the real time:"
            " start with --clock virtual, or use another data directory"
        )
    return offset


class VirtualClock:
    """The offset of one box's wall clock."""

    def __init__(self, commits: GroupCommit, offset: int, *, is_virtual: bool) -> None:
        self.is_virtual = is_virtual
        self.offset = offset
        """Milliseconds."""
        self._commits = commits

    def advance(self, by: int, now: Now) -> Now:
        """Move the wall clock forward by ``by`` milliseconds and return the new time.

        Durable with the next commit, which holds nothing stamped with the new time. Raises Conflict if the clock is not
        virtual, BadRequest if it would go back or beyond the year 9999.
        """
        if not self.is_virtual:
            raise Conflict(
                "The real clock of this box cannot be moved: start it with --clock virtual"
                " (in Python, create it with clock='virtual')"
            )
        if by < 0:
            raise BadRequest(
                f"The clock cannot be moved by {in_words(by)}, only forward: stored times would be in the future"
            )
        if now.wall + by > WALL_MAX:
            raise BadRequest("The clock cannot be moved past the year 9999")
        if by:
            self.offset += by
            self._commits.put_row(CLOCK, {"offset": self.offset})
        return Now(now.monotonic, now.wall + by, self.offset)
