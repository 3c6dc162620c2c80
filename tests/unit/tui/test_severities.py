"""Colors of severities as drawn: under the cursor, in marked rows, in dialogs and in notifications."""

from typing import get_args

import pytest
from textual.color import Color
from textual.notifications import SeverityLevel
from textual.widgets._toast import Toast

from pulsarbox.tui.themes import CONTRAST, OURS
from pulsarbox.tui.widgets.box_label import contrast
from pulsarbox.tui.widgets.pager import Pager
from tests.unit.tui.driving import SMALL, WIDE, dashboard
from tests.unit.tui.fake import FakeBox, subscription
from tests.unit.tui.legibility import TERMINAL, colors_of, drawn_in, least_of, poor_in, style_of, wearing

OUR_NAMES = [theme.name for theme in OURS]


def without_consumers() -> FakeBox:
    """A box whose subscriptions have a severe cause."""
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number, cause="no-consumer") for number in range(40)]
    return box


@pytest.mark.parametrize("theme", [*OUR_NAMES, *TERMINAL])
async def test_severities_keep_their_color_under_the_cursor(theme: str) -> None:
    async with dashboard(without_consumers(), SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        await driver.press("j")
        await driver.until(lambda: ">orders-1" in driver.text())
        for text, look in (("no consumer", "bad"), ("never", "bad"), ("▲ +12", "warn")):
            style, own = style_of(driver, ">orders-1", text), driver.table.look(look)
            assert style.color == own.color and style.bold, text
            assert theme in TERMINAL or contrast(*colors_of(style)) >= least_of(theme), text
        name = style_of(driver, ">orders-1", "orders-1")
        assert name.bgcolor == driver.table.look("cursor").bgcolor


@pytest.mark.parametrize("theme", [*OUR_NAMES, *TERMINAL])
async def test_the_first_finding_keeps_its_color_under_the_cursor(theme: str) -> None:
    async with dashboard(size=SMALL, kept=wearing(theme)) as driver:
        await driver.until(lambda: "✕ Dead letters are lost" in driver.text())
        findings = driver.screen.query_one("#findings")
        assert findings.has_focus
        mark, text = (style_of(driver, "✕ Dead letters are lost", each) for each in ("✕", "are lost"))
        assert mark.color == findings.look("bad").color
        assert text.bgcolor == findings.look("cursor").bgcolor
        assert theme in TERMINAL or contrast(*colors_of(mark)) >= least_of(theme)
        assert theme in (CONTRAST.name, *TERMINAL) or text.color == mark.color


@pytest.mark.parametrize("theme", OUR_NAMES)
async def test_marked_rows_keep_their_severities(theme: str) -> None:
    async with dashboard(without_consumers(), SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        await driver.press("j", "space", "j")
        await driver.until(lambda: "●orders-1" in driver.text())
        table, line = driver.table, "●orders-1 "
        name, cause, number = (style_of(driver, line, each) for each in ("●orders-1", "no consumer", "999"))
        assert name.color == table.look("marked").color
        assert cause.color == table.look("bad").color and number.color == table.look("plain").color
        assert {each.bgcolor for each in (name, cause, number)} == {table.look("marked row").bgcolor}
        assert table.look("marked row").bgcolor != table.look("plain").bgcolor
        assert poor_in(driver, table.region, least_of(theme)) == set()


@pytest.mark.parametrize("theme", OUR_NAMES)
async def test_the_row_of_the_cursor_is_visible_without_the_focus(theme: str) -> None:
    async with dashboard(size=SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        driver.screen.set_focus(None)
        await driver.until(lambda: not driver.table.has_focus)
        await driver.pilot.pause()
        here, other = (style_of(driver, line, "billing") for line in (">orders-0", " orders-4 "))
        assert here.bold and not other.bold and here.bgcolor != other.bgcolor


@pytest.mark.parametrize("theme", OUR_NAMES)
async def test_a_match_is_visible_under_the_cursor(theme: str) -> None:
    async with dashboard(size=SMALL, kept=wearing(theme), place="subscriptions") as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.press("enter")
        await driver.at("MessageViewer", answered=False)
        pager = driver.screen.query(Pager).first()
        cursor, found = (colors_of(pager.look(name)) for name in ("cursor", "found here"))
        assert contrast(cursor[1], found[1]) >= 3 and contrast(*found) >= least_of(theme)


@pytest.mark.parametrize("theme", [*OUR_NAMES, *TERMINAL])
async def test_a_menu_sets_off_keys_and_dangerous_actions(theme: str) -> None:
    async with dashboard(size=SMALL, kept=wearing(theme), place="topics") as driver:
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        await driver.until(lambda: "! Delete the topic" in driver.text() and "enter select" in driver.text())
        variables = driver.app.theme_variables
        await driver.press("end")
        await driver.pilot.pause()
        mark, key = style_of(driver, "! Delete the topic", "!"), style_of(driver, "enter select", "enter")
        assert mark.bold and mark.color == Color.parse(variables["text-error"]).rich_color
        assert key.bold and key.color == Color.parse(variables["accent"]).rich_color
        assert theme in TERMINAL or poor_in(driver, driver.screen.query_one("#box").region, least_of(theme)) == set()


@pytest.mark.parametrize(("key", "state", "look"), [("P", "failed", "bad"), ("0", "running", "good")])
@pytest.mark.parametrize("theme", OUR_NAMES)
async def test_details_have_muted_labels_and_the_states_of_the_table(
    theme: str, key: str, state: str, look: str
) -> None:
    async with dashboard(size=WIDE, kept=wearing(theme), place="topics") as driver:
        await driver.press(key)
        await driver.until(lambda: driver.screen.answered)
        await driver.until(lambda: state in driver.text())
        await driver.press(*(["end"] if key == "P" else []))
        await driver.until(lambda: (driver.table.pointed or {})["state"] == state)
        await driver.press("enter")
        await driver.at("TextDialog", answered=False)
        await driver.until(lambda: "  state     " in driver.text() and "esc back" in driver.text())
        (*_, strip) = [strip for strip in driver.strips() if "  state     " in strip.text]
        shown = {word: each.style for each in strip for word in ("state", state) if each.text.strip() == word}
        variables = driver.app.theme_variables
        name = {"bad": "text-error", "good": "text-success"}[look]
        colors = {word: style.color for word, style in shown.items() if style is not None}
        assert colors[state] == Color.parse(variables[name]).rich_color
        assert colors["state"] != Color.parse(variables["foreground"]).rich_color
        assert poor_in(driver, driver.screen.query_one("#box").region, least_of(theme)) == set()


@pytest.mark.parametrize("severity", get_args(SeverityLevel))
@pytest.mark.parametrize("theme", OUR_NAMES)
async def test_a_notification_has_an_edge_in_the_color_of_its_severity(theme: str, severity: SeverityLevel) -> None:
    name = {"information": "text-success", "warning": "text-warning", "error": "text-error"}[severity]
    async with dashboard(size=SMALL, kept=wearing(theme), place="topics") as driver:
        driver.app._disable_notifications = False  # Pilot disables those of its screens
        await driver.press("3")
        await driver.at("Subscriptions")
        driver.app.notify("the text", title="Title", severity=severity)
        await driver.until(lambda: "the text" in driver.text())
        toast = driver.screen.query_one(Toast)
        (corner,) = [each for each in drawn_in(driver, toast.region) if each.text.startswith("╭")]
        assert corner.style is not None
        assert corner.style.color == Color.parse(driver.app.theme_variables[name]).rich_color
        assert poor_in(driver, toast.region, least_of(theme)) == set()


async def test_a_new_theme_of_the_terminal_redraws_every_line() -> None:
    """The lines have no background in both themes, so that Textual sees no change of their styles."""
    dark, light = TERMINAL
    async with dashboard(size=SMALL, kept=wearing(dark), place="topics") as driver:
        before = style_of(driver, "1 Overview", "1")
        driver.app.theme = light
        await driver.until(lambda: style_of(driver, "1 Overview", "1").color != before.color)
        wanted = Color.parse(driver.app.theme_variables["accent"]).rich_color
        assert style_of(driver, "1 Overview", "1").color == wanted
