"""The dialog that edits a dead letter: leaving it loses nothing at once."""

from textual.widgets import TextArea

from tests.unit.tui.driving import dashboard


async def test_changes_of_a_message_are_discarded_only_when_asked_twice() -> None:
    async with dashboard(place="deadletters") as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.press("E")
        await driver.at("Editing", answered=False)
        await driver.press("escape")
        await driver.at("Browser")
        await driver.press("E")
        await driver.at("Editing", answered=False)
        driver.screen.query_one("#payload", TextArea).text = "{"
        await driver.press("escape")
        await driver.until(lambda: "esc again discards them" in driver.text())
        assert driver.screen.query_one("#payload", TextArea).text == "{"
        await driver.press("escape")
        await driver.at("Browser")
        assert driver.box.changes() == []
