"""Rates of the last seconds and trends, computed from sampled counters."""

import pytest

from pulsarbox.broker.stats.current_rate import TREND_LENGTH, TREND_SECONDS, CurrentRate, Trend


def test_what_never_changes_has_no_rate() -> None:
    pace = CurrentRate(100.0, 5, 7)
    assert not pace.sample(101.0, 5, 7)
    assert (pace.first, pace.second) == (0.0, 0.0)


@pytest.mark.parametrize("every", [0.5, 1.0, 4.0])
def test_a_steady_rate_is_told_as_it_is_however_often_it_is_looked(every: float) -> None:
    pace, at = CurrentRate(0.0, 0, 1000), 0.0
    for _ in range(20):
        at += every
        pace.sample(at, round(at * 100), 1000 - round(at * 10))
        assert pace.first == pytest.approx(100, rel=0.02)
        assert pace.second == pytest.approx(-10, rel=0.1)


def test_what_has_stopped_is_at_rest_soon() -> None:
    pace = CurrentRate(0.0, 0, 0)
    for second in range(1, 11):
        pace.sample(float(second), second * 100, 0)
    for second in range(11, 16):
        pace.sample(float(second), 1000, 0)
    assert pace.first == 0.0
    assert not pace.sample(16.0, 1000, 0)


def test_a_long_rest_does_not_dilute_what_comes_after_it() -> None:
    pace = CurrentRate(0.0, 0, 0)
    for second in range(1, 100):
        pace.sample(float(second), 0, 0)
    pace.sample(100.0, 50, 0)
    assert pace.first == 50.0


def test_two_looks_in_one_instant() -> None:
    pace = CurrentRate(1.0, 0, 0)
    assert pace.sample(1.0, 5, 0)
    assert pace.first == 0.0


def test_a_trend_is_what_it_was_before_anything_changed() -> None:
    trend = Trend(0.0, 3)
    trend.sample(10.0, 3)
    assert trend.values() == [3] * TREND_LENGTH


def test_a_trend_has_the_last_values_in_order_and_no_more() -> None:
    trend = Trend(0.0, 0)
    for i in range(1, 31):
        trend.sample(i * TREND_SECONDS, i)
    assert trend.values() == list(range(11, 31))


def test_a_trend_is_not_pressed_together_by_whoever_looks_more_often() -> None:
    trend = Trend(0.0, 0)
    for i in range(1, 101):
        trend.sample(i * TREND_SECONDS / 10, i)
    assert [value for value in trend.values() if value] == [1, 11, 21, 31, 41, 51, 61, 71, 81, 91]
