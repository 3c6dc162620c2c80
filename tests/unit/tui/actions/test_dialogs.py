"""Long names and commands in the dialogs of actions, and on the screen of a subscription."""

from pulsarbox.tui.widgets.wrapping import HangingText
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.fake import FakeBox, subscription

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
