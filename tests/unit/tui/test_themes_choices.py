"""The highlighted option, the current tab and the chosen finding differ from others in more than their hue."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from rich.style import Style
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from pulsarbox.tui.actions.action_palette import ActionPalette
from pulsarbox.tui.actions.dialogs import ChoiceDialog, Question
from pulsarbox.tui.screens.columns import ColumnsDialog
from pulsarbox.tui.themes import OURS
from pulsarbox.tui.views import CLIENTS
from pulsarbox.tui.widgets.box_label import contrast
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.legibility import (
    TERMINAL,
    colors_of,
    drawn_in,
    is_set_apart,
    least_of,
    poor_in,
    style_of,
    wearing,
)

_VISIBLE: Final = 1.4
"""Least contrast of a background with a hue."""
_VISIBLE_GRAY: Final = 3.0
"""Least contrast of a background without one."""
THEMES: Final = (*(theme.name for theme in OURS), *TERMINAL)


def dialogs() -> list[ModalScreen[Any]]:
    """Return the dialogs with a list."""
    names = ("alpha", "beta", "gamma")
    return [
        ChoiceDialog("actions", [(name, f"  {name}", "pulsarbox topics") for name in names]),
        ColumnsDialog(CLIENTS.columns, CLIENTS.columns, {"topic"}),
        ActionPalette(),
    ]


async def opened(driver: Driver, *shown: Any) -> AsyncIterator[tuple[Any, OptionList]]:
    """Open dialogs one after the other, with the lists of their options."""
    for dialog in shown:
        await driver.app.push_screen(dialog)
        await driver.until(lambda: "esc back" in driver.text())
        listed = dialog.query_one(OptionList)
        await driver.until(lambda listed=listed: listed.option_count > 2)  # type: ignore[misc]
        yield dialog, listed
        dialog.dismiss()
        await driver.at("Subscriptions")


def options_of(driver: Driver) -> list[Style]:
    """Return the styles of the longest texts of the first two options."""
    region = driver.screen.query_one(OptionList).content_region
    rows = [region._replace(height=1), region._replace(y=region.y + 1, height=1)]
    longest = [max(drawn_in(driver, row), key=lambda each: len(each.text.strip())) for row in rows]
    return [each.style or Style.null() for each in longest]


@pytest.mark.parametrize("is_gray", [False, True], ids=["colors", "NO_COLOR"])
@pytest.mark.parametrize("theme", THEMES)
async def test_the_highlighted_option_of_every_list_is_set_apart(
    theme: str, is_gray: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_gray:
        monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(size=SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        async for dialog, listed in opened(driver, *dialogs()):
            listed.highlighted = 0
            await driver.pilot.pause()
            here, other = options_of(driver)
            assert is_set_apart(here, other, _VISIBLE_GRAY if is_gray else _VISIBLE), type(dialog)
            assert here.bold and not other.bold, type(dialog)


@pytest.mark.parametrize("is_gray", [False, True], ids=["colors", "NO_COLOR"])
@pytest.mark.parametrize("theme", THEMES)
async def test_the_highlighted_option_has_one_background_on_which_all_its_parts_can_be_read(
    theme: str, is_gray: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_gray:
        monkeypatch.setenv("NO_COLOR", "1")
    shown = ("! alpha", "  beta", "  gamma")
    menu = ChoiceDialog("actions", [(each[2:], each, "pulsarbox topics") for each in shown])
    async with dashboard(size=(120, 40), place="subscriptions", kept=wearing(theme)) as driver:
        # With colors, the mark of a dangerous action keeps its color, and maybe its background.
        async for _, listed in opened(driver, ActionPalette(), *([menu] if is_gray else [])):
            for row in (0, 1):
                listed.highlighted = row
                await driver.pilot.pause()
                line = listed.content_region._replace(
                    y=listed.content_region.y + row, height=1, width=listed.scrollable_content_region.width
                )
                styles = [each.style for each in drawn_in(driver, line) if each.style and each.text.strip()]
                assert len({(style.bgcolor, bool(style.reverse)) for style in styles}) == 1
                assert not any(style.dim for style in styles)
                if theme in TERMINAL:
                    assert len({style.color for style in styles}) == 1
                else:
                    assert poor_in(driver, line, least_of(theme)) == set()


@pytest.mark.parametrize("is_gray", [False, True], ids=["colors", "NO_COLOR"])
@pytest.mark.parametrize("theme", [theme.name for theme in OURS])
@pytest.mark.parametrize(("size", "called"), [((120, 40), ":sort"), (SMALL, "(sort)")])
async def test_the_names_of_actions_are_fainter_than_their_titles(
    theme: str, is_gray: bool, size: tuple[int, int], called: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_gray:
        monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(size=size, place="subscriptions", kept=wearing(theme)) as driver:
        await driver.press("ctrl+p")
        await driver.until(lambda: "Choose the sort" in driver.text())
        title, name = (
            contrast(*colors_of(style_of(driver, "Choose the sort", text))) for text in ("Choose the", called)
        )
        assert least_of(theme) <= name < title


@pytest.mark.parametrize("theme", THEMES)
async def test_selected_text_is_set_apart_without_colors(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(size=SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        await driver.app.push_screen(Question("Write all rows to", "a file", "rows.csv"))
        await driver.until(lambda: "rows.csv" in driver.text())
        field = driver.screen.query_one(Input)
        await driver.until(lambda: not field.selection.is_empty)
        selected = style_of(driver, "rows.csv", "rows")
        await driver.press("end")
        await driver.until(lambda: field.selection.is_empty)
        await driver.pilot.pause()
        assert is_set_apart(selected, style_of(driver, "rows.csv", "rows"), _VISIBLE_GRAY)


@pytest.mark.parametrize("is_gray", [False, True], ids=["colors", "NO_COLOR"])
@pytest.mark.parametrize("theme", THEMES)
async def test_the_current_tab_is_set_apart_from_other_tabs_and_from_the_finding_below_it(
    theme: str, is_gray: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_gray:
        monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(size=SMALL, kept=wearing(theme)) as driver:
        driver.screen.query_one("#findings").focus()
        await driver.until(lambda: driver.screen.query_one("#findings").has_focus)
        await driver.pilot.pause()
        tab, other = (style_of(driver, "2 Topics", title) for title in ("Overview", "Topics"))
        (finding,) = [each.style for each in driver.strips()[2] if len(each.text.strip()) > 12]
        assert finding is not None and finding.bold
        assert is_set_apart(tab, other, _VISIBLE)
        assert tab.bgcolor != finding.bgcolor or is_set_apart(tab, finding, _VISIBLE)
