"""The clients screen: the title of a client is that of its dialog."""

from pulsarbox.tui.actions.operations import BY_NAME
from pulsarbox.tui.widgets.columns import client_title
from tests.unit.tui.driving import dashboard
from tests.unit.tui.fake import client


def test_a_title_has_what_a_client_has() -> None:
    assert client_title(client(1)) == "consumer c1 of billing of orders-0 (127.0.0.1:40001)"
    assert client_title(client(1, kind="producer", subscription=None)) == "producer c1 of orders-0 (127.0.0.1:40001)"
    bare = client(1, kind="connection", name=None, topic=None, subscription=None)
    assert client_title(bare) == "connection (127.0.0.1:40001)"


async def test_the_menu_and_the_dialog_of_a_client_have_the_same_title() -> None:
    async with dashboard(place="clients") as driver:
        await driver.until(lambda: driver.table.pointed is not None)
        title = client_title(driver.table.pointed or {})
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        assert title in driver.text()
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        assert title in driver.text() and BY_NAME["client kick"].title in driver.text()
