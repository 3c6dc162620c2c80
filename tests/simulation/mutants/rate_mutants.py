"""Planted bugs in limiters, for ``test_mutants``: excess, notification, and statistics."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.multiple_consumers import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.single_active import SingleActiveDispatcher
from pulsarbox.broker.limits.dispatch_throttle import DispatchThrottle
from pulsarbox.broker.limits.limiter import Limiter
from pulsarbox.broker.limits.publish_throttle import ReceiptHold
from pulsarbox.broker.limits.token_bucket import TokenBucket
from pulsarbox.broker.limits.topic_limits import TopicLimits
from pulsarbox.clock import Now
from tests.simulation.mutants.registry import mutant


@mutant("rates")
def nobody_is_ever_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Limiter, "refuses", lambda self, waiter, at: False)


@mutant("rates")
def debt_is_forgiven(patch: pytest.MonkeyPatch) -> None:
    original = TokenBucket.refill

    def refill(self: TokenBucket, at: int) -> None:
        before = self.begun
        original(self, at)
        if self.begun != before:
            self.left_messages, self.left_bytes = self.capacity

    patch.setattr(TokenBucket, "refill", refill)


@mutant("rates")
def what_periods_leave_over_is_kept(patch: pytest.MonkeyPatch) -> None:
    def refill(self: TokenBucket, at: int) -> None:
        periods = max(at - self._start, 0) // self.limit.period_ms
        self._start += periods * self.limit.period_ms
        self.left_messages += periods * self.limit.messages
        self.left_bytes += periods * self.limit.bytes

    patch.setattr(TokenBucket, "refill", refill)


@mutant("rates")
def a_batch_counts_as_one_message_always(patch: pytest.MonkeyPatch) -> None:
    original = DispatchThrottle.sent

    def sent(self: DispatchThrottle, entries: int, messages: int, size: int) -> None:
        original(self, entries, entries, size)

    patch.setattr(DispatchThrottle, "sent", sent)


@mutant("rates")
def only_the_limit_that_is_asked_first_counts(patch: pytest.MonkeyPatch) -> None:
    original = DispatchThrottle.sent

    def sent(self: DispatchThrottle, entries: int, messages: int, size: int) -> None:
        limiters, self.limiters = self.limiters, self.limiters[:1]
        original(self, entries, messages, size)
        self.limiters = limiters

    patch.setattr(DispatchThrottle, "sent", sent)


@mutant("rates")
def receipts_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReceiptHold, "_refusing", lambda self, now: None)


@mutant("liveness", "why")
def nobody_is_called_when_a_period_begins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Limiter, "_arm", lambda self, now: None)


@mutant("liveness", "why")
def only_the_first_that_waits_is_called(patch: pytest.MonkeyPatch) -> None:
    original = Limiter._ring

    def ring(self: Limiter, now: Now) -> None:
        for waiter in list(self._waiting)[1:]:
            del self._waiting[waiter]
        original(self, now)

    patch.setattr(Limiter, "_ring", ring)


@mutant("liveness")
def a_topic_does_not_hear_of_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicLimits, "changed", lambda self, now: None)


@mutant("why")
def held_back_passes_for_the_end_of_the_log(patch: pytest.MonkeyPatch) -> None:
    for dispatcher in (SingleActiveDispatcher, MultipleConsumersDispatcher):
        original: Any = dispatcher.blocked_reason

        def why(self: Any, original: Any = original) -> str:
            reason = original(self)
            return Reason.END_OF_LOG if reason == Reason.THROTTLED else str(reason)

        patch.setattr(dispatcher, "blocked_reason", why)


@mutant("rates", seeds=(38,))
def what_is_published_comes_on_top_twice(patch: pytest.MonkeyPatch) -> None:
    original = TokenBucket.count

    def count(self: TokenBucket, at: int) -> None:
        before = self._arrived
        original(self, at)
        self._arrived = 2 * self._arrived[0] - before[0], 2 * self._arrived[1] - before[1]

    patch.setattr(TokenBucket, "count", count)


@mutant("rates", seeds=(88,))
def all_that_was_ever_published_comes_on_top(patch: pytest.MonkeyPatch) -> None:
    original = TokenBucket.count

    def count(self: TokenBucket, at: int) -> None:
        original(self, at)
        if self._more is not None:
            self._arrived = self._more()

    patch.setattr(TokenBucket, "count", count)


@mutant("rates", seeds=(35,))
def what_is_published_comes_on_top_of_every_rate(patch: pytest.MonkeyPatch) -> None:
    original = TopicLimits._set

    def set_(self: TopicLimits, limiter: Any, scope: Any, rate: Any, *arguments: Any) -> Any:
        return original(self, limiter, scope, rate._replace(relative=True), *arguments)

    patch.setattr(TopicLimits, "_set", set_)
