"""Appearance of the dashboard: without color, light and dark, and with a label."""

from typing import Any

import pytest
from textual.color import Color

from pulsarbox.tui.actions.operation import Wrong
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.themes import OURS
from pulsarbox.tui.widgets.bars import Line
from pulsarbox.tui.widgets.box_label import contrast, label_of
from tests.tools.campaigns import short
from tests.unit.tui.driving import SMALL, WIDE, dashboard
from tests.unit.tui.fake import FakeBox

LABEL = label_of("PRODUCTION", "darkred")
READABLE = 4.5
"""Minimum contrast according to WCAG 2.2, 1.4.3."""


@pytest.mark.campaign
async def test_a_box_with_a_label_looks_different_on_every_screen_and_in_the_dialogs() -> None:
    async with dashboard(size=SMALL, label=LABEL) as driver:
        for key in "1234567890":
            await driver.press(key)
            await driver.until(lambda: driver.screen.answered)
            await driver.pilot.pause()
            line = driver.lines()[0]
            assert line.startswith(" PRODUCTION │ pulsarbox standalone"), line
            strip = driver.screen.query_one("#vitals", Line).render_line(0)
            grounds = {segment.style.bgcolor.name for segment in strip if segment.style and segment.style.bgcolor}
            assert LABEL.ground.lower() in grounds
        await driver.press("3", "x")
        await driver.at("ChoiceDialog", answered=False)
        await driver.press("escape")
        await driver.at("Subscriptions")
        driver.screen.act("sub clear")
        await driver.at("OperationDialog", answered=False)
        assert "PRODUCTION: Clear the backlog" in driver.text()


async def test_without_a_label_nothing_is_said() -> None:
    async with dashboard(size=SMALL) as driver:
        assert driver.lines()[0].startswith(" pulsarbox standalone")
        assert driver.screen.query_one("#vitals", Line).dress is None


@pytest.mark.parametrize("color", ["", "red", "yellow", "darkgreen", "#777777", "black", "white"])
def test_a_label_can_be_read_on_any_colour(color: str) -> None:
    label = label_of(" live\x1b ", color)
    assert label.text == "live\\x1b"
    assert contrast(Color.parse(label.ink), Color.parse(label.ground)) >= READABLE


@pytest.mark.parametrize(("text", "color"), [("", ""), ("x" * 25, ""), ("live", "reddish"), ("live", "#12")])
def test_a_label_that_cannot_be(text: str, color: str) -> None:
    with pytest.raises(Wrong):
        label_of(text, color)


@pytest.mark.parametrize("theme", short([each.name for each in OURS], 1))
async def test_every_text_of_our_themes_can_be_read(theme: str) -> None:
    """Checks the rendered colors of every cell of every screen, instead of the colors declared by a theme."""
    poor: dict[tuple[str, str, str], float] = {}
    async with dashboard(FakeBox(), WIDE, kept=_kept(theme)) as driver:
        for key in ("1", "2", "3", "enter", "4", "5", "6", "7", "8", "9", "0"):
            await driver.press(key)
            await driver.until(lambda: driver.screen.answered)
            await driver.pilot.pause(0.05)
            for strip in driver.screen._compositor.render_strips():
                for segment in strip:
                    told = _contrast(segment)
                    if told is not None and told[2] < READABLE:
                        poor[(type(driver.screen).__name__, *told[:2])] = round(told[2], 2)
    assert poor == {}


async def test_what_the_first_screen_says_can_be_seen() -> None:
    """The library caches the text style from before the first styling, which has the background color."""
    async with dashboard(place="storage") as driver:
        await driver.pilot.pause(0.05)
        strips = [each for each in driver.screen._compositor.render_strips() if "disk free" in each.text]
        found = [told for strip in strips for segment in strip if (told := _contrast(segment)) is not None]
        assert found and all(ratio >= READABLE for _, _, ratio in found), found


def _contrast(segment: Any) -> tuple[str, str, float] | None:
    style, text = segment.style, segment.text.strip()
    if style is None or style.color is None or style.bgcolor is None or not any(each.isalnum() for each in text):
        return None
    ink, ground = (Color.from_rich_color(each) for each in (style.color, style.bgcolor))
    if style.dim:
        ink = ground.blend(ink, 0.5)
    return text[:20], f"{ink.hex} on {ground.hex}", contrast(ink, ground)


def _kept(theme: str) -> Preferences:
    kept = Preferences(None)
    kept.set("theme", theme)
    return kept


async def test_no_colour_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR, the words and marks are the same, and no cell has a color."""
    texts: list[list[str]] = []

    async def seen() -> None:
        async with dashboard(FakeBox(), SMALL, label=LABEL) as driver:
            found = []
            for key in "123456789":
                await driver.press(key)
                await driver.until(lambda: driver.screen.answered)
                await driver.pilot.pause(0.05)
                found.append(driver.text())
            texts.append(found)
            if driver.app.no_color:
                for line in driver.screen._compositor.render_strips():
                    for segment in line.apply_filter(driver.app._filters[-1], Color(0, 0, 0)):
                        for each in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                            if each is not None and each.triplet is not None:
                                assert len(set(each.triplet)) == 1, segment

    monkeypatch.delenv("NO_COLOR", raising=False)
    await seen()
    monkeypatch.setenv("NO_COLOR", "1")
    await seen()
    assert texts[0] == texts[1]
    assert "● 2 holding back" in texts[0][0] and "● 12s" in texts[0][4]
