"""Numbers for narrow columns."""

import pytest
from rich.cells import cell_len
from rich.style import Style

from pulsarbox.tui.widgets import numbers as figures
from pulsarbox.tui.widgets.bars import Part, fitted
from pulsarbox.tui.widgets.graphs.graph import Graph, area, resampled, shade, shades, window_of, within


def test_a_change_within_a_sentence() -> None:
    told = [figures.change_in_words(value) for value in (12.5, -0.5, 0, None)]
    assert told == ["growing by 12/s", "falling by 0.5/s", "steady", ""]


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
        ("milliseconds", 9_996, "10.0 s"),
        ("milliseconds", 12_345, "12.3 s"),
        ("milliseconds", 59_970, "1m00s"),
        ("milliseconds", 91_000, "1m31s"),
        ("nanoseconds", 1300, "1.3 µs"),
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
    assert figures.trend([5, 6, 7, 8], 4) == "  ⣠⣴"
    assert figures.trend([90, 100], 2) == " ⣴", "what hardly moves does not look wild"
    assert figures.trend([3, 3], 4) == "   ⣀"
    assert figures.trend([1, 2, 3, None], 3) == " ⣤⣆"
    assert figures.trend([9, 9, 9, 1, 2, 3], 2) == figures.trend([9, 1, 2, 3], 2), "the last ones"
    assert figures.trend(None, 3) == "   "


def test_trends_of_neighboring_rows_stay_apart() -> None:
    upper = 0x01 | 0x08
    for values in ([0, 5, 9], [7] * 20, range(20)):
        assert not any((ord(each) - 0x2800) & upper for each in figures.trend(list(values), 10).strip())


def test_when_a_backlog_is_gone() -> None:
    assert figures.drain({"backlog": 0, "drain": None}) == "-"
    assert figures.drain({"backlog": 9, "drain": 72.0}) == "~1m12s"
    assert figures.drain({"backlog": 9, "drain": 72.0, "change": -1.0}) == "~1m12s"
    assert figures.drain({"backlog": 9, "drain": 72.0, "change": 1.0}) == "never", "it grows"
    assert figures.drain({"backlog": 9, "drain": None, "delayed": 3}) == "never"
    assert figures.drain({"backlog": 9, "drain": None, "delayed": 9}) == "when due"
    assert figures.drain({"backlog": 9, "drain": None, "outRate": 4.5}) == "now", "no more than two seconds' worth"
    assert figures.drain_in_words({"backlog": 0, "drain": None}) == ""
    assert figures.drain_in_words({"backlog": 9, "drain": 72.0}) == ", drained in ~1m12s"
    assert figures.drain_in_words({"backlog": 9, "drain": None}) == ", never drained"


def test_an_area_fills_from_below_and_the_newest_is_on_the_right() -> None:
    assert area([0, 0, 8, 8], 2, 2) == ["\u2800\u28ff", "\u2800\u28ff"]
    assert area([8, 4], 1, 2) == ["\u2847", "\u28ff"]
    assert area([8], 2, 1) == ["\u28ff\u28ff"], "few values take all the width"
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
    assert shown([("世界" * 20, "plain", "")], 20).endswith("…  now")


def test_a_graph_is_drawn_anew_where_its_values_have_changed() -> None:
    graph, past = Graph("in", "in/s", "rate", "primary"), [1.0, 2.0]
    assert graph.show(past, 2.0)
    assert not graph.show(past, 2.0)
    past.append(2.0)  # the same list object, with a new value
    assert graph.show(past, 2.0)
    assert not graph.show(tuple(past), 2.0)


@pytest.mark.parametrize("height", [2, 3, 4, 9])
def test_the_lines_of_a_graph_are_as_wide_as_it_is(height: int) -> None:
    graph = Graph("in", "Published a second", "rate", "primary", "/s")
    for values in ([], [0.0, 7.0, 3.0]):
        graph.show(values, 3.0)
        for width in (1, 2, 10, 30, 80):
            for y in range(height):
                line = graph.line(y, width, height, lambda look: Style())
                assert sum(cell_len(segment.text) for segment in line) == width


def drawn(graph: Graph, width: int, height: int, end: str = "now") -> list[str]:
    lines = [graph.line(y, width, height, lambda look: Style(), end) for y in range(height)]
    return ["".join(segment.text for segment in line) for line in lines]


def test_a_graph_has_its_name_value_and_both_axes_in_its_frame() -> None:
    graph = Graph("in", "Published", "rate", "primary", "/s")
    graph.show([0.0] * 598 + [12_000.0, 24_000.0], 24_000.0)
    lines = drawn(graph, 60, 7)
    assert lines[0].startswith("╭ Published 24.0k/s ──") and lines[0].endswith("─╮")
    assert [line[1:9] for line in lines[1:-1]] == ["  24.0k ", " " * 8, "  12.0k ", " " * 8, "      0 "]
    assert lines[-1].startswith("╰ -10 min ─") and " -5 min " in lines[-1] and lines[-1].endswith("─ now ╯")
    assert lines[-1].index(" -5 min ") == 30, "below the middle of the values, which begin behind the axis"
    assert drawn(graph, 60, 7, "02:13:00")[-1].endswith("─ 02:13:00 ╯"), "in the past"


def test_the_value_axis_has_room_for_counts_and_latencies() -> None:
    for form, value, text in (("count", 123_456.0, "123,456"), ("milliseconds", 98.6, "98.6 ms")):
        graph = Graph("key", "Name", form, "primary")
        graph.show([value], value)
        assert drawn(graph, 60, 7)[1].startswith(f"│{text} ")


def test_a_small_graph_has_both_axes_and_no_half_words() -> None:
    graph = Graph("p99", "p99 latency", "milliseconds", "secondary")
    graph.show([8.4], 8.4)
    first, second, *_, last = drawn(graph, 20, 5)
    assert first == "╭ p99 8.4 ms ──────╮"
    assert second.startswith("│8.4 ms ") and last == "╰ -15 s ────── now ╯"


def test_the_time_axis_is_as_long_as_what_is_known() -> None:
    assert [window_of(count, 1.0) for count in (1, 17, 60, 61, 300, 301, 5000)] == [15, 30, 60, 60, 300, 300, 600]
    assert window_of(60, 10.0) == 600
    assert within([1.0, 2.0], 30.0) == [1.0, 2.0], "history has a value in each step"
    assert within([1.0, 2.0], 1.0) == [None] * 14 + [1.0, 2.0]
    assert within([float(at) for at in range(700)], 1.0)[0] == 99.0
    assert resampled([1.0, 2.0], 6) == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    assert resampled([], 3) == [0.0, 0.0, 0.0]


def test_a_graph_is_brighter_above() -> None:
    looks = [shade("primary", height, 5) for height in range(5)]
    assert looks == [f"primary@{at}" for at in range(5)] and set(looks) <= set(shades("primary"))
    assert shade("primary", 0, 1) == "primary@4"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "2 h"), (129_599, "36 h"),
     (129_600, "2 days"), (8_640_000, "100 days")],
)  # fmt: skip
def test_a_span_is_told_in_one_unit(value: float | None, text: str) -> None:
    assert figures.span(value) == text


def test_things_are_counted_with_their_plural() -> None:
    assert figures.counted(1, "message waits", "messages wait") == "1 message waits"
    assert figures.counted(2, "message waits", "messages wait") == "2 messages wait"
    assert figures.counted(0, "message") == "0 messages"
