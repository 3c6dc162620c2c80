"""The two clocks, as values.

Time is an argument of the core: nothing below ``server`` asks what time it is. Keep-alive, time-outs and credentials
run on monotonic time; policies (delay, TTL, retention, rollover by age) run on a wall clock with an offset, which the
virtual clock moves without disturbing the connections.
"""

from typing import Final, NamedTuple

WALL_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: what every calendar can still show."""
_TIME_MAX: Final = 2**63 - 1

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Now(NamedTuple):
    """One instant on both clocks."""

    monotonic: float
    """Seconds of a clock that never jumps; its zero means nothing."""
    wall: int
    """Milliseconds since 1970, the offset of the virtual clock included."""
    offset: int = 0
    """That offset, in milliseconds."""

    def of_client(self, time: int) -> int:
        """A time (ms since 1970) as a client's clock has it, on the wall clock here. Clients know of no offset."""
        return min(time + self.offset, _TIME_MAX) if self.offset else time


BEGINNING: Final = Now(0.0, 0)
"""Before everything: for what is made before anybody can tell the time."""


class Deadlines(NamedTuple):
    """When the core wants to be woken, on each clock; None where nothing waits."""

    monotonic: float | None
    wall: int | None


def in_words(duration: int) -> str:
    """Milliseconds as ``times.duration`` reads them: ``10d2h``; ``0s`` for none."""
    words, left = "", abs(duration)
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, _UNITS[unit])
        if count:
            words += f"{count}{unit}"
    return ("-" if duration < 0 else "") + (words or "0s")
