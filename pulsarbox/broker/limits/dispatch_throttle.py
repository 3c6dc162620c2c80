"""Dispatch throttling of one subscription: all limits of the box, resource group, topic and subscription apply.

A dispatcher asks for a grant before it reads, and reports what it has sent. Sources: document "Message dispatch
throttling" of Pulsar, AbstractBaseDispatcher of Pulsar 4.2.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.limits.limiter import Limiter, LimitScope, time_of
from pulsarbox.clock import Now
from pulsarbox.config import Settings

ANY: Final = 1 << 62
"""Greater than any real count."""


class Grant(NamedTuple):
    """Current dispatch allowance: at most ``entries``, stopping once ``messages`` or ``bytes`` are reached."""

    entries: int
    messages: int
    bytes: int


ALL: Final = Grant(ANY, ANY, ANY)


class DispatchRateRules:
    """How the box counts dispatch rates."""

    __slots__ = ("backlog", "by_entry", "on_caught_up", "precise")

    def __init__(self, settings: Settings) -> None:
        self.apply_settings(settings)

    def apply_settings(self, settings: Settings) -> None:
        """Apply changed settings."""
        self.by_entry = settings.dispatchThrottlingOnBatchMessageEnabled
        self.precise = settings.preciseDispatcherFlowControl
        self.on_caught_up = settings.dispatchThrottlingOnNonBacklogConsumerEnabled
        threshold = settings.managedLedgerCursorBackloggedThreshold
        self.backlog = threshold if threshold >= 0 else ANY


class ThrottleCounts:
    """How often each limit has reduced a subscription's dispatch, as in Pulsar's statistics."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = dict.fromkeys(LimitScope, 0)
        self.bytes = dict.fromkeys(LimitScope, 0)


class Throttle(Protocol):
    """The interface between a dispatcher and the throttling of its subscription."""

    limiters: tuple[Limiter, ...]
    """Limiters in effect; if empty, the other members need not be used."""

    @property
    def refusing(self) -> Limiter | None:
        """The limiter that currently allows nothing."""

    def allowed(self, wanted: Grant, now: Now) -> Grant | None:
        """Return how much of ``wanted`` may be sent now; None for nothing."""

    def sent(self, entries: int, messages: int, size: int) -> None:
        """Report what was sent."""

    def wait(self, now: Now) -> None:
        """Resume dispatching when the refusing limiter allows it."""


class ThrottledSource(Protocol):
    """The entries that a dispatcher has not read yet."""

    def has_more_than(self, entries: int) -> bool:
        """Return whether more than ``entries`` remain."""


class DispatchThrottle:
    """The throttling of one subscription; see Throttle."""

    __slots__ = (
        "_counting",
        "_counts",
        "_cuts",
        "_dispatch",
        "_refusing",
        "_rules",
        "_source",
        "has_turn",
        "limiters",
        "own",
    )

    def __init__(self, rules: DispatchRateRules, source: ThrottledSource, dispatch: Callable[[Now], None]) -> None:
        """``dispatch`` is called when something may be sent again."""
        self._rules = rules
        self._source = source
        self._dispatch = dispatch
        self.limiters: tuple[Limiter, ...] = ()
        self.own: Limiter | None = None
        """The subscription's own limiter, once it has had one."""
        self._counts: ThrottleCounts | None = (
            None  # allocated on demand: of a million subscriptions, few are ever throttled
        )
        self._cuts: list[tuple[dict[LimitScope, int], LimitScope]] | None = None
        """Reductions of the last grant, counted if something is then sent."""
        self._counting = True
        """Whether the limits apply to the current dispatch; subscriptions without a backlog can be exempt."""
        self._refusing: Limiter | None = None
        """The limiter that refused last."""
        self.has_turn = False

    @property
    def counts(self) -> ThrottleCounts:
        """Statistics, created on first use."""
        if self._counts is None:
            self._counts = ThrottleCounts()
        return self._counts

    @property
    def has_counts(self) -> bool:
        """Whether any limit has ever reduced a grant."""
        return self._counts is not None

    @property
    def refusing(self) -> Limiter | None:
        """The limiter being waited for."""
        return self._refusing

    def allowed(self, wanted: Grant, now: Now) -> Grant | None:
        """See Throttle.allowed."""
        self._refusing = None
        self._cuts = None
        rules = self._rules
        self._counting = rules.on_caught_up or self._source.has_more_than(rules.backlog)
        if not self._counting:
            return wanted
        at = time_of(now)
        by_message = rules.precise
        entries, messages, size = wanted
        for limiter in self.limiters:
            if limiter.refuses(self, at):
                self._refusing = limiter
                return None
            step = limiter.step
            if step is None:
                continue
            if step.limit.messages:
                left = step.left_messages
                if left < (messages if by_message else min(messages, entries)):
                    self._cut(self.counts.messages, limiter)
                if by_message:
                    messages = min(messages, left)
                else:
                    entries = min(entries, left)
            if step.limit.bytes and step.left_bytes < size:
                self._cut(self.counts.bytes, limiter)
                size = step.left_bytes
        return Grant(entries, messages, size)

    def _cut(self, counts: dict[LimitScope, int], limiter: Limiter) -> None:
        if self._cuts is None:
            self._cuts = []
        self._cuts.append((counts, limiter.scope))

    def sent(self, entries: int, messages: int, size: int) -> None:
        """See Throttle.sent."""
        if self._cuts is not None:
            for counts, scope in self._cuts:
                counts[scope] += 1
            self._cuts = None
        if self._counting:
            counted = entries if self._rules.by_entry else messages
            for limiter in self.limiters:
                limiter.consume(counted, size)

    def wait(self, now: Now) -> None:
        """See Throttle.wait."""
        limiter = self._refusing
        if limiter is not None:
            self._count(limiter)
            limiter.wait(self, now)

    def _count(self, limiter: Limiter) -> None:
        """Count one refusal per wait, not per message published during it."""
        step = limiter.step
        if step is None or limiter.is_waiting(self):
            return
        if step.limit.messages and step.left_messages <= 0:
            self.counts.messages[limiter.scope] += 1
        if step.limit.bytes and step.left_bytes <= 0:
            self.counts.bytes[limiter.scope] += 1

    def resume(self, now: Now) -> None:
        """See Waiter.resume."""
        self._refusing = None
        self._dispatch(now)

    def use(self, shared: tuple[Limiter, ...], now: Now) -> None:
        """Apply these shared limiters, and the subscription's own if it has a limit."""
        own = (self.own,) if self.own is not None else ()
        limiters = tuple(each for each in (*shared, *own) if each.step is not None)
        for each in self.limiters:
            if each not in limiters:
                each.forget(self, now)
        self.limiters = limiters

    def stop_waiting(self, now: Now) -> None:
        """Stop waiting because no consumer is connected."""
        for each in self.limiters:
            each.forget(self, now)

    def end(self, now: Now) -> None:
        """Release the limiters of a deleted or unloaded subscription."""
        self.stop_waiting(now)
        self.limiters = ()
