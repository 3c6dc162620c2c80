"""Estimate of the time until a backlog is drained at the current rates."""

from typing import Final

NEVER: Final = -1


def seconds_to_drain(backlog: int, acknowledged: float, published: float) -> int:
    """Return the seconds until ``backlog`` messages are drained, given rates in messages per second.

    0 without a backlog, ``NEVER`` if it does not shrink.
    """
    if not backlog:
        return 0
    falls = acknowledged - published
    return max(1, round(backlog / falls)) if falls > 0 else NEVER


def longest(first: int, second: int) -> int:
    """Return the drain time of two parts that are drained in parallel."""
    return NEVER if NEVER in (first, second) else max(first, second)
