"""Colors of our themes: distinct and legible on each background on which they are drawn."""

from itertools import product
from typing import Final

import pytest
from textual.color import Color
from textual.style import Style
from textual.theme import BUILTIN_THEMES, Theme

from pulsarbox.tui.themes import CONTRAST, DARK, LIGHT, OURS, REPLACED, edges, grays, grounds, muted
from pulsarbox.tui.widgets.box_label import contrast, label_of
from pulsarbox.tui.widgets.dialogs.dialog_keys import MUTED_OF_OPTION
from pulsarbox.tui.widgets.graphs.graph import shades
from tests.unit.tui.legibility import distance, least_of

SEVERITIES: Final = ("text-success", "text-warning", "text-error")
INKS: Final = (*SEVERITIES, "text-primary", "text-secondary", "text-accent", "accent")
DISTINCT: Final = 30.0
"""Least difference of colors that mean something else."""
APART: Final = 6.0
"""Least difference of the backgrounds of lines one below the other."""
VISIBLE: Final = 1.4
"""Least contrast of the background of the cursor, the current tab and the focused button to the one around them."""

GRAYS: Final = (
    *("edge", "edge-focus", "field-edge", "field-edge-focus"),
    *("input-selection-background", "input-selection-foreground"),
)
"""Colors that are grays with NO_COLOR, whatever the theme."""

our_themes = pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)


def variables_of(theme: Theme) -> dict[str, str]:
    found = theme.to_color_system().generate() | theme.variables
    found |= edges(found, theme, None)
    return found | grounds(found) | muted(found)


def ratio(variables: dict[str, str], ink: str, ground: str) -> float:
    return contrast(Color.parse(variables[ink]), Color.parse(variables[ground]))


@our_themes
def test_severities_the_accent_and_the_primary_color_are_distinct(theme: Theme) -> None:
    variables = variables_of(theme)
    for accent, other in product(
        ("accent", "text-accent"), ("primary", "warning", "error", "success", "text-primary", *SEVERITIES)
    ):
        assert distance(variables[accent], variables[other]) >= DISTINCT, (accent, other)
    for ink in INKS:
        assert distance(variables[ink], variables["foreground"]) >= DISTINCT, f"{ink} is almost that of text"


@our_themes
def test_inks_are_legible_on_every_background(theme: Theme) -> None:
    variables, least = variables_of(theme), least_of(theme.name)
    rows = ("background", "marked-background", "blurred-background")
    for ink, ground in product((*INKS, "foreground"), (*rows, "surface", "panel")):
        assert ratio(variables, ink, ground) >= least, (ink, ground)
    for ground in ("background", "blurred-background", "surface", "panel", "field"):
        assert ratio(variables, "text-disabled", ground) >= least, ground
    assert ratio(variables, "here-foreground", "here-background") >= least
    assert ratio(variables, "block-cursor-foreground", "block-cursor-background") >= least


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_severities_are_legible_on_the_row_of_the_cursor(theme: Theme) -> None:
    variables = variables_of(theme)
    for ink in SEVERITIES:
        assert ratio(variables, ink, "block-cursor-background") >= least_of(theme.name), ink


@our_themes
def test_what_has_the_focus_differs_from_what_is_around_it(theme: Theme) -> None:
    variables = variables_of(theme)
    assert ratio(variables, "here-background", "panel") >= VISIBLE
    assert ratio(variables, "block-cursor-background", "background") >= VISIBLE
    assert ratio(variables, "marked-background", "background") >= 1.1
    assert ratio(variables, "blurred-background", "background") >= 1.2
    for other in ("panel", "block-cursor-background"):  # the heading above it, and the cursor with the focus
        assert distance(variables["blurred-background"], variables[other]) >= APART, other
    assert distance(variables["here-background"], variables["block-cursor-background"]) >= APART, "a row below the tabs"
    assert ratio(variables, "edge-focus", "background") >= 3


@our_themes
def test_edges_and_the_bounds_of_fields_are_visible(theme: Theme) -> None:
    variables = variables_of(theme)
    least = {DARK.name: 1.8, LIGHT.name: 3.0, CONTRAST.name: 7.0}[theme.name]
    assert ratio(variables, "edge", "background") >= least
    for edge, ground in product(("field-edge", "field-edge-focus"), ("surface", "field", "panel")):
        assert ratio(variables, edge, ground) >= 3, (edge, ground)
    assert ratio(variables, "scrollbar", "panel") >= (1.8 if theme is DARK else 3)


@our_themes
def test_selected_text_differs_from_its_field_and_from_the_text_cursor_behind_it(theme: Theme) -> None:
    variables = variables_of(theme)
    assert ratio(variables, "input-selection-background", "field") >= 2
    assert ratio(variables, "input-selection-background", "foreground") >= 2
    assert ratio(variables, "input-selection-foreground", "input-selection-background") >= least_of(theme.name)


