"""Rates: ``broker.stats.rate_window``."""

from pulsarbox.broker.stats.rate_window import RateWindow
from pulsarbox.clock import Now


def at(seconds: float) -> Now:
    return Now(seconds, 0)


def test_a_young_rate_is_that_since_the_start() -> None:
    meter = RateWindow(100.0, 2)
    assert meter.rates((0, 0), at(100.0)) == (0.0, 0.0)
    assert meter.rates((5, 50), at(100.5)) == (5.0, 50.0), "less than a second counts as one"
    assert meter.rates((20, 200), at(110.0)) == (2.0, 20.0)
    assert meter.rates((120, 0), at(160.0)) == (2.0, 0.0)


def test_an_old_rate_is_that_of_the_last_minute_as_far_as_somebody_looked() -> None:
    meter = RateWindow(0.0, 1)
    for seconds in range(0, 200, 5):
        meter.rates((10 * seconds,), at(seconds))
    assert meter.rates((1950,), at(200.0)) == (550 / 60,)
    assert meter.rates((1950,), at(230.0)) == (250 / 60,)
    assert meter.rates((1950,), at(300.0)) == (0.0,)


def test_what_it_keeps_does_not_grow() -> None:
    meter = RateWindow(0.0, 1)
    for seconds in range(10_000):
        meter.rates((seconds,), at(seconds / 7))
    assert len(meter._samples) <= 8
