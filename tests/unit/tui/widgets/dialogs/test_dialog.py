"""Dialogs: in themes of the terminal's colors, the screen below has one gray instead of its colors, and its marks."""

import pkgutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from rich.segment import ControlType, Segment
from rich.style import Style
from textual.color import Color
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from pulsarbox import tui
from pulsarbox.tui.actions.action_palette import ActionPalette
from pulsarbox.tui.actions.dialogs import ChoiceDialog, OperationDialog, Question, TextDialog
from pulsarbox.tui.actions.dry_run import for_real
from pulsarbox.tui.actions.dry_run_dialog import DryRunDialog
from pulsarbox.tui.actions.operation import default_of
from pulsarbox.tui.actions.operations import BY_NAME
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.screens.columns import ColumnsDialog
from pulsarbox.tui.screens.editing import Editing
from pulsarbox.tui.views import CLIENTS
from pulsarbox.tui.widgets.box_label import contrast
from pulsarbox.tui.widgets.dialogs.dialog import Dialog, faint
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.fake import FakeBox, client, job, message, quota, subscription
from tests.unit.tui.legibility import TERMINAL, drawn_in, least_of, poor_in, wearing

HINTS = (("c", "ColumnsDialog"), ("s", "ChoiceDialog"), ("x", "ChoiceDialog"))


@asynccontextmanager
async def themed(path: Path, theme: str) -> AsyncIterator[Driver]:
    kept = Preferences(path / "top.json")
    kept.set("theme", theme)
    async with dashboard(size=SMALL, place="subscriptions", kept=kept) as driver:
        yield driver


def styles(driver: Driver, line: int) -> Sequence[Style | None]:
    return [each.style for each in driver.strips()[line] if each.text.strip()]


async def test_the_screen_below_a_dialog_is_gray(tmp_path: Path) -> None:
    async with themed(tmp_path, "ansi-dark") as driver:
        assert len({str(each) for each in styles(driver, 0)}) > 1
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        await driver.until(lambda: "enter select" in driver.text())
        colors = {each.color.name for each in styles(driver, 0) if each is not None and each.color is not None}
        assert colors == {"bright_black"}
        assert {each.bgcolor is None or each.bgcolor.is_default for each in styles(driver, 0) if each} == {True}


async def test_the_screen_below_a_dialog_is_drawn_whenever_the_dialog_is() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        for _ in range(3):
            driver.screen.refresh()
            assert driver.lines()[0].startswith(" pulsarbox ")


async def test_hints_of_dialogs_fit_into_80_columns() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        for key, name in HINTS:
            await driver.press(key)
            await driver.at(name, answered=False)
            await driver.until(lambda: "esc back" in driver.text())
            await driver.press("escape")
            await driver.at("Subscriptions")


@pytest.mark.parametrize("style", [Style(color="bright_black"), Style(dim=True)])
def test_a_faint_screen_has_one_color_and_keeps_its_marks(style: Style) -> None:
    looks = {
        Style(color="default", bgcolor="default"): Style(),
        Style(color="red", bold=True, underline=True): Style(bold=True, underline=True),
        Style(color="black", bgcolor="white", bold=True): Style(bold=True, reverse=True),
        Style(color="blue", bgcolor="default", reverse=True): Style(reverse=True),
        Style(color="blue", bgcolor="red", italic=True): Style(reverse=True),
    }
    given = [*(Segment("a", each) for each in looks), Segment("b")]
    for found, marks in zip(faint(given, style), [*looks.values(), Style()], strict=True):
        assert _mark("", found.style) == _mark("", marks)
        assert found.style is not None and found.style.color == style.color and found.style.dim == style.dim


def test_control_codes_keep_their_place() -> None:
    moved = Segment("", None, [(ControlType.CARRIAGE_RETURN,)])
    assert list(faint([Segment("a"), moved], Style(dim=True)))[1] is moved


