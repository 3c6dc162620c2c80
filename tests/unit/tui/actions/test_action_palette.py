"""Palette of actions: it looks like a dialog in every theme, and lists actions by title and name."""

import pytest
from textual.color import Color

from pulsarbox.tui.widgets.dialog import FaintBelow
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.legibility import TERMINAL, drawn_in, least_of, poor_in, wearing


async def opened(driver: Driver) -> None:
    """Open the palette, and wait for its list."""
    await driver.press("ctrl+p")
    await driver.until(lambda: "Go to: Overview (overview)" in driver.text())


@pytest.mark.parametrize("theme", ["pulsarbox-contrast", *TERMINAL])
async def test_the_palette_has_the_colors_of_a_dialog(theme: str) -> None:
    async with dashboard(size=SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        await opened(driver)
        box, variables = driver.screen.query_one("#--container"), driver.app.theme_variables
        assert box.styles.border_top[0] == "round" and box.region.height < SMALL[1]
        allowed = {
            "surface",
            "panel",
            "block-cursor-background",
            "scrollbar",
            "scrollbar-background",
            "foreground",
            "field",
        }
        known = {Color.parse(variables[name]).rich_color.name for name in allowed} | {"default"}
        found = {each.style.bgcolor.name for each in drawn_in(driver, box.region) if each.style and each.style.bgcolor}
        assert found <= known
        assert Color.parse(variables["block-cursor-background"]).rich_color.name in found
        assert isinstance(driver.screen, FaintBelow)
        if theme not in TERMINAL:
            assert poor_in(driver, box.region, least_of(theme)) == set()


async def test_rows_have_one_line_with_key_title_and_name() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await opened(driver)
        await driver.type("terminate")
        await driver.until(lambda: "Terminate the topic" in driver.text() and "Overview (" not in driver.text())
        (line,) = [line for line in driver.lines() if "Terminate the topic" in line]
        assert "(topic ter" in line and line.rstrip(" │").endswith("…")


async def test_a_dialog_has_no_palette() -> None:
    """The actions need a screen."""
    async with dashboard(size=SMALL, place="topics") as driver:
        await driver.press("s")
        await driver.at("ChoiceDialog", answered=False)
        await driver.press("ctrl+p", "escape")
        await driver.at("TopicsScreen")
