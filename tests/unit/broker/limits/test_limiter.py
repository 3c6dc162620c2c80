"""Limiters: waiting parties, throttled time in the last minute, and reported statistics."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.limits.hold_times import SPANS_MAX, HoldTimes
from pulsarbox.broker.limits.limiter import Limiter, LimitScope
from pulsarbox.broker.limits.throttle_report import subscription_report, topic_report
from pulsarbox.broker.limits.token_bucket import Limit
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from tests.unit.broker.limits.rates import dispatch_rate, fill, got, join, set_topic, subscription_of, topic_of
from tests.unit.broker.playbook import Box


class Taker:
    """A waiting party that uses one message per resume until it has none left."""

    def __init__(self, limiter: Limiter, messages: int) -> None:
        self.limiter = limiter
        self.left = messages
        self.has_turn = False
        self.times: list[int] = []

    def resume(self, now: Now) -> None:
        while self.left:
            at = int(now.monotonic * 1000) + now.offset
            if self.limiter.refuses(self, at):
                self.limiter.wait(self, now)
                return
            self.limiter.consume(1, 0)
            self.left -= 1
            self.times.append(at)


def run(timers: Timers, start: Now, seconds: int) -> Now:
    """Advance both clocks together, millisecond by millisecond."""
    now = start
    for i in range(1, seconds * 1000 + 1):
        now = Now(start.monotonic + i / 1000, start.wall + i, start.offset)
        timers.run(now)
    return now


def test_those_who_wait_take_turns() -> None:
    timers, now = Timers(), Now(5.0, 5000)
    limiter = Limiter(LimitScope.TOPIC, "t", timers)
    limiter.set(Limit(3, 0), "topic", now)
    takers = [Taker(limiter, 6) for _ in range(3)]
    for taker in takers:
        taker.resume(now)
    run(timers, now, 10)
    assert [taker.times for taker in takers] == [
        [5000] * 3 + [6000] * 3,
        [7000] * 3 + [9000] * 3,
        [8000] * 3 + [10000] * 3,
    ]
    assert limiter.waiting == 0


def test_whoever_comes_later_does_not_take_what_others_wait_for() -> None:
    timers, now = Timers(), Now(5.0, 5000)
    limiter = Limiter(LimitScope.TOPIC, "t", timers)
    limiter.set(Limit(3, 0), "topic", now)
    first, later = Taker(limiter, 6), Taker(limiter, 3)
    first.resume(now)
    now = Now(6.0, 5500)  # a new period has begun, but no timer has fired yet
    later.resume(now)
    assert not later.times
    run(timers, now, 3)
    assert first.times[3:] == [6001] * 3
    assert len(later.times) == 3


def test_nobody_is_called_who_does_not_wait_any_more() -> None:
    timers, now = Timers(), Now(5.0, 5000)
    limiter = Limiter(LimitScope.TOPIC, "t", timers)
    limiter.set(Limit(1, 0), "topic", now)
    taker = Taker(limiter, 5)
    taker.resume(now)
    limiter.forget(taker, now)
    assert timers.next() == (None, None)
    run(timers, now, 3)
    assert taker.left == 4


def test_an_advance_of_the_virtual_clock_counts_as_time() -> None:
    timers, now = Timers(), Now(5.0, 5000)
    limiter = Limiter(LimitScope.TOPIC, "t", timers)
    limiter.set(Limit(1, 0, 60_000), "topic", now)
    taker = Taker(limiter, 3)
    taker.resume(now)
    timers.run(Now(5.0, 5000 + 59_999, 59_999))
    assert taker.left == 2
    timers.run(Now(5.0, 5000 + 60_000, 60_000))
    assert taker.left == 1


Spans = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 4000)), max_size=30)


@given(Spans, st.integers(0, 70_000))
def test_the_time_of_the_last_minute(spans: list[tuple[int, int]], after: int) -> None:
    holds, at, held = HoldTimes(), 0, set[int]()
    for pause, length in spans:
        at += pause
        holds.begin(at)
        held.update(range(at, at + length))
        at += length
        holds.end(at)
    at += after
    assert holds.last_minute(at) == sum(at - 60_000 <= each < at for each in held)


def test_it_counts_while_it_lasts() -> None:
    holds = HoldTimes()
    holds.begin(1000)
    assert holds.last_minute(31_000) == 30_000
    assert holds.last_minute(100_000) == 60_000
    assert holds.holding


def test_a_report_of_a_subscription() -> None:
    box = Box(dispatchThrottlingRateInMsg=40, keepAliveIntervalSeconds=86_400)
    box.broker.put_resource_group("g", {"dispatchRateInMsgs": 30}, box.now)
    box.broker.tenants.set_policy("public/default", "resource_group_name", "g", box.now)
    set_topic(box, "dispatchRate", dispatch_rate(20, 10_000, 2))
    set_topic(box, "subscriptionPolicies", {"s": {"dispatchRate": dispatch_rate(10)}})
    fill(box, 100)
    client = join(box)
    assert got(client) == 10
    box.advance(0.5)
    subscription = subscription_of(box)
    found = subscription_report(subscription.throttle, box.now)
    assert [(each.scope, each.name, each.setBy, each.messagesLimit) for each in found] == [
        ("broker", "", "broker", 40),
        ("resource group", "g", "resource group", 30),
        ("topic", str(subscription.topic_name), "topic", 20),
        ("subscription", "s", "topic", 10),
    ]
    assert [each.messagesUsed for each in found] == [10, 10, 10, 10]
    assert [each.waiting for each in found] == [0, 0, 0, 1]
    assert found[3].nextPeriodMillis == 500
    assert found[3].heldMillisLastMinute == 500
    assert found[2].periodSeconds == 2
    assert found[2].bytesUsed == client.cnx.consumers[1].bytes_out
    assert [each.scope for each in topic_report(topic_of(box).limits, box.now)] == ["broker", "resource group", "topic"]
    box.advance(120)
    found = subscription_report(subscription.throttle, box.now)
    assert [each.messagesUsed for each in found] == [0, 0, 0, 0]
    assert [each.heldMillisLastMinute for each in found] == [0, 0, 0, 0], "its backlog was gone after nine seconds"


def test_however_often_something_is_held_back_little_is_remembered_and_no_time_is_lost() -> None:
    holds = HoldTimes()
    for i in range(10_000):
        holds.begin(i * 4)
        holds.end(i * 4 + 1)
    assert len(holds._spans) == SPANS_MAX
    assert holds.last_minute(40_000) == 10_000


def test_the_box_knows_which_limiters_hold_something_back() -> None:
    timers, now, holding = Timers(), Now(5.0, 5000), set[Limiter]()
    limiter = Limiter(LimitScope.TOPIC, "t", timers, holding)
    limiter.set(Limit(3, 0), "topic", now)
    taker = Taker(limiter, 5)
    taker.resume(now)
    assert holding == {limiter}
    now = run(timers, now, 1)
    assert not holding
    taker.left = 5
    taker.resume(now)
    assert holding == {limiter}
    limiter.forget(taker, now)
    assert not holding
