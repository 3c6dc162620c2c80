"""When reading stops: the lower of two counts."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsarbox.cli.common.position_options import End, Until
from pulsarbox.cli.messages.loops.stop_condition import StopCondition


@pytest.mark.parametrize(
    ("until", "limit", "messages"),
    [
        (Until(End.COUNT, 5), 1, 1),
        (Until(End.COUNT, 1), 5, 1),
        (Until(End.COUNT, 5), None, 5),
        (Until(), 3, 3),
    ],
)
def test_the_lower_of_two_counts_ends_reading(until: Until, limit: int | None, messages: int) -> None:
    consumer = cast(Any, SimpleNamespace(parts={}, ended=False))
    stop = StopCondition(consumer, until, limit)
    received = cast(Any, [SimpleNamespace() for _ in range(10)])
    assert len(stop.cut(received)) == messages
    assert stop.is_reached()
