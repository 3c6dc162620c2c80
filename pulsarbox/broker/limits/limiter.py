"""A limiter: what is left of a limit, and who waits for more of it.

Whoever finds it used up waits, and is called in turn when the next period gives something: nobody polls, and while
anybody waits nobody else takes from it, so that of two who share a limit none goes short. Its periods run on the
monotonic clock, which never goes back, and on the offset of the virtual clock, so that an advance fills it up at once.
"""

from collections import OrderedDict
from enum import StrEnum
from typing import Final, Protocol

from pulsarbox.broker.limits.hold_times import HoldTimes
from pulsarbox.broker.limits.token_bucket import Limit, More, Step
from pulsarbox.broker.stats.current_rate import Pace
from pulsarbox.broker.timers import Timer, Timers
from pulsarbox.clock import Now

FORGOTTEN_SECONDS: Final = 10.0
"""A look at what was used that is older says nothing of what is used now."""
EARLY_SECONDS: Final = 0.0005
"""A deadline that is computed with floats would ring so much too early."""


class Scope(StrEnum):
    """What shares a limit."""

    BROKER = "broker"
    GROUP = "resource group"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"


class Waiter(Protocol):
    """Somebody who waits for a limiter."""

    has_turn: bool
    """It is called right now: others who wait do not come before it."""

    def go_on(self, now: Now) -> None:
        """Something is left: take it, wait again, or leave it."""


def time_of(now: Now) -> int:
    """Milliseconds of the clock of limiters."""
    return int(now.monotonic * 1000) + now.offset


class Limiter:
    """One limit of one scope. ``step`` is None while there is none: then nothing is held back."""

    __slots__ = (
        "_holding", "_on_monotonic", "_on_wall", "_pace", "_timers", "_waiting", "holds", "level", "name", "scope",
        "step",
    )  # fmt: skip

    def __init__(self, scope: Scope, name: str, timers: Timers, holding: "set[Limiter] | None" = None) -> None:
        """``holding``: where it is to be found while it holds something back."""
        self._holding: set[Limiter] = set() if holding is None else holding
        self.scope = scope
        self.name = name
        """Of what it limits."""
        self.level = ""
        """Who has set the limit."""
        self.step: Step | None = None
        self.holds = HoldTimes()
        self._timers = timers
        self._waiting: OrderedDict[Waiter, None] = OrderedDict()
        self._on_wall: Timer | None = None
        self._on_monotonic: Timer | None = None
        self._pace: Pace | None = None

    def set(self, limit: Limit | None, level: str, now: Now, more: More | None = None) -> None:
        """The limit from now on, None for none, and who has set it. The same as before changes nothing.

        Whoever waits goes on at once where there is something left.
        """
        self.level = level
        at = time_of(now)
        if limit is None:
            if self.step is None:
                return
            self.step = None
        elif self.step is None:
            self.step = Step(limit, at, more)
        else:
            self.step.change(limit, at, more)
        self._ring(now)

    @property
    def in_words(self) -> str:
        """Whose limit it is, of how much, and who has set it."""
        if self.step is None:
            return "no limit"
        limit = self.step.limit
        parts = [f"{count} {unit}" for count, unit in zip(limit, ("messages", "bytes"), strict=False) if count]
        period = f"{limit.period_ms // 1000} s" if limit.period_ms != 1000 else "second"
        on_top = ", and what is published" if self.step.is_relative else ""
        whose = f"{self.scope} {self.name}" if self.scope is Scope.GROUP else f"{self.scope}"
        return f"that of the {whose}, {' and '.join(parts)} a {period}{on_top}, set for the {self.level}"

    def refuses(self, waiter: Waiter, at: int) -> bool:
        """Whether ``waiter`` must wait."""
        step = self.step
        if step is None:
            return False
        step.refill(at)
        return step.used_up or (bool(self._waiting) and not waiter.has_turn)

    def take(self, messages: int, size: int) -> None:
        """So many messages and bytes went."""
        if self.step is not None:
            self.step.take(messages, size)

    def count(self, at: int) -> None:
        """Count what has just arrived; see ``Step.count``."""
        if self.step is not None:
            self.step.count(at)

    def used(self, now: Now) -> tuple[float, float]:
        """Messages and bytes a second that went of late; of this period alone where nobody has asked of late."""
        step = self.step
        if step is None:
            return 0.0, 0.0
        pace = self._pace
        if pace is not None and now.monotonic - pace.looked_at < FORGOTTEN_SECONDS:
            pace.look(now.monotonic, step.taken_messages, step.taken_bytes)
            if pace.speaks:
                return pace.first, pace.second
        else:
            self._pace = Pace(now.monotonic, step.taken_messages, step.taken_bytes)
        step.refill(time_of(now))
        seconds = step.limit.period_ms / 1000
        messages, size = step.capacity
        return max(messages - step.left_messages, 0) / seconds, max(size - step.left_bytes, 0) / seconds

    # Waiting

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def is_waiting(self, waiter: Waiter) -> bool:
        """Whether it waits already."""
        return waiter in self._waiting

    def wait(self, waiter: Waiter, now: Now) -> None:
        """Call ``waiter`` in its turn, when something is left."""
        if waiter not in self._waiting:
            self._waiting[waiter] = None
            self.holds.begin(time_of(now))
            self._holding.add(self)
        self._arm(now)

    def forget(self, waiter: Waiter, now: Now) -> None:
        """It does not wait any more."""
        if waiter in self._waiting:
            del self._waiting[waiter]
            self._settle(now)

    def _ring(self, now: Now) -> None:
        self._disarm()
        at = time_of(now)
        if self.step is not None:
            self.step.refill(at)
        # Who waits again stands behind those who have not had their turn; it does so only once this is used up.
        while self._waiting and not (self.step is not None and self.step.used_up):
            waiter, _ = self._waiting.popitem(last=False)
            waiter.has_turn = True
            try:
                waiter.go_on(now)
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
        """Ring when the period that gives something begins, by whichever clock comes there first."""
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
