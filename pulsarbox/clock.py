"""The monotonic and the wall clock, as values.

The core takes the current time as an argument: no module below ``server`` reads a clock. Keep-alive, timeouts and
credentials use monotonic time. Policies (delay, TTL, retention, rollover by age) use a wall clock with an offset, which
the virtual clock moves without disturbing connections.
"""

from typing import Final, NamedTuple

WALL_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, the latest date that calendars such as Python's represent."""
_TIME_MAX: Final = 2**63 - 1

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Now(NamedTuple):
    """One instant on both clocks."""

    monotonic: float
    """Seconds on a clock that never jumps; its zero is arbitrary."""
    wall: int
    """Milliseconds since 1970, including the offset of the virtual clock."""
    offset: int = 0
    """The offset of the virtual clock, in milliseconds."""

    def of_client(self, time: int) -> int:
        """Convert a client's timestamp (ms since 1970) to this wall clock: clients do not know the offset."""
        return min(time + self.offset, _TIME_MAX) if self.offset else time


BEGINNING: Final = Now(0.0, 0)
"""Placeholder for objects that are created before the time is known."""


class Deadlines(NamedTuple):
    """The next deadline on each clock; None if there is none."""

    monotonic: float | None
    wall: int | None


def in_words(duration: int) -> str:
    """Format milliseconds so that ``times.duration`` can parse them, for example ``10d2h``; ``0s`` for zero."""
    words, left = "", abs(duration)
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, _UNITS[unit])
        if count:
            words += f"{count}{unit}"
    return ("-" if duration < 0 else "") + (words or "0s")
