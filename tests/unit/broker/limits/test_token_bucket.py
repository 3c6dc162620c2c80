"""The token bucket: the examples of Pulsar's throttling documentation, and its rate over many periods."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pulsarbox.broker.limits.token_bucket import Limit, TokenBucket
from tests.tools.campaigns import short

PERIODS = 1000


def left(step: TokenBucket, at: int) -> int:
    step.refill(at)
    return max(step.left_messages, 0)


def test_eleven_of_ten_leave_nine() -> None:
    step = TokenBucket(Limit(10, 0), 0)
    assert left(step, 0) == 10
    step.consume(11, 0)
    assert left(step, 999) == 0
    assert left(step, 1000) == 9


def test_thirty_of_ten_leave_nothing_for_two_periods() -> None:
    step = TokenBucket(Limit(10, 0), 0)
    step.consume(30, 0)
    assert step.free_at() == 3000
    assert [left(step, at) for at in (0, 1000, 2000, 2999, 3000, 4000)] == [0, 0, 0, 0, 10, 10]


def test_what_a_period_leaves_over_is_not_kept() -> None:
    step = TokenBucket(Limit(10, 0), 0)
    step.consume(3, 0)
    assert left(step, 1000) == 10
    assert left(step, 60_000) == 10


def test_messages_and_bytes_hold_at_once() -> None:
    step = TokenBucket(Limit(10, 100), 0)
    step.consume(1, 250)
    assert step.used_up
    assert step.free_at() == 2000
    step.refill(2000)
    assert (step.left_messages, step.left_bytes, step.used_up) == (10, 50, False)
    step.consume(10, 1)
    assert step.used_up
    assert step.free_at() == 3000


def test_a_limit_of_bytes_alone_counts_no_messages() -> None:
    step = TokenBucket(Limit(0, 100), 0)
    step.consume(1000, 99)
    assert not step.used_up
    step.consume(1000, 1)
    assert step.used_up


def test_setting_a_limit_anew_gives_nothing_away() -> None:
    step = TokenBucket(Limit(10, 0), 0)
    step.consume(10, 0)
    step.change(Limit(10, 0), 500)
    assert step.used_up
    step.change(Limit(15, 0), 500)
    assert left(step, 500) == 5
    step.change(Limit(4, 0), 500)
    assert step.used_up
    assert step.free_at() == 2000, "six more than four went"
    assert left(step, 2000) == 2
    assert left(step, 3000) == 4


def test_a_limit_of_bytes_that_comes_in_addition_starts_full() -> None:
    step = TokenBucket(Limit(10, 0), 0)
    step.consume(10, 5000)
    step.change(Limit(10, 100), 10)
    assert step.left_bytes == 100


def test_another_period_holds_at_once() -> None:
    step = TokenBucket(Limit(10, 0, 60_000), 0)
    step.consume(10, 0)
    step.change(Limit(10, 0, 1000), 30_000)
    assert left(step, 30_999) == 0
    assert left(step, 31_000) == 10
    step.consume(10, 0)
    step.change(Limit(10, 0, 60_000), 31_500)
    assert left(step, 90_999) == 0
    assert left(step, 91_000) == 10


def test_a_clock_that_goes_back_begins_a_period() -> None:
    step = TokenBucket(Limit(10, 0), 100_000)
    step.consume(10, 0)
    assert left(step, 50_000) == 0
    assert left(step, 50_999) == 0
    assert left(step, 51_000) == 10


class Published:
    """Running totals, and a token bucket that counts them."""

    def __init__(self, limit: int, period_ms: int = 1000) -> None:
        self.total = 0
        self.step = TokenBucket(Limit(limit, 0, period_ms), 0, lambda: (self.total, 0))

    def publish(self, count: int, at: int) -> None:
        self.total += count
        self.step.count(at)


def test_what_comes_on_top() -> None:
    published = Published(10)
    step = published.step
    step.consume(10, 0)
    published.publish(50, 400)
    assert left(step, 999) == 0
    assert left(step, 1000) == 60
    step.consume(100, 0)
    published.publish(20, 1500)
    assert left(step, 2000) == 0, "40 too many, 30 of which are paid off"
    assert left(step, 3000) == 0
    assert left(step, 4000) == 10


@pytest.mark.parametrize("idle", [2, 3, 8, 60, 86_400])
def test_what_was_published_periods_ago_is_no_burst(idle: int) -> None:
    published = Published(10)
    published.publish(1000, 100)
    assert left(published.step, idle * 1000) == 10
    published.publish(7, idle * 1000 + 10)
    assert left(published.step, (idle + 1) * 1000) == 17
    assert left(published.step, (idle + 2) * 1000) == 10


def test_what_was_published_periods_ago_pays_off_debts_of_its_own_period_only() -> None:
    published = Published(10)
    published.step.consume(100, 0)
    published.publish(50, 100)
    assert left(published.step, 3000) == 0
    assert published.step.left_messages == -10, "90 too many, 60 + 10 + 10 of which are paid off"
    assert left(published.step, 5000) == 10


Moment = st.tuples(
    st.integers(0, 5000) | st.just(8_000) | st.integers(0, 86_400_000), st.integers(0, 300), st.booleans()
)


@given(st.integers(1, 50), st.sampled_from([1000, 5000, 60_000]), st.lists(Moment, max_size=40))
def test_each_period_adds_what_was_published_in_the_one_before(
    limit: int, period: int, moments: list[tuple[int, int, bool]]
) -> None:
    published = Published(limit, period)
    at, wanted, arrived, start = 0, limit, 0, 0  # tokens left, and messages published since ``start``
    for gap, count, publishes in moments:
        at += gap
        while at - start >= period:
            if not arrived and wanted <= limit:  # skip idle periods
                rest = (at - start) // period
                wanted, start = min(wanted + rest * limit, limit), start + rest * period
                continue
            wanted = min(wanted + limit + arrived, limit + arrived)
            arrived, start = 0, start + period
        if publishes:
            published.publish(count, at)
            arrived += count
        else:
            published.step.refill(at)
            published.step.consume(count, 0)
            wanted -= count
        published.step.refill(at)
        assert published.step.left_messages == wanted


def test_another_limit_gives_away_nothing_of_what_came_on_top() -> None:
    published = [0]

    def more() -> tuple[int, int]:
        return published[0], 0

    for taken, still, left in ((0, True, 105), (0, False, 5), (104, True, 1), (104, False, 1), (112, False, -7)):
        published[0] = 0
        step = TokenBucket(Limit(10, 0), 0, more)
        published[0] = 100
        step.count(0)
        step.refill(1000)
        step.consume(taken, 0)
        step.change(Limit(5, 0), 1000, more if still else None)
        assert step.left_messages == left


def most(step: TokenBucket, batch: int, *, precise: bool, by_entry: bool) -> int:
    """Return the messages dispatched in one period from an endless backlog of batches, with reads as in dispatchers."""
    sent = 0
    while not step.used_up:
        entries = min(step.left_messages, 100)
        if precise and not by_entry:
            entries = min(-(-step.left_messages // batch), 100)
        counted = entries if by_entry else entries * batch
        step.consume(counted, 0)
        sent += counted
    return sent


@pytest.mark.parametrize("batch", short([1, 100, 1000], 1))
@pytest.mark.parametrize("rate", short([10, 1000, 100_000], 2))
@pytest.mark.parametrize("by_entry", [False, True])
def test_over_a_thousand_periods_it_is_the_limit_or_one_entry_more(rate: int, batch: int, *, by_entry: bool) -> None:
    step = TokenBucket(Limit(rate, 0), 0)
    total, entry = 0, 1 if by_entry else batch
    for period in range(PERIODS):
        step.refill(period * 1000)
        total += most(step, batch, precise=True, by_entry=by_entry)
        wanted = rate * (period + 1)
        assert wanted <= total < wanted + entry
    assert abs(total - rate * PERIODS) <= max(entry, rate * PERIODS * 0.02)


@pytest.mark.parametrize("batch", short([1, 100, 1000], 1))
@pytest.mark.parametrize("rate", short([10, 1000, 100_000], 2))
def test_without_precise_control_a_thousand_periods_are_the_limit_too(rate: int, batch: int) -> None:
    step = TokenBucket(Limit(rate, 0), 0)
    total = 0
    for period in range(PERIODS):
        step.refill(period * 1000)
        total += most(step, batch, precise=False, by_entry=False)
        assert total <= rate * (period + 1) + min(rate, 100) * batch
    assert abs(total - rate * PERIODS) <= max(batch, rate * PERIODS * 0.02)


Taken = st.tuples(st.integers(0, 5000), st.integers(1, 3000), st.integers(1, 100_000))


@given(st.integers(1, 2000), st.integers(0, 50_000), st.integers(1, 10_000), st.lists(Taken, max_size=200))
@example(10, 0, 1000, [(0, 30, 1), (1000, 30, 1), (1000, 30, 1), (1000, 30, 1)])
def test_never_more_than_the_limit_and_the_last(
    messages: int, size: int, period: int, takings: list[tuple[int, int, int]]
) -> None:
    step = TokenBucket(Limit(messages, size, period), 0)
    at = total_messages = total_bytes = 0
    for wait, some_messages, some_bytes in takings:
        at += wait
        step.refill(at)
        if step.used_up:
            free = step.free_at()
            assert free > at
            step.refill(free - 1)
            assert step.used_up
            at = free
            step.refill(at)
            assert not step.used_up, "free_at is the very instant"
        allowed = at // period + 1
        assert total_messages < messages * allowed
        if size:
            assert total_bytes < size * allowed
        step.consume(some_messages, some_bytes)
        total_messages += some_messages
        total_bytes += some_bytes


@given(st.integers(1, 100), st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 100)), max_size=100))
def test_changing_back_and_forth_gives_nothing_away(limit: int, changes: list[tuple[int, int]]) -> None:
    changed, plain = TokenBucket(Limit(limit, 0), 0), TokenBucket(Limit(limit, 0), 0)
    at = 0
    for wait, other in changes:
        at += wait
        plain.refill(at)
        changed.refill(at)
        plain.consume(other, 0)
        changed.consume(other, 0)
        changed.change(Limit(other, 0), at)
        changed.change(Limit(limit, 0), at)
        assert changed.left_messages == plain.left_messages
