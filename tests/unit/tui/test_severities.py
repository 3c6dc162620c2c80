"""Colors of severities as drawn: under the cursor, in marked rows, in dialogs and in notifications."""

from typing import get_args

import pytest
from rich.style import Style
from textual.color import Color
from textual.notifications import SeverityLevel
from textual.widget import Widget
from textual.widgets._toast import Toast

from pulsarbox.tui.actions.diagnosis import CALM, MARKS, OverviewFacts, diagnosed
from pulsarbox.tui.actions.replay_operations import JOBS
from pulsarbox.tui.themes import CONTRAST, OURS
from pulsarbox.tui.widgets.box_facts import PROBLEMS
from pulsarbox.tui.widgets.box_label import contrast
from pulsarbox.tui.widgets.pager import Pager
from pulsarbox.tui.widgets.table import Table
from tests.unit.storage.ensemble.fake import LOST
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import FakeBox, client, job, quota, subscription
from tests.unit.tui.legibility import TERMINAL, colors_of, drawn_in, least_of, poor_in, style_of, wearing
from tests.unit.tui.screens.test_directories import box_of

OUR_NAMES = [theme.name for theme in OURS]
CAUSES = {"unacked-limit": "unacked limit", "throttled": "throttled", "delayed": "delayed"}
"""Causes as tables show them."""


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


@pytest.mark.parametrize("theme", [CONTRAST.name, *TERMINAL])
async def test_only_alarms_have_a_background_of_their_own_under_the_cursor(theme: str) -> None:
    async with dashboard(of_cause("delayed"), WIDE, place="subscriptions", kept=wearing(theme)) as driver:
        await driver.press("space", "k")
        await driver.until(lambda: ">●orders-0" in driver.text())
        cursor = driver.table.look("cursor").bgcolor
        for text in ("●", "delayed", "⣤"):
            assert style_of(driver, ">●orders-0", text).bgcolor == cursor, text
        assert style_of(driver, ">●orders-0", "▲ +12").bgcolor != cursor


