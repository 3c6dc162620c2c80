"""Dialogs: in themes of the terminal's colors, the screen below has one gray instead of its colors."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style

from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.widgets.dialog import faint
from tests.unit.tui.driving import SMALL, Driver, dashboard

HINTS = (("c", "ColumnsDialog"), ("s", "ChoiceDialog"), ("x", "ChoiceDialog"))


@asynccontextmanager
async def themed(path: Path, theme: str) -> AsyncIterator[Driver]:
    kept = Preferences(path / "top.json")
    kept.set("theme", theme)
    async with dashboard(size=SMALL, place="subscriptions", kept=kept) as driver:
        yield driver


def styles(driver: Driver, line: int) -> Sequence[Style | None]:
    return [each.style for each in driver.screen._compositor.render_strips()[line] if each.text.strip()]


async def test_the_screen_below_a_dialog_is_gray(tmp_path: Path) -> None:
    async with themed(tmp_path, "ansi-dark") as driver:
        assert len({str(each) for each in styles(driver, 0)}) > 1
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        await driver.until(lambda: "enter select" in driver.text())
        colors = {each.color.name for each in styles(driver, 0) if each is not None and each.color is not None}
        assert colors == {"bright_black"}
        assert {each.bgcolor is None or each.bgcolor.is_default for each in styles(driver, 0) if each} == {True}


async def test_hints_of_dialogs_fit_into_80_columns() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        for key, name in HINTS:
            await driver.press(key)
            await driver.at(name, answered=False)
            await driver.until(lambda: "esc back" in driver.text())
            await driver.press("escape")
            await driver.at("Subscriptions")


@pytest.mark.parametrize("style", [Style(color="bright_black"), Style(dim=True)])
def test_control_codes_keep_their_place(style: Style) -> None:
    moved = Segment.line()
    assert list(faint([Segment("a", Style(bold=True)), Segment("b"), moved], style)) == [
        Segment("a", style),
        Segment("b", style),
        Segment("\n", style),
    ]
