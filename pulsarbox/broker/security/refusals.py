"""The log of what was refused: one line each, with who, from where, what and why; of a flood only some."""

import logging
from typing import Final

from pulsarbox.broker.events import Events
from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now

log = logging.getLogger(__name__)

LINES: Final = 50
PERIOD: Final = 10.0
"""So many lines are written in so many seconds; of the others the next line tells the number."""


class Refusals:
    """Of one broker: what clients of both ports were refused."""

    def __init__(self, events: Events | None = None) -> None:
        self._events = events
        self._period_ends = 0.0
        self._lines = 0
        self._untold = 0

    def line(self, now: Now) -> str | None:
        """The end of a line to be written now, which tells of those that were not; None where none is to be."""
        if now.monotonic >= self._period_ends:
            self._period_ends, self._lines = now.monotonic + PERIOD, 0
        if self._lines == LINES:
            self._untold += 1
            return None
        self._lines += 1
        untold, self._untold = self._untold, 0
        return f" (and {untold} more that are not told)" if untold else ""

    def tell(self, principal: Principal | None, address: str, what: str, reason: str, now: Now) -> None:
        """Write that somebody at ``address`` was refused something."""
        who = "nobody" if principal is None else str(principal)
        if self._events is not None:
            self._events.tell("denied", who, f"{who} at {address}: {what}: {reason}", now)
        end = self.line(now)
        if end is not None:
            fields = {"role": who, "who": address, "what": what, "reason": reason}
            log.warning("%s at %s: %s: refused: %s%s", who, address, what, reason, end, extra={"fields": fields})
