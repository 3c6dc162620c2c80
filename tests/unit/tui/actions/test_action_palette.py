"""Palette of actions: it looks like a dialog in every theme, and lists actions by title and name."""

import pytest
from textual.color import Color

from pulsarbox.tui.widgets.dialogs.dialog import FaintBelow
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.legibility import TERMINAL, drawn_in, least_of, poor_in, wearing


async def opened(driver: Driver) -> None:
    """Open the palette, and wait for its list."""
    await driver.press("ctrl+p")
    await driver.until(lambda: "Browse the messages; nothing is acknowledged (messages)" in driver.text())


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
        await driver.until(lambda: "Terminate the topic" in driver.text() and "Browse" not in driver.text())
        (line,) = [line for line in driver.lines() if "Terminate the topic" in line]
        assert "(topic ter" in line and line.rstrip(" │┃").endswith("…")


async def test_a_dialog_has_no_palette() -> None:
    """The actions need a screen."""
    async with dashboard(size=SMALL, place="topics") as driver:
        await driver.press("s")
        await driver.at("ChoiceDialog", answered=False)
        await driver.press("ctrl+p", "escape")
        await driver.at("TopicsScreen")


async def test_a_wide_terminal_has_groups_and_names_in_columns_and_the_rows_come_first() -> None:
    async with dashboard(size=(120, 40), place="topics") as driver:
        await driver.press("ctrl+p")
        await driver.until(lambda: "Browse the messages" in driver.text())
        listed = [line for line in driver.lines() if " :" in line and "│" in line]
        assert len({line.index(" :") for line in listed}) == 1
        groups = ("Row", "View", "Screens", "Program")
        firsts = [word for line in listed for word in groups if f"│  {word:<9} " in line]
        assert firsts[:2] == ["Row", "View"] and len(set(firsts)) == len(firsts)


async def test_actions_of_other_screens_are_found_and_not_listed() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await opened(driver)
        await driver.press("end")
        assert "Seek the subscription" not in driver.text()
        await driver.type("seek")
        await driver.until(lambda: "Seek the subscription" in driver.text())


@pytest.mark.parametrize("size", [(40, 24), SMALL, (120, 40)])
async def test_actions_that_another_screen_has_are_marked(size: tuple[int, int]) -> None:
    for query, title, is_here in (("unload", "Unload the topic", True), ("seek", "Seek the subscription", False)):
        async with dashboard(size=size, place="topics") as driver:
            await driver.press("ctrl+p")
            await driver.until(lambda: "Browse the" in driver.text())
            await driver.type(query)
            await driver.until(lambda title=title: "Browse" not in driver.text() and title[:19] in driver.text())  # type: ignore[misc]
            (line,) = [line for line in driver.lines() if title[:19] in line]
            assert ("not here" in line) != is_here


async def test_an_action_of_another_screen_has_no_key() -> None:
    async with dashboard(size=(120, 40), place="topics") as driver:
        await driver.press("ctrl+p")
        await driver.until(lambda: "Browse the" in driver.text())
        await driver.type("acknowledged, in")
        await driver.until(lambda: "Browse" not in driver.text() and "Show acknowledged" in driver.text())
        (line,) = [line for line in driver.lines() if "Show acknowledged" in line]
        assert "not here" in line and line.split("Show")[0].split()[-2:] == ["not", "here"]


async def test_a_small_terminal_has_the_whole_name_of_the_side_panels() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await opened(driver)
        assert "(row details)" in driver.text()


async def test_words_are_found_as_such_before_their_letters() -> None:
    async with dashboard(size=(120, 40), place="topics") as driver:
        await driver.press("ctrl+p")
        await driver.until(lambda: "Browse the messages" in driver.text())
        await driver.type("dead")
        await driver.until(lambda: "Go to: Dead letters" in driver.text() and "Browse" not in driver.text())
        assert "Unload" not in driver.text() and "Delete the topic" not in driver.text()
    async with dashboard(size=(120, 40), place="topics") as driver:
        await driver.press("ctrl+p")
        await driver.until(lambda: "Browse the messages" in driver.text())
        await driver.type("gotop")
        await driver.until(lambda: "Go to: Topics" in driver.text() and "Browse" not in driver.text())


@pytest.mark.parametrize(
    ("screen", "keys", "title", "other"),
    [
        ("MessageViewer", ["enter"], "Copy the message, a part of it, or a command for it", "equivalent pulsarbox"),
        ("Browser", [], "Go to a position, time or ID", "Messages: "),
    ],
)
async def test_actions_have_the_title_of_the_screen(screen: str, keys: list[str], title: str, other: str) -> None:
    async with dashboard(size=(120, 50), place="topics") as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None)
        await driver.press(*keys)
        await driver.at(screen)
        await driver.press("ctrl+p")
        await driver.until(lambda: title in driver.text())
        assert other not in driver.text()
