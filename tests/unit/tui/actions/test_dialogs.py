"""Long names and commands in the dialogs of actions, and on the screen of a subscription."""

from textual.widgets import Input

from pulsarbox.tui.actions.dialogs import OperationDialog, TextDialog, whole
from pulsarbox.tui.actions.operations import BY_NAME
from pulsarbox.tui.widgets.wrapping import HangingText
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.fake import FakeBox, dead_letters, subscription

NAME = "a-tenant-with-a-long-name/department-of-incoming-goods/orders-from-all-countries-and-all-shops-v2"
COMMAND = f"pulsarbox sub clear {NAME} {NAME.rpartition('/')[2]} --yes"


def rows_of(driver: Driver, key: str) -> list[str]:
    """Return the rows of a text on the screen."""
    widget = driver.screen.query_one(f"#{key}", HangingText)
    rows: list[str] = widget.render().plain.split("\n")
    assert len(rows) == widget.size.height > 1
    assert all(row in driver.text() for row in map(str.rstrip, rows))
    return rows


async def test_long_names_and_commands_wrap_behind_their_signs() -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(0, topic=f"persistent://{NAME}", subscription=NAME.rpartition("/")[2])]
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        assert {row[-1] for row in rows_of(driver, "called")[:-1]} <= set(" /-")
        driver.screen.act("sub clear")
        await driver.at("OperationDialog", answered=False)
        assert {row[-1] for row in rows_of(driver, "target")[:-1]} <= set(" /-")
        shown = rows_of(driver, "line")
        assert {row[-1] for row in shown[:-1]} <= set(" /-") and "".join(map(str.lstrip, shown)) == COMMAND
        await driver.press("ctrl+y")
        await driver.until(lambda: driver.app.clipboard == COMMAND)


async def test_the_focus_goes_to_the_name_that_is_missing() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        driver.screen.act("sub delete")
        await driver.at("OperationDialog", answered=False)
        await driver.press("shift+tab", "ctrl+s")
        await driver.until(lambda: "✕ type '" in driver.text())
        await driver.until(lambda: driver.screen.query_one("#typed", Input).has_focus)
        await driver.press("x")
        assert driver.screen.query_one("#typed", Input).value == "x"


async def test_space_changes_a_field_with_choices_and_words_can_be_typed() -> None:
    box = FakeBox()
    async with dashboard(box, SMALL, place="deadletters") as driver:
        driver.screen.act("dlq replay")
        await driver.at("OperationDialog", answered=False)
        field = driver.screen.query_one("#field-dry_run", Input)
        driver.screen.set_focus(field)
        await driver.until(
            lambda: "yes | no   space: next" in driver.text() or "no | yes   space: next" in driver.text()
        )
        was = field.value
        await driver.press("space")
        assert {was, field.value} == {"yes", "no"}
        await driver.press("space")
        assert field.value == was
        await driver.press(*["backspace"] * len(was), "n", "o")
        assert field.value == "no"
        await driver.press("backspace", "ctrl+s")
        await driver.until(lambda: "one of" in driver.text())
        assert field.has_focus


async def test_a_row_without_actions_has_no_menu() -> None:
    async with dashboard(size=(120, 40), place="storage") as driver:
        assert "x actions" not in driver.told("hints")
        await driver.press("x")
        await driver.until(lambda: any("No action applies to" in each or "No row" in each for each in driver.said))
        assert type(driver.screen).__name__ != "ChoiceDialog"


async def test_a_finished_job_has_no_menu() -> None:
    async with dashboard(size=(120, 40), place="jobs") as driver:
        for state, is_hinted in (("running", True), ("done", False)):
            at = next(at for at in range(2) if driver.table.row_at(at)["state"] == state)  # type: ignore[index]
            driver.table.point(at)
            await driver.until(lambda shown=is_hinted: ("x actions" in driver.told("hints")) == shown)  # type: ignore[misc]


async def test_the_menu_of_several_rows_has_only_what_concerns_all() -> None:
    async with dashboard(size=(120, 40), place="subscriptions") as driver:
        await driver.until(lambda: driver.table.pointed is not None)
        names = [action.name for action in driver.screen.actions_for_all(driver.table.chosen)]
        assert {"messages", "cursor map"} <= set(names)
        await driver.press("space", "j", "space", "x")
        await driver.at("ChoiceDialog", answered=False)
        assert "2 marked subscriptions" in driver.text() and "Browse" not in driver.text()
        assert "Show acknowledged" not in driver.text() and "clear" in driver.text().lower()


async def test_the_menu_of_several_rows_shows_one_command_and_copies_all() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        await driver.press("space", "space", "x")
        await driver.at("ChoiceDialog", answered=False)
        await driver.until(lambda: "y copy the commands" in driver.text())
        assert "pulsarbox topic unload orders-0" in driver.text() and "... and 1 more" in driver.text()
        await driver.press("y")
        assert driver.app.clipboard == "pulsarbox topic unload orders-0\npulsarbox topic unload orders-1"


async def test_a_key_that_copies_is_hinted_for_an_option_with_a_command_only() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        await driver.until(lambda: "y copy the command" in driver.text())
        assert "pulsarbox peek orders-0 --from -10" in driver.text()
        was = driver.screen.query_one("#box").region
        await driver.press("j")
        await driver.until(lambda: "copy the command" not in driver.text())
        await driver.press("y")
        assert driver.app.clipboard == "" and "esc back" in driver.text()
        assert driver.screen.query_one("#box").region == was, "the dialog keeps its size"


async def test_a_long_text_hints_at_scrolling_and_shows_its_command() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        for text, is_long in (("a line\n" * 30, True), ("a line", False)):
            await driver.app.push_screen(TextDialog("Job 3", text, "pulsarbox job show 3"))
            await driver.until(lambda: "y copy the command" in driver.text())
            await driver.until(lambda shown=is_long: ("↑↓ scroll" in driver.text()) == shown)  # type: ignore[misc]
            assert "pulsarbox job show 3" in driver.text()
            driver.screen.dismiss()
            await driver.at("TopicsScreen")


async def test_the_hint_of_a_field_begins_with_its_title_and_a_long_filter_is_shown_whole() -> None:
    async with dashboard(size=(200, 50), place="deadletters") as driver:
        passing = 'reason == "timeout after # s" and origin == "persistent://public/default/orders-0" and key != "x"'
        await driver.app.push_screen(OperationDialog(BY_NAME["dlq replay"], [dead_letters(0, filter=passing)]))
        await driver.until(lambda: passing in driver.text())
        assert 'Filter: reason == "...", contains(payload, "x"); empty: all' in driver.text()
        await driver.press("tab")
        await driver.until(lambda: "Messages per second: 0: no limit" in driver.text())
        await driver.press("tab")
        await driver.until(lambda: "Target topic: another topic; empty: the original topics" in driver.text())


def test_a_topic_is_the_target_of_an_action_on_the_topic_of_a_subscription() -> None:
    unload, clear = BY_NAME["topic unload"], BY_NAME["sub clear"]
    assert whole(subscription(1), unload) == "orders-1"
    assert whole(subscription(1), clear) == "billing of orders-1" and clear.target(subscription(1)) == "billing"
