"""The allowance of a limit: messages and bytes that are refilled once per period.

Usage is counted afterwards, so it can exceed the allowance; the excess is debt, which later periods pay off first.
Unused allowance expires. So usage over any number of periods is at most the limit plus the last item taken, and the
long-term average never exceeds the limit.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

More = Callable[[], tuple[int, int]]
"""Running totals of messages and bytes whose growth is added to a limit."""

NO_MORE: Final = (0, 0)


class Limit(NamedTuple):
    """Messages and bytes per period; 0 means unlimited."""

    messages: int
    bytes: int
    period_ms: int = 1000


class TokenBucket:
    """The remaining allowance of a limit.

    Times are milliseconds of a monotonic clock; if it goes back, a new period starts.
    """

    __slots__ = (
        "_arrived", "_counted", "_more", "_start", "left_bytes", "left_messages", "limit", "on_top", "taken_bytes",
        "taken_messages",
    )  # fmt: skip

    def __init__(self, limit: Limit, at: int, more: More | None = None) -> None:
        """``more``: each period adds what ``count`` saw arrive during the period before it."""
        self.limit = limit
        self._start = at
        self.left_messages = limit.messages
        """Negative values are debt. Meaningless if messages are unlimited."""
        self.left_bytes = limit.bytes
        self._more = more
        self._counted = more() if more is not None else NO_MORE
        self._arrived = NO_MORE
        """Arrivals of the current period; added to the allowance of the next."""
        self.taken_messages = self.taken_bytes = 0
        """Totals since the limit was set."""
        self.on_top = NO_MORE
        """Allowance of this period beyond the limit."""

    def refill(self, at: int) -> None:
        """Start all periods that are due."""
        period = self.limit.period_ms
        if at < self._start:
            self._start = at
        periods = (at - self._start) // period
        if not periods:
            return
        self._start += periods * period
        arrived, self._arrived = self._arrived, NO_MORE
        if arrived != NO_MORE:  # arrivals count for the first of these periods only: nothing has arrived in the others
            self._begin(1, arrived)
            periods -= 1
        if periods:
            self._begin(periods, NO_MORE)

    def _begin(self, periods: int, on_top: tuple[int, int]) -> None:
        """Refill the allowance for ``periods`` periods, each with ``on_top`` beyond the limit."""
        self.on_top = on_top
        most_messages, most_bytes = self.capacity
        self.left_messages = min(self.left_messages + periods * most_messages, most_messages)
        self.left_bytes = min(self.left_bytes + periods * most_bytes, most_bytes)

    def count(self, at: int) -> None:
        """Attribute what has arrived since the last call to the period of ``at``.

        Must be called at every arrival: then the allowance does not depend on how often ``refill`` is called.
        """
        if self._more is None:
            return
        self.refill(at)
        messages, size = self._more()
        self._arrived = self._arrived[0] + messages - self._counted[0], self._arrived[1] + size - self._counted[1]
        self._counted = messages, size

    @property
    def capacity(self) -> tuple[int, int]:
        """Maximum messages and bytes in this period."""
        return self.limit.messages + self.on_top[0], self.limit.bytes + self.on_top[1]

    @property
    def begun(self) -> int:
        """When the current period began."""
        return self._start

    @property
    def is_relative(self) -> bool:
        """Whether arrivals are added to the limit."""
        return self._more is not None

    @property
    def used_up(self) -> bool:
        """Whether nothing may be taken before the next period with an allowance."""
        limit = self.limit
        return (limit.messages > 0 and self.left_messages <= 0) or (limit.bytes > 0 and self.left_bytes <= 0)

    def consume(self, messages: int, size: int) -> None:
        """Take messages and bytes from the allowance."""
        self.left_messages -= messages
        self.left_bytes -= size
        self.taken_messages += messages
        self.taken_bytes += size

    def free_at(self) -> int:
        """Return when an allowance is available again if there are no arrivals until then."""
        limit = self.limit
        periods = 1
        if limit.messages > 0 and self.left_messages <= 0:
            periods = max(periods, -self.left_messages // limit.messages + 1)
        if limit.bytes > 0 and self.left_bytes <= 0:
            periods = max(periods, -self.left_bytes // limit.bytes + 1)
        if self._more is not None:
            periods = 1
        return self._start + periods * limit.period_ms

    def change(self, limit: Limit, at: int, more: More | None = None) -> None:
        """Change the limit. Usage is retained, so that setting a limit again does not refill it."""
        self.refill(at)
        before = self.limit
        self.left_messages = limit.messages - (before.messages - self.left_messages if before.messages else 0)
        self.left_bytes = limit.bytes - (before.bytes - self.left_bytes if before.bytes else 0)
        if at - self._start >= limit.period_ms:
            self._start = at
        self.limit = limit
        if (more is None) != (self._more is None):
            self._counted = more() if more is not None else NO_MORE
            self._arrived = self.on_top = NO_MORE
        self._more = more
        most_messages, most_bytes = self.capacity  # drop allowance beyond the old limit
        self.left_messages, self.left_bytes = min(self.left_messages, most_messages), min(self.left_bytes, most_bytes)
