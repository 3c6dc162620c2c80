"""Numbers for narrow columns."""

import pytest
from rich.cells import cell_len
from rich.style import Style

from pulsarbox.tui.widgets import numbers as figures
from pulsarbox.tui.widgets.bars import Part, fitted
from pulsarbox.tui.widgets.graph import Graph, area, resampled


def test_a_change_within_a_sentence() -> None:
    told = [figures.change_in_words(value) for value in (12.5, -0.5, 0, None)]
    assert told == ["▲ +12 a second", "▼ -0.5 a second", "steady", "-"]


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("count", None, "-"),
        ("count", 0, "0"),
        ("count", 999_999, "999,999"),
        ("count", 1_234_567, "1.23M"),
        ("rate", 0.04, "0"),
        ("rate", 0.4, "0.4"),
        ("rate", 87.4, "87"),
        ("rate", 12_345, "12.3k"),
        ("rate", 999_999, "1.00M"),
        ("change", 12.5, "▲ +12"),
        ("change", -0.5, "▼ -0.5"),
        ("change", 0, "="),
        ("size", 12, "12 B"),
        ("size", 2048, "2.00 KiB"),
        ("size", 5 << 30, "5.00 GiB"),
        ("seconds", 0.31, "0.3s"),
        ("seconds", 59.6, "1m00s"),
        ("seconds", 200, "3m20s"),
        ("seconds", 18_120, "5h02m"),
        ("seconds", 12 * 86_400, "12d"),
        ("milliseconds", 0.42, "0.42 ms"),
        ("milliseconds", 1200, "1.20 s"),
        ("nanoseconds", 1300, "1.3 us"),
        ("percent", 0.61, "61%"),
        ("percent", 70, ">999%"),
        ("moment", 0, "-"),
        ("moment", 1e30, "no time"),
        ("instant", 1e30, f"{1e30:.0f} (no time)"),
    ],
)
def test_a_value_is_as_short_as_can_be(form: str, value: float | None, text: str) -> None:
    assert getattr(figures, form)(value) == text


def test_a_bar_has_its_width_and_says_more_with_more() -> None:
    bars = [figures.bar(share, 10) for share in (0, 0.25, 0.5, 1, 7)]
    assert [len(bar) for bar in bars] == [10] * 5
    assert bars == ["··········", "━━╸·······"[:10], "━━━━━·····", "━━━━━━━━━━", "━━━━━━━━━━"]


def test_a_trend_is_to_the_right_and_between_its_own_extremes() -> None:
    assert figures.trend([5, 6, 7, 8], 6) == "  ▁▃▆█"
    assert figures.trend([90, 100], 2) == "▆█", "what hardly moves does not look wild"
    assert figures.trend([3, 3], 4) == "  ▁▁"
    assert figures.trend([1, 2, 3, None], 3)[-1] == "▁"
    assert figures.trend(None, 3) == "   "


def test_when_a_backlog_is_gone() -> None:
    assert figures.drain({"backlog": 0, "drain": None}) == "-"
    assert figures.drain({"backlog": 9, "drain": 72.0}) == "~1m12s"
    assert figures.drain({"backlog": 9, "drain": None, "delayed": 3}) == "never"
    assert figures.drain({"backlog": 9, "drain": None, "delayed": 9}) == "when due"
    assert figures.drain({"backlog": 9, "drain": None, "outRate": 4.5}) == "now", "no more than two seconds' worth"


def test_an_area_fills_from_below_and_the_newest_is_on_the_right() -> None:
    assert area([0, 0, 8, 8], 2, 2) == ["\u2800\u28ff", "\u2800\u28ff"]
    assert area([8, 4], 1, 2) == ["\u2847", "\u28ff"]
    assert area([1, 1000], 1, 1) == ["\u28f8"], "what is there at all has a dot"
    assert area([], 3, 1) == ["\u2800\u2800\u2800"]


def test_more_values_than_dots_keep_their_peaks() -> None:
    values = [0.0] * 1000
    values[501] = 7.0
    points = resampled(values, 20)
    assert len(points) == 20 and max(points) == 7.0


def test_a_line_that_is_too_long_is_cut_where_it_still_says_something() -> None:
    numbers = [("topics ", "dim", ""), ("12  ", "plain", ""), ("disk ", "dim", ""), ("1.86 GiB  ", "plain", "")]

    def shown(left: list[Part], width: int) -> str:
        texts = [text for text, _, _ in fitted(left, [("now", "dim", "")], width)]
        assert cell_len("".join(texts)) == width
        return "".join(texts)

    assert shown(numbers, 30) == "topics 12  disk 1.86 GiB   now"
    assert shown(numbers, 20) == "topics 12        now"
    assert shown([("q", "key", ""), (" quit  ", "dim", "")], 8) == "     now"
    assert shown([("世界" * 20, "plain", "")], 20).endswith("…now")


def test_a_graph_is_drawn_anew_where_its_values_have_changed() -> None:
    graph, past = Graph("in", "in/s", "rate", "primary"), [1.0, 2.0]
    assert graph.show(past, 2.0)
    assert not graph.show(past, 2.0)
    past.append(2.0)  # the same list object, with a new value
    assert graph.show(past, 2.0)
    assert not graph.show(tuple(past), 2.0)


def test_the_lines_of_a_graph_are_as_wide_as_it_is() -> None:
    graph = Graph("in", "published a second", "rate", "primary")
    graph.show([0.0, 7.0, 3.0], 3.0)
    for width in (1, 10, 30, 80):
        for y in range(4):
            line = graph.line(y, width, 4, lambda look: Style())
            assert sum(cell_len(segment.text) for segment in line) == width