@pytest.mark.parametrize("theme", [*OUR_NAMES, *TERMINAL])
@pytest.mark.parametrize(("place", "line"), [("subscriptions", ">orders-0"), ("overview", "✕ Dead letters are lost")])
async def test_the_line_of_the_cursor_has_no_holes_without_colors(
    theme: str, place: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(size=SMALL, place=place, kept=wearing(theme)) as driver:
        await driver.until(lambda: line in driver.text())
        strip = next(strip for strip in driver.strips() if line in strip.text)
        start = strip.text.index(line)
        styles = [each.style for each in strip.crop(start, 70) if each.style]
        assert len({(style.bgcolor, style.reverse) for style in styles}) == 1


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


def of_cause(cause: str) -> FakeBox:
    """A box whose subscriptions and clients have this cause."""
    box = without_consumers()
    told = {"cause": cause, "causeText": f"told: {cause}"}
    box.rows["subscriptions"] = [subscription(number, **told) for number in range(3)]
    box.rows["clients"] = [client(number, **told) for number in range(3)]
    return box


@pytest.mark.parametrize("place", ["overview", "subscriptions", "clients"])
@pytest.mark.parametrize(("cause", "look"), [("unacked-limit", "bad"), ("throttled", "warn"), ("delayed", "cool")])
async def test_the_status_line_has_the_severity_of_the_cause(place: str, cause: str, look: str) -> None:
    async with dashboard(of_cause(cause), WIDE, place=place) as driver:
        if place == "overview":
            driver.screen.set_focus(driver.screen.query_one("#subscriptions"))
        await driver.until(lambda: f"told: {cause}" in driver.told("told"))
        told = status_style(driver, f"told: {cause}")
        table = driver.screen.query(Table).first()
        (cell, *_) = [each.style for each in drawn_in(driver, table.region) if each.text.strip() == CAUSES[cause]]
        assert cell is not None
        assert told.color == cell.color == table.look(look).color


def status_style(driver: Driver, text: str) -> Style:
    """Return the style of the part of the status line that begins with a text."""
    region = driver.screen.query_one("#told").region
    return next(each.style for each in drawn_in(driver, region) if each.text.startswith(text) and each.style)


@pytest.mark.parametrize("theme", [*OUR_NAMES, *TERMINAL])
async def test_a_subscription_has_muted_labels_and_the_severity_of_its_cause(theme: str) -> None:
    async with dashboard(of_cause("no-consumer"), SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        await driver.press("enter")
        await driver.until(lambda: "backlog   " in driver.text() and "told: no-consumer" in driver.text())
        label, backlog = (style_of(driver, "│ backlog  ", text) for text in ("backlog", "messages"))
        cause = style_of(driver, "│ cause  ", "told: no-consumer")
        assert cause.color == driver.table.look("bad").color and cause.bold
        assert (label.dim and not backlog.dim) if theme in TERMINAL else label.color != backlog.color
        about = driver.screen.query_one("#facts").region
        assert theme in TERMINAL or poor_in(driver, about, least_of(theme)) == set()


@pytest.mark.parametrize(("state", "look"), [("failed", "bad"), ("paused", "warn")])
async def test_the_error_of_a_job_has_the_severity_of_its_state(state: str, look: str) -> None:
    box = FakeBox()
    box.answers["GET", JOBS] = [job(1, state=state, error="the target is full")]
    async with dashboard(box, WIDE, place="jobs") as driver:
        await driver.until(lambda: "the target is full" in driver.told("told"))
        told, cell = status_style(driver, " the target is full"), style_of(driver, "dlq-replay", state)
        assert told.color == cell.color == driver.table.look(look).color


async def test_a_stuck_key_is_an_alarm_in_its_row_and_in_the_status_line() -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(0, type="Key_Shared")]
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        await driver.press("K")
        await driver.until(lambda: "c0 has not acknowledged 12:61" in driver.told("told"))
        told, cell = status_style(driver, " c0 has not"), style_of(driver, "customer-9", "stuck")
        assert told.color == cell.color == driver.table.look("bad").color


def test_counted_problems_have_the_severities_of_the_diagnosis() -> None:
    letters = {"topic": "persistent://public/default/orders-DLQ", "left": 3}
    rows = {
        "deadLetters": OverviewFacts({}, dead_letters=[letters]),
        "throttled": OverviewFacts({}, quotas=[quota(3)]),
    }
    for each in PROBLEMS:
        (finding,) = diagnosed(rows.get(each.key) or OverviewFacts({each.key: 3}))
        assert finding.severity != CALM
        assert each.told(3).startswith(f"{finding.mark} 3 "), each.key


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)])
async def test_missing_copies_have_one_severity_on_all_screens(size: tuple[int, int]) -> None:
    box = box_of(LOST, 8)
    box.totals["lackingCopies"] = 1_204
    (finding,) = diagnosed(OverviewFacts({"lackingCopies": 1_204}))
    async with dashboard(box, size, place="overview") as driver:
        text = ("entries that lack a copy", "▲ 1,204") if size[0] == 200 else ("▲ 1,204 entries", "▲ 1,204")
        await driver.until(lambda: text[0] in driver.text())
        assert MARKS[finding.severity] == "▲"
        warn = driver.screen.query(Table).first().look("warn").color
        assert style_of(driver, *text).color == warn
        await driver.press("7")
        await driver.until(lambda: "▲ 1,204 entries lack a copy; repair 50%" in driver.text())
        assert style_of(driver, "▲ 1,204 entries", "▲ 1,204").color == warn


async def test_entries_without_any_copy_are_severe() -> None:
    none_left = LOST._replace(under_replicated=tuple(each._replace(have=()) for each in LOST.under_replicated))
    async with dashboard(box_of(none_left, 8), SMALL, place="storage") as driver:
        await driver.until(lambda: "✕ 1,204 entries lack a copy, " in driver.text())
        assert style_of(driver, "✕ 1,204 entries", "✕ 1,204").color == driver.table.look("bad").color


@pytest.mark.parametrize("theme", [*OUR_NAMES, *TERMINAL])
@pytest.mark.parametrize("place", ["overview", "topics", "storage"])
async def test_the_panel_with_the_focus_has_an_edge_of_another_shape(place: str, theme: str) -> None:
    async with dashboard(size=WIDE, kept=wearing(theme), place=place) as driver:
        focused = driver.app.focused
        assert focused is not None and [corner(driver, each) for each in panels(driver)] == [
            "┏" if each is focused else "╭" for each in panels(driver)
        ]
        driver.screen.set_focus(None)
        await driver.until(lambda: "┏" not in driver.text())
        assert {corner(driver, each) for each in panels(driver)} == {"╭"}


def panels(driver: Driver) -> list[Widget]:
    """Return the widgets in a border that are shown."""
    return [each for each in driver.screen.query("*") if each.display and each.size and each.styles.border_top[0]]


def corner(driver: Driver, panel: Widget) -> str:
    """Return the upper left corner of a panel."""
    return "".join(each.text for each in drawn_in(driver, panel.region))[0]
