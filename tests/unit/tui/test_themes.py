"""Built-in themes and those of Textual: each theme renders every screen legibly."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

import pytest
from rich.color import ColorSystem
from rich.style import Style
from textual.color import Color
from textual.filter import Monochrome, NoColor
from textual.theme import BUILTIN_THEMES

from pulsarbox.tui.themes import OURS
from tests.tools.campaigns import short
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.seen import STEPS, walked

THEMES: Final = [*(theme.name for theme in OURS), *sorted(BUILTIN_THEMES)]
MORE: Final = (
    ("columns", ("escape", "2", "c"), "ColumnsDialog"),
    ("sort", ("escape", "s"), "ChoiceDialog"),
    ("filter", ("escape", "slash"), "TopicsScreen"),
    ("words", ("escape", "colon"), "TopicsScreen"),
    ("letters", ("escape", "4", "escape", "b"), "Browser"),
    ("editing", ("E",), "Editing"),
)
"""Screens in addition to those of ``seen``: name, keys from the previous screen, class."""


def unreadable(driver: Driver) -> set[str]:
    """Return the styles whose text has the color of its background, for any number of colors and NO_COLOR."""
    found = set()
    for segment in {each.style: each for strip in driver.strips() for each in strip}.values():
        for line_filter in (*driver.app._filters, Monochrome(), NoColor()):
            (shown,) = line_filter.apply([segment], Color(0, 0, 0))
            for system in (None, *ColorSystem):
                (shown.style or Style.null()).render("x", color_system=system)
        style = segment.style
        if style is not None and style.color is not None and style.color == style.bgcolor:
            found.update([str(style)] if segment.text.strip() and not style.color.is_default else [])
    return found


async def wear(driver: Driver, theme: str) -> None:
    """Switch the theme, and redraw the whole screen."""
    driver.app.theme = theme
    wanted = driver.app.stylesheet
    await driver.until(lambda: wanted._variables.get("primary") == driver.app.theme_variables["primary"])
    await driver.pilot.pause(0)


def worn(share: int | None, number: int) -> Sequence[str]:
    """Return the themes for a screen: half of them, or with None two, different from those of the previous screen."""
    return THEMES[share::2] if share is not None else [THEMES[(2 * number + more) % len(THEMES)] for more in range(2)]


@pytest.mark.parametrize("share", short([0, None, 1], 0))
async def test_every_theme_draws_every_screen(share: int | None) -> None:
    """Terminals with any number of colors; no text has the color of its background."""
    found: set[tuple[str, str, str]] = set()
    seen: list[str] = []

    async def look(name: str, driver: Driver) -> None:
        seen.append(name)
        for theme in worn(share, len(seen)):
            await wear(driver, theme)
            found.update((theme, name, style) for style in unreadable(driver))

    async with aclosing(walked(SMALL, (*STEPS, *MORE))) as screens:
        async for name, driver in screens:
            if name == "letters":
                await driver.until(lambda driver=driver: driver.table.pointed is not None)  # type: ignore[misc]
            await look(name, driver)
            if name == MORE[-1][0]:
                driver.box.gone = "connection refused"
                await driver.press("escape", "6", "r")
                await driver.until(lambda driver=driver: driver.screen.trouble)  # type: ignore[misc]
                await look("trouble", driver)
    assert not found
    assert len(seen) == len(STEPS) + len(MORE) + 1
    assert {theme for number in range(len(seen)) for theme in worn(share, number)} >= {*THEMES[share or 0 :: 2]}


async def test_a_new_theme_redraws_a_map_while_paused() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        await driver.press("m")
        await driver.at("CursorMapScreen")
        await driver.until(lambda: "█" in driver.text())
        before = map_colors(driver)
        await driver.press("p", "T")
        await driver.until(lambda: map_colors(driver) and not map_colors(driver) & before)


def map_colors(driver: Driver) -> set[str]:
    """Return the colors of the acknowledged parts of the map."""
    segments = [each for strip in driver.strips() for each in strip if "█" in each.text]
    return {str(each.style.color) for each in segments if each.style}
