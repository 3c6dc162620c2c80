"""Panels: texts in borders."""

import pytest
from textual.color import Color
from textual.theme import Theme

from pulsarbox.tui.themes import ANSI_DARK, OURS
from pulsarbox.tui.widgets.box_label import contrast
from pulsarbox.tui.widgets.panel import beginning, fact, fitting_facts, in_a_row, in_columns, labeled, lines_of
from tests.unit.tui.legibility import least_of
from tests.unit.tui.screens.maps.test_key_bar import COLORS, CONSOLE

FACTS = [fact("commits", "12"), fact("failed commits", "3", "bad"), fact("size", "1.00 GiB", "warn")]


@pytest.mark.parametrize("width", [20, 30, 60])
def test_labels_are_left_and_values_right(width: int) -> None:
    lines = in_columns(FACTS, width, COLORS).plain.split("\n")
    assert len({len(line) for line in lines}) == 1 and len(lines[0]) <= max(width, 26)
    assert [line.split()[0] for line in lines] == ["commits", "failed", "size"]
    assert lines[1].endswith("  ! 3") and lines[2].endswith("  ▲ 1.00 GiB")


def test_a_panel_wider_than_its_facts_keeps_labels_and_values_together() -> None:
    assert {len(line) for line in in_columns(FACTS, 90, COLORS, 40).plain.split("\n")} == {40}


@pytest.mark.parametrize("width", [22, 40, 80])
def test_facts_in_a_row_begin_another_line_where_they_do_not_fit(width: int) -> None:
    text = in_a_row(FACTS, width, COLORS)
    assert all(len(line) <= width for line in text.plain.split("\n"))
    assert "   ".join(text.plain.split("\n")) == "commits 12   failed commits ! 3   size ▲ 1.00 GiB"
    assert lines_of(beginning(text, 1)) == 1 and lines_of("") == 0 and lines_of("a\nb\n") == 2


@pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
def test_labels_are_fainter_than_values_and_legible(theme: Theme) -> None:
    colors = theme.to_color_system().generate() | theme.variables
    ground, ink = (Color.parse(colors[name]) for name in ("background", "foreground"))
    for text in (in_columns(FACTS, 40, colors), in_a_row(FACTS, 40, colors), labeled(["size  1"], colors)):
        label = text.get_style_at_offset(CONSOLE, 0).color
        assert label is not None
        found = contrast(Color.from_rich_color(label), ground)
        assert least_of(theme.name) <= found < contrast(ink, ground)


def test_labels_are_dimmed_in_a_theme_of_the_terminals_colors() -> None:
    colors = ANSI_DARK.to_color_system().generate() | ANSI_DARK.variables
    text = in_a_row(FACTS, 40, colors)
    assert text.get_style_at_offset(CONSOLE, 0).dim
    assert not text.get_style_at_offset(CONSOLE, text.plain.index("12")).dim


@pytest.mark.parametrize(("room", "count"), [(4, 0), (5, 1), (13, 1), (14, 2), (21, 2), (22, 3), (80, 3)])
def test_facts_without_room_are_left_out_whole(room: int, count: int) -> None:
    assert fitting_facts(["12345", "123456", "漢字5"], room) == ["12345", "123456", "漢字5"][:count]
    assert fitting_facts([], room) == []
