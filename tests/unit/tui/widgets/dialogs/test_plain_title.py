"""Names in titles: brackets are no markup, and long names keep both ends."""

import pytest

from pulsarbox.tui.widgets.dialogs.plain_title import plain_title
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox, browsed, subscription


@pytest.mark.parametrize("name", ["a[/]", "[red]a", "[/b", "a[$x]"])
def test_brackets_are_text(name: str) -> None:
    assert plain_title(name, 40).plain == name


def test_a_long_name_keeps_its_ends() -> None:
    assert plain_title("persistent://a/b/orders", 20).plain == "persis…/orders"
    assert plain_title("orders", 12).plain == "orders"


async def test_names_like_markup_open_every_dialog_and_screen() -> None:
    box = FakeBox()
    topic = "persistent://public/default/[b]orders[$x]"
    box.rows["subscriptions"] = [subscription(0, topic=topic, subscription="billing[/]" + "x" * 90 + "end")]
    box.answers["GET", "/pulsarbox/v1/browse/public/default/%5Bb%5Dorders%5B%24x%5D"] = browsed(box.messages)
    box.rows["plugins"][0] |= {"name": "[/]"}
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        assert " billing[/]xxx" in driver.text() and "xend of [b]orders[$x] " in driver.text()
        await driver.press("escape", "b")
        await driver.at("Browser")
        await driver.until(lambda: " [b]orders[$x] " in driver.text())
        await driver.press("8")
        await driver.at("PluginsScreen")
        await driver.press("enter")
        await driver.at("TextDialog", answered=False)
        assert " Plugin [/] " in driver.text()
