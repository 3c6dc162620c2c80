"""The two clocks, as values.

Time is an argument of the core: nothing below ``server`` asks what time it is. Keep-alive, time-outs and credentials
run on monotonic time; policies (delay, TTL, retention, rollover by age) run on a wall clock with an offset, which the
virtual clock moves without disturbing the connections.
"""

from typing import NamedTuple


class Now(NamedTuple):
    """One instant on both clocks."""

    monotonic: float
    """Seconds of a clock that never jumps; its zero means nothing."""
    wall: int
    """Milliseconds since 1970, the offset of the virtual clock included."""


class Deadlines(NamedTuple):
    """When the core wants to be woken, on each clock; None where nothing waits."""

    monotonic: float | None
    wall: int | None
