"""The input line at the bottom: its kind, its hint, and its end."""

import pytest
from textual.widgets import Input

from pulsarbox.tui.actions.action_table import REGISTRY
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


@pytest.mark.parametrize("key", ["tab", "shift+tab"])
async def test_tab_completes_a_command_and_the_next_keys_are_still_text(key: str) -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await driver.press("colon", "s", "u", "b", key, "x", "d")
        prompt = driver.screen.query_one("#prompt", Input)
        assert prompt.has_focus and driver.app.screen is driver.screen
        first = next(action.name for action in REGISTRY if action.name.startswith("sub"))
        assert prompt.value == f"{first}xd"


@pytest.mark.parametrize("key", ["tab", "shift+tab"])
async def test_tab_keeps_a_filter_and_its_focus(key: str) -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await driver.press("slash", key, "b", key, "x")
        prompt = driver.screen.query_one("#prompt", Input)
        assert prompt.has_focus and prompt.value == "bx"
