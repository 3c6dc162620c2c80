"""Dispatch throttling of one subscription: the limits of the box, its resource group, its topic and its own, all at
once.

A dispatcher asks what it may take before it reads, and says what it has sent. Sources: document "Message dispatch
throttling" of Pulsar, AbstractBaseDispatcher of Pulsar 4.2.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pulsarbox.broker.limits.limiter import Limiter, Scope, time_of
from pulsarbox.clock import Now
from pulsarbox.config import Settings

if TYPE_CHECKING:
    from pulsarbox.broker.dispatch.entry_source import EntrySource

ANY: Final = 1 << 62
"""More than there can be."""


class Grant(NamedTuple):
    """What may be taken at once: no more entries than these, and nothing more once so many messages or bytes are
    reached."""

    entries: int
    messages: int
    bytes: int


ALL: Final = Grant(ANY, ANY, ANY)


class Rules:
    """How dispatch rates count, for the whole box."""

    __slots__ = ("backlog", "by_entry", "on_caught_up", "precise")

    def __init__(self, settings: Settings) -> None:
        self.take(settings)

    def take(self, settings: Settings) -> None:
        """Go by these settings from now on."""
        self.by_entry = settings.dispatchThrottlingOnBatchMessageEnabled
        self.precise = settings.preciseDispatcherFlowControl
        self.on_caught_up = settings.dispatchThrottlingOnNonBacklogConsumerEnabled
        threshold = settings.managedLedgerCursorBackloggedThreshold
        self.backlog = threshold if threshold >= 0 else ANY


class Throttled:
    """How often each limit has cut what a subscription would have been sent, as Pulsar's statistics count it."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = dict.fromkeys(Scope, 0)
        self.bytes = dict.fromkeys(Scope, 0)


class Throttle(Protocol):
    """What a dispatcher needs of the throttling of its subscription."""

    limiters: tuple[Limiter, ...]
    """Those that hold; empty where nothing is limited: then the others need not be asked."""

    @property
    def refusing(self) -> Limiter | None:
        """The limiter because of which nothing is allowed."""

    def allowed(self, wanted: Grant, now: Now) -> Grant | None:
        """What of it may be sent now; None for nothing."""

    def sent(self, entries: int, messages: int, size: int) -> None:
        """So much was sent."""

    def wait(self, now: Now) -> None:
        """There is something to be sent: go on when it may be."""


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

    def __init__(self, rules: Rules, source: "EntrySource", dispatch: Callable[[Now], None]) -> None:
        """``dispatch`` is called when something may be sent again."""
        self._rules = rules
        self._source = source
        self._dispatch = dispatch
        self.limiters: tuple[Limiter, ...] = ()
        self.own: Limiter | None = None
        """The subscription's own, once it has had one."""
        self._counts: Throttled | None = None  # of a million subscriptions few are ever throttled
        self._cuts: list[tuple[dict[Scope, int], Scope]] | None = None
        """What is cut of what is asked for: it counts if something is sent."""
        self._counting = True
        """Whether the limits hold for what is sent now: for a subscription without a backlog they need not."""
        self._refusing: Limiter | None = None
        """The one that has refused last."""
        self.has_turn = False

    @property
    def counts(self) -> Throttled:
        """How often limits have cut what would have been sent."""
        if self._counts is None:
            self._counts = Throttled()
        return self._counts

    @property
    def has_counts(self) -> bool:
        """Whether a limit has ever cut anything."""
        return self._counts is not None

    @property
    def refusing(self) -> Limiter | None:
        """The limiter that is waited for."""
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

    def _cut(self, counts: dict[Scope, int], limiter: Limiter) -> None:
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
                limiter.take(counted, size)

    def wait(self, now: Now) -> None:
        """See Throttle.wait."""
        limiter = self._refusing
        if limiter is not None:
            self._count(limiter)
            limiter.wait(self, now)

    def _count(self, limiter: Limiter) -> None:
        """Once for each time that it waits, not for each publication meanwhile."""
        step = limiter.step
        if step is None or limiter.is_waiting(self):
            return
        if step.limit.messages and step.left_messages <= 0:
            self.counts.messages[limiter.scope] += 1
        if step.limit.bytes and step.left_bytes <= 0:
            self.counts.bytes[limiter.scope] += 1

    def go_on(self, now: Now) -> None:
        """See Waiter.go_on."""
        self._refusing = None
        self._dispatch(now)

    def use(self, shared: tuple[Limiter, ...], now: Now) -> None:
        """These limiters hold from now on, and its own if it has a limit."""
        own = (self.own,) if self.own is not None else ()
        limiters = tuple(each for each in (*shared, *own) if each.step is not None)
        for each in self.limiters:
            if each not in limiters:
                each.forget(self, now)
        self.limiters = limiters

    def stop_waiting(self, now: Now) -> None:
        """Nobody is there any more who could be sent anything."""
        for each in self.limiters:
            each.forget(self, now)

    def end(self, now: Now) -> None:
        """The subscription is no more, or leaves the memory."""
        self.stop_waiting(now)
        self.limiters = ()
