"""The log of refused requests, one line each with principal, address, request and reason; rate-limited."""

import logging
from typing import Final

from pulsarbox.broker.events import Events
from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now

log = logging.getLogger(__name__)

LINES: Final = 50
PERIOD: Final = 10.0
"""Up to LINES lines are written per PERIOD, in seconds; the next line reports how many were omitted."""


class Refusals:
    """The refusals on both ports of one broker."""

    def __init__(self, events: Events | None = None) -> None:
        self._events = events
        self._period_ends = 0.0
        self._lines = 0
        self._untold = 0

    def line(self, now: Now) -> str | None:
        """Return the suffix of a line to write, which reports omitted lines; None to omit this one too."""
        if now.monotonic >= self._period_ends:
            self._period_ends, self._lines = now.monotonic + PERIOD, 0
        if self._lines == LINES:
            self._untold += 1
            return None
        self._lines += 1
        untold, self._untold = self._untold, 0
        return f" (and {untold} more that are not told)" if untold else ""

    def log(self, principal: Principal | None, address: str, what: str, reason: str, now: Now) -> None:
        """Log that a principal at ``address`` was refused something."""
        who = "nobody" if principal is None else str(principal)
        if self._events is not None:
            self._events.report("denied", who, f"{who} at {address}: {what}: {reason}", now)
        end = self.line(now)
        if end is not None:
            fields = {"role": who, "who": address, "what": what, "reason": reason}
            log.warning("%s at %s: %s: refused: %s%s", who, address, what, reason, end, extra={"fields": fields})
