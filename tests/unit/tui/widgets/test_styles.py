"""Appearance of the dashboard: without color, light and dark, and with a label."""

import pytest
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from pulsarbox.tui.actions.operation import Wrong
from pulsarbox.tui.themes import CONTRAST, DARK, OURS, edges
from pulsarbox.tui.widgets.bars import Line
from pulsarbox.tui.widgets.box_label import contrast, label_of
from tests.tools.campaigns import short
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import FakeBox
from tests.unit.tui.legibility import READABLE, least_of, measured, wearing

LABEL = label_of("PRODUCTION", "darkred")


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


@pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
@pytest.mark.parametrize("color", ["darkred", "navy", "black", "white", "yellow"])
def test_the_edges_of_a_label_are_visible(color: str, theme: Theme) -> None:
    assert theme.background is not None
    ground = Color.parse(theme.background)
    found = edges(theme.to_color_system().generate() | theme.variables, theme, label_of("x", color))
    edge, focus = (contrast(Color.parse(found[name]), ground) for name in ("edge", "edge-focus"))
    assert (edge >= 3 and focus >= 7) if theme is CONTRAST else (edge >= 1.8 and focus >= 3)


@pytest.mark.parametrize(("text", "color"), [("", ""), ("x" * 25, ""), ("live", "reddish"), ("live", "#12")])
def test_a_label_that_cannot_be(text: str, color: str) -> None:
    with pytest.raises(Wrong):
        label_of(text, color)


@pytest.mark.parametrize("theme", short([each.name for each in OURS], 1))
async def test_every_text_of_our_themes_can_be_read(theme: str) -> None:
    """Checks the rendered colors of every cell of every screen, instead of the colors declared by a theme."""
    poor: dict[tuple[str, str, str], float] = {}
    async with dashboard(FakeBox(), WIDE, kept=wearing(theme)) as driver:
        for key in ("1", "2", "3", "enter", "4", "5", "6", "7", "8", "9", "0"):
            await driver.press(key)
            await driver.until(lambda: driver.screen.answered)
            await driver.pilot.pause(0.05)
            for strip in driver.strips():
                for segment in strip:
                    told = measured(segment)
                    if told is not None and told[2] < least_of(theme):
                        poor[(type(driver.screen).__name__, *told[:2])] = round(told[2], 2)
    assert poor == {}


async def test_what_the_first_screen_says_can_be_seen() -> None:
    """The library caches the text style from before the first styling, which has the background color."""
    async with dashboard(place="storage") as driver:
        await driver.pilot.pause(0.05)
        strips = [each for each in driver.strips() if "disk free" in each.text]
        found = [told for strip in strips for segment in strip if (told := measured(segment)) is not None]
        assert found and all(ratio >= READABLE for _, _, ratio in found), found


async def test_no_colour_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR, the words and marks are the same, and no cell has a color."""
    texts: list[list[str]] = []
    edges_seen: list[str] = []

    async def seen() -> None:
        async with dashboard(FakeBox(), SMALL, label=LABEL) as driver:
            found = []
            for key in "123456789":
                await driver.press(key)
                await driver.until(lambda: driver.screen.answered)
                await driver.pilot.pause(0.05)
                found.append(driver.text())
            texts.append(found)
            edges_seen.append(driver.app.theme_variables["edge"])
            if driver.app.no_color:
                first = driver.screen.query_one("#vitals", Line).render_line(0)
                assert all(segment.style and segment.style.reverse for segment in first if segment.text.strip())
                for line in driver.strips():
                    for segment in line.apply_filter(driver.app._filters[-1], Color(0, 0, 0)):
                        for each in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                            if each is not None and each.triplet is not None:
                                assert len(set(each.triplet)) == 1, segment

    monkeypatch.delenv("NO_COLOR", raising=False)
    await seen()
    monkeypatch.setenv("NO_COLOR", "1")
    await seen()
    assert texts[0] == texts[1]
    assert edges_seen[0] != edges_seen[1], "gray, the color of the label could not be seen"
    assert contrast(Color.parse(edges_seen[1]), Color.parse(DARK.background or "")) >= 3
    assert "▲ 2 rate limits in effect" in texts[0][0] and "● 12s" in texts[0][4]


async def test_no_colour_in_a_theme_of_the_terminal_has_its_default_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has the cursor is reversed or underlined, as there is no background color."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(FakeBox(), SMALL, kept=wearing("ansi-dark"), place="topics") as driver:
        strips = driver.strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert all(each.color.is_default for each in styles if each.color)
        (cursor,) = [strip for strip in strips if strip.text.startswith("┃>")]
        assert all(segment.style and segment.style.reverse for segment in cursor if "orders" in segment.text)
        await driver.press("s")
        await driver.at("ChoiceDialog", answered=False)
        await driver.until(lambda: "enter select" in driver.text())
        strips = driver.strips()
        (here,) = [segment for strip in strips for segment in strip if segment.text.startswith("BACKLOG ")]
        assert here.style and here.style.underline and here.style.bold


async def test_without_color_alarms_and_errors_stand_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alarms are bold and as bright as text, a lost connection is reversed, as is the dim label behind a dialog."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(FakeBox(), SMALL, label=LABEL) as driver:
        alarm, text = style_of(driver, "17 dead letters"), style_of(driver, "orders-0 ")
        assert alarm.bold and colors_of(alarm)[0] == colors_of(text)[0]
        driver.box.gone = "refused"
        await driver.press("r")
        await driver.until(lambda: "cannot connect" in driver.text())
        trouble = style_of(driver, "cannot connect")
        assert trouble.bold and colors_of(trouble) == colors_of(text)[::-1]
        driver.box.gone = ""
        await driver.press("t")
        await driver.at("Question", answered=False)
        await driver.until(lambda: "enter confirm" in driver.text())
        label = style_of(driver, "PRODUCTION")
        assert label.reverse and label.bold and contrast(*colors_of(label)) < contrast(*colors_of(text)) / 2


def style_of(driver: Driver, text: str) -> Style:
    """Return the style of the first part of the screen with a text."""
    return next(each.style for strip in driver.strips() for each in strip if text in each.text and each.style)


def colors_of(style: Style) -> tuple[Color, Color]:
    """Return the text color and the background of a style."""
    assert style.color is not None and style.bgcolor is not None
    return Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
