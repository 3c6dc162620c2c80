"""Redelivery counts, requested in pages."""

from collections.abc import Mapping

from pulsarbox.cli.messages.loops.start_position import At, RedeliveryCounts

COUNTS = {(1, entry): entry for entry in range(1, 8)} | {(4, 0): 9}
PAGE = 3


def test_counts_are_requested_in_the_order_of_the_entries() -> None:
    asked: list[At] = []

    def page(after: At) -> Mapping[At, int]:
        asked.append(after)
        return dict([each for each in COUNTS.items() if each[0] > after][:PAGE])

    counts = RedeliveryCounts(page)
    entries = [(1, entry) for entry in range(10)] + [(2, 0), (4, 0), (4, 0), (4, 1), (5, 0)]
    assert [counts.of(each) for each in entries] == [COUNTS.get(each, 0) for each in entries]
    assert asked == [(-1, -1), (1, 3), (1, 6), (4, 0)]


def test_a_broker_without_counts_is_asked_once() -> None:
    asked: list[At] = []

    def page(after: At) -> Mapping[At, int]:
        asked.append(after)
        return {}

    counts = RedeliveryCounts(page)
    assert [counts.of((1, entry)) for entry in range(3)] == [0, 0, 0]
    assert len(asked) == 1
