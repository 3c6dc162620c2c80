"""Command lines in texts."""

from pulsarbox.tui.widgets.command_lines import parted, told_with_target
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox


def test_a_command_in_a_text_names_the_box() -> None:
    told = "No topics. Create one by publishing: pulsarbox produce hello 'Hello, world'"
    assert told_with_target(told, ["--data-dir", "my box"]) == f"{told} --data-dir 'my box'"
    assert told_with_target(told, []) == told
    assert told_with_target("No directories.", ["--data-dir", "box"]) == "No directories."


def test_the_command_of_a_text_is_apart_from_its_sentences() -> None:
    told = "No topics. Create one by publishing: pulsarbox produce hello 'Hello, world'"
    assert parted(told) == ("No topics. Create one by publishing:", "pulsarbox produce hello 'Hello, world'")
    assert parted("No connection to the box.") == ("No connection to the box.", "")


async def test_the_command_of_an_empty_table_is_copied_unless_a_filter_leaves_no_row() -> None:
    box, command = FakeBox(), "pulsarbox consume hello --subscription mine"
    box.rows["subscriptions"] = []
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        await driver.until(lambda: driver.told("told") == f" y {command}")
        line = next(line for line in driver.lines() if command in line)
        assert line[1:-1].strip() == command, "on a line of its own"
        await driver.press("y")
        await driver.until(lambda: any(command in said for said in driver.said))
        await driver.filter("backlog > 0")
        await driver.until(lambda: "No row matches" in driver.text())
        assert command not in driver.told("told")


async def test_commands_of_empty_tables_name_the_box() -> None:
    box = FakeBox()
    box.rows["topics"] = box.rows["subscriptions"] = []
    async with dashboard(box, (200, 50), place="topics", target=["--data-dir", "mybox"]) as driver:
        await driver.until(lambda: "'Hello, world' --data-dir mybox" in driver.text())
        await driver.press("1")
        await driver.at("Overview")
        await driver.until(
            lambda: "--subscription mine --data-dir mybox" in driver.text() or "top topics --data-dir" in driver.text()
        )
