"""The virtual clock: how far the wall clock of the box is ahead of the real one, kept with the data.

The clock runs on; it is only ever moved forward. Times that are stored never lie in the future, so an offset that data
was written under stays: over restarts, and even where the clock is not virtual any more no box opens that data without.
"""

from typing import Final

from pulsarbox.broker.core import Core
from pulsarbox.clock import WALL_MAX, Now, in_words
from pulsarbox.errors import BadRequest, Conflict, PersistenceError
from pulsarbox.storage.catalog import CLOCK
from pulsarbox.storage.recovery import Store

VIRTUAL: Final = "virtual"


def offset_of(store: Store, mode: str) -> int:
    """The offset that the data was written under, in milliseconds.

    Raises PersistenceError where there is one and the clock is not virtual: stored times would lie in the future.
    """
    offset: int = (store.catalog.get(CLOCK) or {"offset": 0})["offset"]
    if offset and mode != VIRTUAL:
        raise PersistenceError(
            f"the data is {in_words(offset)} ahead of the real time, its virtual clock was moved that far:"
            " start with --clock virtual, or on another data directory"
        )
    return offset


class VirtualClock:
    """The offset of one box's wall clock."""

    def __init__(self, core: Core, offset: int) -> None:
        self.is_virtual = core.settings.brokerClock == VIRTUAL
        self.offset = offset
        """Milliseconds."""
        self._commits = core.commits

    def advance(self, by: int, now: Now) -> Now:
        """Move the wall clock forward by ``by`` milliseconds; this instant as it is then.

        Durable with the next commit, which holds nothing that was stamped with the new time. Raises Conflict where
        the clock is not virtual, BadRequest where it would go back or beyond the year 9999.
        """
        if not self.is_virtual:
            raise Conflict(
                "This box has the real clock, which stays: start it with --clock virtual"
                " (in Python, make it with clock='virtual')"
            )
        if by < 0:
            raise BadRequest(f"The clock goes forward only, not {in_words(by)}: stored times would lie in the future")
        if now.wall + by > WALL_MAX:
            raise BadRequest("The clock ends with the year 9999")
        if by:
            self.offset += by
            self._commits.put_row(CLOCK, {"offset": self.offset})
        return Now(now.monotonic, now.wall + by, self.offset)
