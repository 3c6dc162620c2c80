"""A limiter: the remaining allowance of a limit, and the waiters for more.

A waiter is called in turn when the next period has an allowance, so nothing polls. While any waiter is queued, others
cannot take from the allowance, so all sharing a limit get their turn. Periods run on the monotonic clock plus the
virtual clock's offset: time never goes back, and advancing the virtual clock refills the allowance at once.
"""

from collections import OrderedDict
from enum import StrEnum
from typing import Final, Protocol

from pulsarbox.broker.limits.hold_times import HoldTimes
from pulsarbox.broker.limits.token_bucket import Limit, More, TokenBucket
from pulsarbox.broker.stats.current_rate import CurrentRate
from pulsarbox.broker.timers import Timer, Timers
from pulsarbox.clock import Now

FORGOTTEN_SECONDS: Final = 10.0
"""Maximum age of the last usage sample; older ones say nothing about current usage."""
EARLY_SECONDS: Final = 0.0005
"""Added to monotonic deadlines, which floating-point rounding could otherwise make fire early."""


class LimitScope(StrEnum):
    """The scope that shares a limit."""

    BROKER = "broker"
    GROUP = "resource group"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"


class Waiter(Protocol):
    """A subscription or producer that can wait for a limiter."""

    has_turn: bool
    """Whether the waiter is being called: others in the queue do not block it."""

    def resume(self, now: Now) -> None:
        """Use the available allowance, wait again, or do nothing."""


def time_of(now: Now) -> int:
    """Return milliseconds of the limiters' clock."""
    return int(now.monotonic * 1000) + now.offset


class Limiter:
    """One limit of one scope. ``step`` is None without a limit; then nothing is throttled."""

    __slots__ = (
        "_holding", "_on_monotonic", "_on_wall", "_pace", "_timers", "_waiting", "holds", "level", "name", "scope",
        "step",
    )  # fmt: skip

    def __init__(self, scope: LimitScope, name: str, timers: Timers, holding: "set[Limiter] | None" = None) -> None:
        """``holding``: a set that contains the limiter while anything waits for it."""
        self._holding: set[Limiter] = set() if holding is None else holding
        self.scope = scope
        self.name = name
        """Name of the scope's resource group, topic or subscription."""
        self.level = ""
        """Policy level that set the limit."""
        self.step: TokenBucket | None = None
        self.holds = HoldTimes()
        self._timers = timers
        self._waiting: OrderedDict[Waiter, None] = OrderedDict()
        self._on_wall: Timer | None = None
        self._on_monotonic: Timer | None = None
        self._pace: CurrentRate | None = None

    def set(self, limit: Limit | None, level: str, now: Now, more: More | None = None) -> None:
        """Set or remove (None) the limit, and record the level that set it. An unchanged limit has no effect.

        Waiters resume at once if any allowance is left.
        """
        self.level = level
        at = time_of(now)
        if limit is None:
            if self.step is None:
                return
            self.step = None
        elif self.step is None:
            self.step = TokenBucket(limit, at, more)
        else:
            self.step.change(limit, at, more)
        self._ring(now)

    @property
    def in_words(self) -> str:
        """Describe the limit, its scope and its level."""
        if self.step is None:
            return "no limit"
        limit = self.step.limit
        parts = [f"{count} {unit}" for count, unit in zip(limit, ("messages", "bytes"), strict=False) if count]
        period = f"{limit.period_ms // 1000} s" if limit.period_ms != 1000 else "second"
        on_top = " plus the publish rate" if self.step.is_relative else ""
        whose = f"{self.scope} {self.name}" if self.scope is LimitScope.GROUP else f"{self.scope}"
        return f"{' and '.join(parts)} per {period}{on_top} for the {whose}, set at {self.level} level"

    def refuses(self, waiter: Waiter, at: int) -> bool:
        """Return whether ``waiter`` must wait."""
        step = self.step
        if step is None:
            return False
        step.refill(at)
        return step.used_up or (bool(self._waiting) and not waiter.has_turn)

    def consume(self, messages: int, size: int) -> None:
        """Take messages and bytes from the allowance."""
        if self.step is not None:
            self.step.consume(messages, size)

    def count(self, at: int) -> None:
        """Count recent arrivals; see ``TokenBucket.count``."""
        if self.step is not None:
            self.step.count(at)

    def used(self, now: Now) -> tuple[float, float]:
        """Return recent messages and bytes per second, or the current period's if there is no recent sample."""
        step = self.step
        if step is None:
            return 0.0, 0.0
        pace = self._pace
        if pace is not None and now.monotonic - pace.sampled_at < FORGOTTEN_SECONDS:
            pace.sample(now.monotonic, step.taken_messages, step.taken_bytes)
            if pace.is_known:
                return pace.first, pace.second
        else:
            self._pace = CurrentRate(now.monotonic, step.taken_messages, step.taken_bytes)
        step.refill(time_of(now))
        seconds = step.limit.period_ms / 1000
        messages, size = step.capacity
        return max(messages - step.left_messages, 0) / seconds, max(size - step.left_bytes, 0) / seconds

    # Waiting

    @property
    def waiting(self) -> int:
        """Number of waiters."""
        return len(self._waiting)

    def is_waiting(self, waiter: Waiter) -> bool:
        """Return whether the waiter is queued."""
        return waiter in self._waiting

    def wait(self, waiter: Waiter, now: Now) -> None:
        """Queue ``waiter``, to be called in turn once any allowance is available."""
        if waiter not in self._waiting:
            self._waiting[waiter] = None
            self.holds.begin(time_of(now))
            self._holding.add(self)
        self._arm(now)

    def forget(self, waiter: Waiter, now: Now) -> None:
        """Remove a waiter from the queue."""
        if waiter in self._waiting:
            del self._waiting[waiter]
            self._settle(now)

    def _ring(self, now: Now) -> None:
        self._disarm()
        at = time_of(now)
        if self.step is not None:
            self.step.refill(at)
        # A waiter queues again only once the allowance is used up, after those without a turn yet.
        while self._waiting and not (self.step is not None and self.step.used_up):
            waiter, _ = self._waiting.popitem(last=False)
            waiter.has_turn = True
            try:
                waiter.resume(now)
            finally:
                waiter.has_turn = False
        self._settle(now)

    def _settle(self, now: Now) -> None:
        if self._waiting:
            self._arm(now)
        else:
            self._disarm()
            self.holds.end(time_of(now))
            self._holding.discard(self)

    def _arm(self, now: Now) -> None:
        """Set timers for the next period with an allowance, on both clocks; the first to fire counts."""
        if self._on_monotonic is not None or self.step is None:
            return
        wait = max(self.step.free_at() - time_of(now), 1)
        self._on_wall = self._timers.at_wall(now.wall + wait, self._ring)
        self._on_monotonic = self._timers.at(now.monotonic + wait / 1000 + EARLY_SECONDS, self._ring)

    def _disarm(self) -> None:
        for timer in (self._on_wall, self._on_monotonic):
            if timer is not None:
                timer.cancel()
        self._on_wall = self._on_monotonic = None
