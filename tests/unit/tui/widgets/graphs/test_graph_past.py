"""The past of a graph: recorded samples first, then live ones, as values in even steps."""

from pulsarbox.tui.widgets.graphs.graph_past import SECONDS, STEP, GraphPast


def past(*samples: tuple[float, float]) -> GraphPast:
    found = GraphPast(("rate", "backlog"))
    for seconds, value in samples:
        found.add(round(seconds * 1000), {"rate": value, "backlog": 10 * value})
    return found


def test_each_value_holds_until_the_next() -> None:
    found = past((100, 1.0), (104, 2.0), (105, 3.0), (112, 4.0))
    assert STEP == 2.0
    assert found.series("rate") == [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 4.0]
    assert found.series("backlog")[-1] == 40.0


def test_without_samples_or_with_one() -> None:
    assert past().series("rate") == []
    assert past((5, 7.0)).series("rate") == [7.0]


def test_only_the_time_of_the_graph_is_kept() -> None:
    found = past(*((second, float(second)) for second in range(3 * SECONDS)))
    series = found.series("rate")
    assert len(series) == SECONDS / STEP + 1
    assert (series[0], series[-1]) == (2 * SECONDS - 1, 3 * SECONDS - 1)
    assert len(found._samples) <= SECONDS + 2


def test_a_sample_that_is_not_later_is_left_out() -> None:
    assert past((10, 1.0), (10, 2.0), (8, 3.0)).series("rate") == [1.0]


def test_history_comes_before_what_was_seen_live() -> None:
    found = past((108, 9.0))
    found.replace([(100_000, {"rate": 1.0}), (104_000, {"rate": 2.0})])
    assert found.series("rate") == [1.0, 1.0, 2.0, 2.0, 9.0]
    assert found.series("backlog")[0] is None
    found.replace([(200_000, {"rate": 5.0})])
    assert found.series("rate") == [5.0], "another time is shown"


def test_history_goes_on_over_samples_of_other_quantities() -> None:
    found = past((108, 9.0))
    found._samples.insert(0, (106_000, (None, 5.0)))
    found.replace([(104_000, {"rate": 2.0, "backlog": 1.0})])
    assert found.series("rate") == [2.0, 2.0, 9.0]
    assert found.series("backlog") == [1.0, 5.0, 90.0]
