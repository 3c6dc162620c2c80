"""The input line at the bottom: its kind, its hint, and its end."""

import pytest

from tests.unit.tui.driving import SMALL, dashboard


@pytest.mark.parametrize(("key", "kind"), [("slash", "/"), ("colon", ":")])
async def test_the_line_begins_with_its_kind(key: str, kind: str) -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await driver.press(key, "b")
        await driver.until(lambda: driver.screen.query_one("#prompt-line").display)
        assert any(line.startswith(f" {kind}b") for line in driver.lines())
        await driver.press("escape")
        assert not driver.screen.query_one("#prompt-line").display and driver.table.has_focus


async def test_one_line_serves_filters_and_commands_in_turn() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        for key, kind in (("slash", "/"), ("colon", ":"), ("slash", "/")):
            await driver.press(key, "x")
            await driver.pilot.pause()
            assert any(line.startswith(f" {kind}x") for line in driver.lines())
            await driver.press("escape")
        assert len(driver.screen.query("#prompt-line")) == 1
