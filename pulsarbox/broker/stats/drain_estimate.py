"""Estimate of the time until a backlog is drained at the current rates."""

from typing import Final

NEVER: Final = -1
_MANY_YEARS: Final = 3e9
"""Seconds; a backlog that takes longer is never drained."""


def drain_time(backlog: int, change: float) -> float | None:
    """Return the seconds to drain a backlog that grows by ``change`` per second; None: never, 0 without a backlog."""
    if not backlog:
        return 0.0
    if change >= 0 or backlog / -change > _MANY_YEARS:
        return None
    return backlog / -change


def seconds_to_drain(backlog: int, acknowledged: float, published: float) -> int:
    """Return ``drain_time`` in whole seconds for the Admin API: at least 1 for a backlog, ``NEVER`` for never.

    The rates are in messages per second.
    """
    found = drain_time(backlog, published - acknowledged)
    if found is None:
        return NEVER
    return max(1, round(found)) if backlog else 0


def longest(first: int, second: int) -> int:
    """Return the drain time of two parts that are drained in parallel."""
    return NEVER if NEVER in (first, second) else max(first, second)
