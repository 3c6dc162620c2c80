"""Estimated time to drain a backlog."""

import pytest

from pulsarbox.broker.stats.drain_estimate import NEVER, drain_time, longest, seconds_to_drain


@pytest.mark.parametrize(
    ("backlog", "acknowledged", "published", "seconds"),
    [
        (0, 0.0, 10.0, 0),
        (100, 0.0, 0.0, NEVER),
        (100, 10.0, 10.0, NEVER),
        (100, 10.0, 11.0, NEVER),
        (100, 10.0, 0.0, 10),
        (100, 10.0, 8.0, 50),
        (1, 1000.0, 0.0, 1),
        (10**9, 1e-3, 0.0, NEVER),
    ],
)
def test_seconds(backlog: int, acknowledged: float, published: float, seconds: int) -> None:
    assert seconds_to_drain(backlog, acknowledged, published) == seconds


def test_partitions_are_drained_side_by_side() -> None:
    assert (longest(3, 5), longest(5, 3), longest(0, 0), longest(NEVER, 5), longest(5, NEVER)) == (5, 5, 0, -1, -1)


@pytest.mark.parametrize(
    ("backlog", "change", "seconds"),
    [(0, 5.0, 0.0), (10, 0.0, None), (10, 2.0, None), (10, -2.0, 5.0), (10**9, -1e-3, None), (3, -6.0, 0.5)],
)
def test_the_time_that_a_backlog_takes(backlog: int, change: float, seconds: float | None) -> None:
    assert drain_time(backlog, change) == seconds
