"""Time series of graphs: the last ten minutes, and receipt latencies per second."""

from math import isnan, nan

from pulsarbox.broker.stats.commit_stats import FINE_MS
from pulsarbox.broker.stats.time_series import LENGTH, Series, Waits


def test_a_series_has_what_came_in_its_order() -> None:
    series = Series(["a", "b"])
    assert series.values() == {"a": [], "b": []}
    series.add(1.0, nan)
    series.add(2.0, 5.0)
    assert series.values() == {"a": [1.0, 2.0], "b": [None, 5.0]}


def test_a_series_forgets_what_is_older_than_ten_minutes() -> None:
    series = Series(["a"])
    for i in range(LENGTH + 25):
        series.add(float(i))
    assert series.values()["a"] == [float(i) for i in range(25, LENGTH + 25)]


def test_waits_are_those_since_the_last_look() -> None:
    waits, counts = Waits(), [0] * (len(FINE_MS) + 1)
    assert isnan(waits.quantile(counts, 0.99))
    counts[3] += 98
    counts[7] += 2
    assert waits.quantile(counts, 0.99) == FINE_MS[7]
    assert isnan(waits.quantile(counts, 0.99)), "nothing came since"
    counts[5] += 1
    assert waits.quantile(counts, 0.99) == FINE_MS[5]
    counts[-1] += 1
    assert waits.quantile(counts, 0.99) == FINE_MS[-1], "what took longer than anything is told as the longest"
