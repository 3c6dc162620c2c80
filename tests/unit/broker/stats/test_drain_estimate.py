"""Until when a backlog is gone."""

import pytest

from pulsarbox.broker.stats.drain_estimate import NEVER, longest, seconds_to_drain


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
    ],
)
def test_seconds(backlog: int, acknowledged: float, published: float, seconds: int) -> None:
    assert seconds_to_drain(backlog, acknowledged, published) == seconds


def test_partitions_are_drained_side_by_side() -> None:
    assert (longest(3, 5), longest(5, 3), longest(0, 0), longest(NEVER, 5), longest(5, NEVER)) == (5, 5, 0, -1, -1)