@our_themes
@pytest.mark.parametrize("color", ["darkred", "yellow"])
def test_the_label_of_a_box_does_not_color_the_fields_and_buttons_of_dialogs(color: str, theme: Theme) -> None:
    labeled = edges(variables_of(theme), theme, label_of("x", color))
    own = edges(variables_of(theme), theme, None)
    assert labeled["edge"] != own["edge"]
    assert labeled["field-edge"] == own["field-edge"] and labeled["field-edge-focus"] == own["edge-focus"]


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
@pytest.mark.parametrize("color", ["darkred", "yellow", "white", "black", "steelblue"])
def test_edges_in_the_color_of_a_label_are_visible_and_more_so_with_the_focus(color: str, theme: Theme) -> None:
    variables = variables_of(theme)
    variables |= edges(variables, theme, label_of("x", color))
    assert ratio(variables, "edge", "background") >= 3
    assert ratio(variables, "edge-focus", "background") >= 4.5
    assert variables["edge"] != variables["edge-focus"]


@pytest.mark.parametrize("theme", REPLACED, ids=lambda theme: theme.name)
def test_edges_in_the_colors_of_the_terminal_have_none_of_a_label(theme: Theme) -> None:
    variables = variables_of(theme)
    assert edges(variables, theme, label_of("x", "darkred")) == edges(variables, theme, None)


@pytest.mark.parametrize(
    "theme", [*OURS, *(each for each in BUILTIN_THEMES.values() if not each.ansi)], ids=lambda theme: theme.name
)
def test_edges_fields_and_selected_text_are_visible_without_hues(theme: Theme) -> None:
    variables = variables_of(theme)
    variables |= grays(variables, theme)
    gray = {name: Color.parse(variables[name]).monochrome.hex6 for name in ("background", "field", "foreground")}
    found = gray | {name: variables[name] for name in GRAYS}
    assert all(len(set(Color.parse(color).rgb)) == 1 for color in found.values())
    for edge, ground in (("edge", "background"), ("edge-focus", "background"), ("field-edge", "field")):
        assert ratio(found, edge, ground) >= 3, edge
    assert ratio(found, "input-selection-background", "field") >= 3
    assert ratio(found, "input-selection-foreground", "input-selection-background") >= least_of(theme.name)
    assert {variables[severity] for severity in SEVERITIES} == {variables["foreground"]}


@pytest.mark.parametrize("is_gray", [False, True], ids=["colors", "NO_COLOR"])
@our_themes
def test_muted_parts_of_options_are_legible_and_fainter_than_text(theme: Theme, is_gray: bool) -> None:
    variables = variables_of(theme)
    ink, text, ground = (Color.parse(variables[name]) for name in ("option-muted", "foreground", "surface"))
    if is_gray:
        ink, text, ground = ink.monochrome, text.monochrome, ground.monochrome
    assert least_of(theme.name) <= contrast(ink, ground) <= contrast(text, ground) - 1


@pytest.mark.parametrize(
    "theme", [each for each in BUILTIN_THEMES.values() if not each.ansi], ids=lambda theme: theme.name
)
def test_muted_parts_of_options_are_never_stronger_than_text(theme: Theme) -> None:
    variables = variables_of(theme)
    assert ratio(variables, "option-muted", "surface") <= ratio(variables, "foreground", "surface")


@pytest.mark.parametrize("theme", REPLACED, ids=lambda theme: theme.name)
def test_muted_parts_of_options_are_dimmed_in_the_colors_of_the_terminal(theme: Theme) -> None:
    assert Style.parse(MUTED_OF_OPTION.replace("$option-muted", variables_of(theme)["option-muted"])).dim


def test_gauges_are_visible_and_their_texts_legible_in_the_theme_of_high_contrast() -> None:
    variables = variables_of(CONTRAST)
    fills = [variables[name] for name in ("fill", "warning-muted", "error-muted")]
    assert all(contrast(Color.parse(fill), Color(0, 0, 0)) >= 2 for fill in fills)
    assert all(contrast(Color.parse(fill), Color.parse(variables["foreground"])) >= 7 for fill in fills)
    assert distance(fills[1], fills[2]) >= DISTINCT / 2


@our_themes
@pytest.mark.parametrize("color", ["primary", "success", "warning", "secondary"])
def test_low_values_of_a_graph_are_visible_and_fainter_than_high_ones(color: str, theme: Theme) -> None:
    variables = variables_of(theme)
    ground, ink = (Color.parse(variables[name]) for name in ("background", color))
    least = float(variables.get("least-share", 0))
    found = [contrast(ground.blend(ink, max(each.share, least)), ground) for each in shades(color).values()]
    assert found == sorted(found) and found[0] < found[-1]
    assert found[0] >= (4.5 if theme is CONTRAST else 2)


@pytest.mark.parametrize("color", ["darkred", "navy", "darkgreen", "yellow", "gold", "purple"])
def test_a_label_keeps_its_hue_and_the_focus_its_color_in_the_theme_of_high_contrast(color: str) -> None:
    label = label_of("x", color)
    found = edges(variables_of(CONTRAST), CONTRAST, label)
    edge, given = Color.parse(found["edge"]).hsl, Color.parse(label.ground).hsl
    assert abs(edge.h - given.h) < 0.01 and abs(edge.s - given.s) < 0.01
    assert contrast(Color.parse(found["edge"]), Color(0, 0, 0)) >= 7
    assert distance(found["edge"], found["edge-focus"]) >= DISTINCT


@pytest.mark.parametrize("theme", REPLACED, ids=lambda theme: theme.name)
def test_the_current_tab_differs_from_a_row_of_the_cursor_in_the_colors_of_the_terminal(theme: Theme) -> None:
    variables = variables_of(theme)
    assert variables["here-background"] != variables["block-cursor-background"]
    assert variables["here-foreground"] != variables["here-background"]
