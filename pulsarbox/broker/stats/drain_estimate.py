"""How long a backlog lasts if everything goes on as it does now."""

from typing import Final

NEVER: Final = -1


def seconds_to_drain(backlog: int, acknowledged: float, published: float) -> int:
    """Whole seconds until ``backlog`` messages are gone, at so many acknowledged and published a second.

    0 where there is none, ``NEVER`` where it grows or stays.
    """
    if not backlog:
        return 0
    falls = acknowledged - published
    return max(1, round(backlog / falls)) if falls > 0 else NEVER


def longest(first: int, second: int) -> int:
    """Of two parts that are drained side by side."""
    return NEVER if NEVER in (first, second) else max(first, second)
