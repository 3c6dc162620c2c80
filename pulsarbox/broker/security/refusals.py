"""The log of what was refused: one line each, with who, from where, what and why; of a flood only some."""

import logging
from typing import Final

from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now

log = logging.getLogger(__name__)

LINES: Final = 50
PERIOD: Final = 10.0
"""So many lines are written in so many seconds; of the others the next line tells the number."""


class Refusals:
    """Writes the lines of one broker."""

    def __init__(self) -> None:
        self._period_ends = 0.0
        self._lines = 0
        self._untold = 0

    def tell(self, principal: Principal | None, address: str, what: str, reason: str, now: Now) -> None:
        """Somebody at ``address`` was refused something."""
        if now.monotonic >= self._period_ends:
            self._period_ends, self._lines = now.monotonic + PERIOD, 0
        if self._lines == LINES:
            self._untold += 1
            return
        self._lines += 1
        who = "nobody" if principal is None else str(principal)
        untold, self._untold = self._untold, 0
        log.warning(
            "%s at %s: %s: refused: %s%s",
            who, address, what, reason, f" (and {untold} more that are not told)" if untold else "",
            extra={"fields": {"role": who, "who": address, "what": what, "reason": reason}},
        )  # fmt: skip