@pytest.mark.parametrize("theme", TERMINAL)
async def test_the_screen_below_a_dialog_keeps_its_marks_and_its_scroll_bar(theme: str) -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number) for number in range(60)]
    async with dashboard(box, SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        await driver.until(lambda: "orders-5 " in driver.text())
        marks = marks_in(driver, 6)
        await driver.press("t")
        await driver.at("Question", answered=False)
        await driver.until(lambda: "enter confirm" in driver.text())
        assert marks_in(driver, 6) == marks
        bar = {line[-2:] for line in driver.lines()[3:6]}, {line[-2].is_filled for line in marks[3:6]}
        assert bar == ({" ┃"}, {True}), "the scroll bar"
        assert {each.is_filled for line in marks for each in line} == {True, False}


class Mark(NamedTuple):
    """The visible properties of a cell other than its colors."""

    sign: str
    is_bold: bool
    is_underlined: bool
    is_filled: bool


def marks_in(driver: Driver, lines: int) -> list[list[Mark]]:
    """Return the marks of the first lines of the screen."""
    return [[_mark(sign, each.style) for each in strip for sign in each.text] for strip in driver.strips()[:lines]]


def _mark(sign: str, style: Style | None) -> Mark:
    style = style or Style.null()
    is_filled = style.reverse or (style.bgcolor is not None and not style.bgcolor.is_default)
    return Mark(sign, bool(style.bold), bool(style.underline), bool(is_filled))


@pytest.mark.parametrize("theme", ["pulsarbox", "pulsarbox-contrast", *TERMINAL])
async def test_fields_and_buttons_of_a_dialog_show_the_focus_without_a_hue(theme: str) -> None:
    async with dashboard(size=SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        driver.screen.act("sub clear")
        await driver.at("OperationDialog", answered=False)
        field, button = driver.screen.query_one("#typed", Input), driver.screen.query_one("#do", Button)
        await driver.until(lambda: field.has_focus and "billing" in driver.text())
        if theme not in TERMINAL:
            assert poor_in(driver, field.region, least_of(theme)) == set(), "the hint in the field"
            assert poor_in(driver, button.region, least_of(theme)) == set()
        before = _look(driver, button)
        driver.screen.set_focus(button)
        await driver.until(lambda: button.has_focus)
        await driver.pilot.pause()
        after = _look(driver, button)
        if theme in TERMINAL:
            assert after.reverse and not before.reverse
        else:
            assert contrast(*(Color.from_rich_color(each.bgcolor) for each in (before, after))) >= 1.4
            assert poor_in(driver, button.region, least_of(theme)) == set()


def _look(driver: Driver, button: Button) -> Style:
    (found,) = [each.style for each in drawn_in(driver, button.region) if "Confirm" in each.text]
    assert found is not None
    return found


async def test_fields_of_a_message_have_an_edge_in_the_colors_of_the_terminal() -> None:
    async with dashboard(size=SMALL, kept=wearing(TERMINAL[0])) as driver:
        await driver.app.push_screen(Editing(message(3)))
        await driver.until(lambda: "Properties, as JSON" in driver.text())
        fields = [driver.screen.query_one(f"#{name}").region for name in ("payload", "key", "properties")]
        edges = [[line[field.x] for line in driver.lines()[field.y : field.bottom]] for field in fields]
        assert [set(edge) for edge in edges] == [{"█"}, {"▌"}, {"▌"}]


@pytest.mark.parametrize("theme", TERMINAL)
async def test_the_cursor_of_a_field_is_reversed_in_the_colors_of_the_terminal(theme: str) -> None:
    async with dashboard(size=SMALL, place="topics", kept=wearing(theme)) as driver:
        await driver.press("slash")
        await driver.type("orders")
        field = driver.app.focused
        assert isinstance(field, Input)
        field.cursor_blink = False
        await driver.until(
            lambda: [each for each in drawn_in(driver, field.region) if each.style and each.style.reverse]
        )
        assert any(line.startswith("│>") for line in driver.lines()), "the row that an action would have"


LONG: Final = "\n".join(f"{at:<20}  {'ledger 12 of the topic could not be read ' * 3}" for at in range(40))
ROW: Final = {**client(7), **job(3, state="failed", error=LONG), **subscription(3), **quota(3)}
"""A target of every operation."""


def opened() -> Iterator[ModalScreen[Any]]:
    """Yield every dialog, with as much content as it can have."""
    replay, drop = BY_NAME["dlq replay"], BY_NAME["dlq drop"]
    yield OperationDialog(replay, [ROW])
    yield OperationDialog(drop, [ROW] * 10)
    yield OperationDialog(for_real(replay, {field.name: default_of(field, ROW) for field in replay.fields}), [ROW])
    yield ChoiceDialog("actions", [(str(at), LONG[:100], f"pulsarbox {LONG[:100]}") for at in range(40)])
    yield DryRunDialog(LONG[:300], "Replay 12 messages")
    yield Question("Write all rows to", LONG[:200], "rows.csv")
    yield TextDialog("Job 3", LONG, f"pulsarbox {LONG[:100]}")
    yield ColumnsDialog(CLIENTS.columns * 3, CLIENTS.columns, {"topic"})
    yield Editing(message(3, properties={str(at): "shop" for at in range(40)}))
    yield ActionPalette()


def dialogs(base: type[Any] = ModalScreen) -> set[type[Any]]:
    """Return the classes of dialogs that the dashboard opens."""
    below = set[type[Any]]().union(*(dialogs(each) for each in base.__subclasses__()))
    return below | ({base} if base.__module__.startswith(tui.__name__) and base is not Dialog else set())


def test_every_dialog_is_opened_here() -> None:
    for module in pkgutil.walk_packages(tui.__path__, f"{tui.__name__}."):
        import_module(module.name)
    assert {type(each) for each in opened()} == dialogs()


async def test_buttons_and_keys_of_every_dialog_are_visible_in_24_lines() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        for dialog in opened():
            await driver.app.push_screen(dialog)
            await driver.until(lambda: "esc back" in driver.text())
            buttons = list(dialog.query(Button))
            assert all(dialog.region.contains_region(button.region) for button in buttons)
            assert [button for button in buttons if str(button.label) not in driver.text()] == []
            for edge in ("box", "--container"):
                assert all(dialog.region.contains_region(box.region) for box in dialog.query(f"#{edge}"))
            dialog.dismiss()
            await driver.at("Subscriptions")


async def test_notes_cover_no_buttons_and_keys_of_a_dialog() -> None:
    async with dashboard(size=SMALL, place="subscriptions", toasts=True) as driver:
        for dialog in opened():
            await driver.app.push_screen(dialog)
            await driver.until(lambda: "esc back" in driver.text())
            driver.app.notify("a note", title="Copied")
            await driver.until(lambda: "Copied" in driver.text())
            assert "esc back" in driver.text(), type(dialog).__name__
            covered = [str(button.label) for button in dialog.query(Button) if str(button.label) not in driver.text()]
            assert covered == []
            driver.app.clear_notifications()
            dialog.dismiss()
            await driver.at("Subscriptions")


async def test_the_keys_of_every_dialog_are_set_off() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        for dialog in opened():
            await driver.app.push_screen(dialog)
            await driver.until(lambda: "esc back" in driver.text())
            (y,) = [at for at, line in enumerate(driver.lines()) if "esc back" in line]
            (esc,) = [each for each in driver.strips()[y] if each.text == "esc"]
            assert esc.style is not None and esc.style.bold, type(dialog).__name__
            dialog.dismiss()
            await driver.at("Subscriptions")


async def test_a_dry_run_says_that_nothing_changes_and_asks_for_no_name() -> None:
    async with dashboard(size=SMALL, place="deadletters") as driver:
        driver.screen.act("dlq drop")
        await driver.at("OperationDialog", answered=False)
        await driver.until(
            lambda: "A dry run changes nothing. It counts messages that would be dropped." in driver.text()
        )
        assert "cannot be undone" not in driver.text()
        driver.screen.query_one("#field-dry_run", Input).value = "no"
        await driver.until(lambda: "This cannot be undone. Type the name to confirm: orders-0-" in driver.text())
        assert "type the name here" in driver.text() and "A dry run" not in driver.text()
        await driver.press("ctrl+s")
        await driver.until(lambda: "✕ type 'orders-0-billing-DLQ' to confirm" in driver.text())
        lines = [line.strip("│┃ ") for line in driver.lines()]
        at = next(at for at, line in enumerate(lines) if line.startswith("✕"))
        assert (lines[at + 1], lines[at + 2][:6]) == ("", "ctrl+s")
        driver.screen.query_one("#field-dry_run", Input).value = "yes"
        await driver.until(lambda: "✕" not in driver.text() and "cannot be undone" not in driver.text())
        await driver.press("ctrl+s")
        await driver.until(driver.box.changes)
        assert driver.box.changes()[0][2]["dryRun"] is True
