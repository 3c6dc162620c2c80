"""A limit of bytes per second on a given clock: it never sleeps, but tells when the next step is due."""

from typing import Final

_BURST_SECONDS: Final = 1.0
"""After a pause, at most this many seconds' worth of bytes may be caught up."""


class Pace:
    """Counts bytes against a rate."""

    def __init__(self, bytes_per_second: int) -> None:
        """0 means no limit."""
        self.rate = bytes_per_second
        self.due = float("-inf")
        """When the next step may begin, in seconds on the monotonic clock."""

    def is_due(self, monotonic: float) -> bool:
        """Return whether a step may begin."""
        return monotonic >= self.due

    def spend(self, size: int, monotonic: float) -> None:
        """Count the bytes of a step."""
        if self.rate:
            self.due = max(self.due, monotonic - _BURST_SECONDS) + size / self.rate
