"""Command lines in texts."""

from pulsarbox.tui.widgets.command_lines import told_with_target
from tests.unit.tui.driving import dashboard
from tests.unit.tui.fake import FakeBox


def test_a_command_in_a_text_names_the_box() -> None:
    told = "No topics. Create one by publishing: pulsarbox produce hello 'Hello, world'"
    assert told_with_target(told, ["--data-dir", "my box"]) == f"{told} --data-dir 'my box'"
    assert told_with_target(told, []) == told
    assert told_with_target("No directories.", ["--data-dir", "box"]) == "No directories."


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
